// Package webhook delivers a client's event log to the endpoints that the client
// registered.
//
//	Endpoints                            create, change, test and replay endpoints
//	Dispatcher                           delivers events, chunk by chunk
//	backoff, chunk                       its rules, as pure functions
//	limits                               how fast a host is posted to, over all clients
//	Sign ─ Sender.Post ─ Response        one attempt, without a database
//	CheckURL ─ Sender.CheckHost ─ dial   three checks before a connection
//
// It promises:
//
//   - Every event reaches every subscribed endpoint at least once, or a row says
//     why not (I7).
//   - Every attempt is signed as Standard Webhooks 1.0 says, with the time of
//     that attempt.
//   - No connection is opened to a private or special network that the operator
//     of the service has not allowed, whatever a name resolved to before.
//   - An attempt ends within its deadline and uses a few KiB of memory.
//   - A secret is neither stored nor logged in plain text.
//
// It knows no payments: an event is a sequence, a kind and a body.
//
// Start reading at chunk.go, then dispatcher.go; or at sender.go.
package webhook
