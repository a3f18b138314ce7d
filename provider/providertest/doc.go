// Package providertest is the suite that every operator's adapter passes. An
// adapter's test file says how to make the operator's simulator behave (a
// Harness) and calls Run; the cases are sentences of the contract in package
// provider.
//
// The suite asks the operator's own book how often a payer was debited: that,
// not what the adapter answers, is what must be right.
//
// Adapters of operators on the other side of a network run over a Line: a real
// HTTP server before the simulator, that loses, cuts and forges. The cases
// about it are in linecases.go, tokencases.go and mutate.go.
//
// A story that an operator cannot be made to play is skipped, not passed.
//
// Start reading at providertest.go.
package providertest
