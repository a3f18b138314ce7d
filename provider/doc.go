// Package provider defines what a mobile money operator can do: accept a
// request (Submit) and report its state (Check). Each operator is a folder
// below this one. Package providertest is the suite that every adapter passes.
//
// An adapter translates the operator's answer into a Result and decides nothing
// else. It promises two things that prevent double charging (I8): a nil error
// means that the Result is the operator's answer, and an error means that the
// outcome is unknown. It never retries and never guesses.
//
// It knows no database, no engine and no client.
//
// Start reading at provider.go.
package provider
