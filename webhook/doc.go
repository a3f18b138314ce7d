// Package webhook pushes a client's event log to the addresses that the
// client registered.
//
//	Endpoints                          what clients do with their endpoints
//	Dispatcher                          pushes events, window by window
//	schedule.go, window.go             its rules, without a database
//	pace.go, host.go                   how fast a host is posted to, over all clients
//	Sign ─ Sender.Post ─ Response        one attempt, knows no database
//	Secret ─ Vault                     what signs, and how it is kept
//	CheckURL ─ Sender.CheckHost ─ dial the three gates before a connection
//
// It promises that every event reaches every endpoint subscribed to it at
// least once, or that a row says what became of it; that every attempt is signed as Standard Webhooks 1.0 says, with
// the time of that attempt; that no connection is opened to a private or
// special network that the operator has not allowed, whatever a name resolved
// to before; that an attempt ends within its deadline and costs a few KiB,
// whatever the other side sends; and that a secret is neither stored nor
// logged as it is.
//
// Start reading at window.go, then deliver.go; or at sender.go.
package webhook
