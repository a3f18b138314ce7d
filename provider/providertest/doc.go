// Package providertest is the suite that every adapter passes. An adapter's test
// provides a Harness, which makes the operator's simulator behave as a story
// says, and calls Run. Each case is a sentence of package provider's contract.
//
// The suite reads the operator's own book to count debits. What must be right is
// that count, not what the adapter answers.
//
// Adapters that use a network run over a Line: a real HTTP server in front of the
// simulator that loses, delays, cuts and forges answers. Those cases are in
// linecases.go, tokencases.go and mutate.go.
//
// A story that an operator cannot play is skipped, not passed.
//
// Start reading at providertest.go.
package providertest
