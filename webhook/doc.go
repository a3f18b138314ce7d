// Package webhook pushes a client's event log to the addresses that the
// client registered.
//
//	Sign ─ Sender.Post ─ Answer        one attempt, knows no database
//	Secret ─ Vault                     what signs, and how it is kept
//	CheckURL ─ Sender.CheckHost ─ dial the three gates before a connection
//
// It promises that every attempt is signed as Standard Webhooks 1.0 says, with
// the time of that attempt; that no connection is opened to a private or
// special network that the operator has not allowed, whatever a name resolved
// to before; that an attempt ends within its deadline and costs a few KiB,
// whatever the other side sends; and that a secret is neither stored nor
// logged as it is.
//
// Start reading at sender.go.
package webhook
