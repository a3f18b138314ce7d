// Package remote calls a running service over HTTP, as a client does, for commands that
// need no database. It repeats a call after a failure that may pass, and returns the
// service's refusals as till.Error.
//
// It knows the form of requests and errors, and no call by name. Start reading at client.go.
package remote
