// Package provider says what a mobile money operator can do, in the fewest
// words: take a request (Submit) and say how it stands (Check). Each operator
// is a folder below; package providertest is the suite all of them pass.
//
// An adapter turns the operator's words into a verdict and decides nothing
// else. It knows no database, never retries and never guesses: what it could
// not learn is an error, and an error changes no payment.
//
// Start reading at provider.go.
package provider
