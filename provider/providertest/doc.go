// Package providertest is the suite that every operator's adapter passes. An
// adapter's test file says how to make the operator's simulator behave (a
// Harness) and calls Run; the cases are sentences of the contract in package
// provider.
//
// The suite asks the operator's own book how often a payer was debited: that,
// not what the adapter answers, is what must be right.
//
// A story that an operator cannot be made to play is skipped, not passed.
//
// Start reading at providertest.go.
package providertest
