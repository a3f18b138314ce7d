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
//	commit of a transition ── hint ──► webhook/dispatcher.go: whose log grew? claim its endpoints (lease, 20 s)
//	         sweep, every second ────►   chunk_read.go:   rows that are due, then what is beyond the cursor, then a replay
//	                                     chunk_send.go:   events of different payments in parallel, sign and post (15 s)
//	                                     chunk_commit.go: one commit for the chunks of many endpoints:
//	                                                      cursor, rows of what failed, backoff, lease given back
//
// An endpoint is a cursor into the log. A delivered event moves the cursor and leaves no
// row (of test clients it leaves one, with the answer). A failed event is a row with a
// schedule of twelve attempts. So a hundred thousand events for a dead endpoint are one
// row, and creates write nothing for endpoints. webhook/backoff.go and webhook/chunk.go
// hold the rules as pure functions: retries, when an endpoint counts as failing and how it
// is probed, which events are superseded, where the cursor goes (ADR 0010). The cursor
// moves only up to an event that is still in the log under its number when the move is
// recorded. A failover that lost commits assigns numbers again.
//
// # How fast
//
// Each post passes limits (webhook/limits.go): those of its host, over all clients, and
// those of its client. An endpoint is proven once it has answered 2xx five times since it
// got its address (webhook_endpoints.answered). Until then, and while it fails, it is sent
// one event at a time, and it shares a small rate with the other such endpoints at that
// host. Replays have a rate, and so do a client's further endpoints at one host. First
// deliveries to a proven endpoint have no rate. They are limited by the number of posts in
// flight, which grows with 2xx answers, so that a receiver which many clients share keeps
// up. The limits are in memory, per instance. With https a host is its name, which a
// certificate proves. With http it is the address, because anybody's name can point there
// (webhook/host.go).
//
// # Where to
//
// Three checks keep webhooks on the public Internet:
//
//	CheckURL ── the text: scheme, port, spelling, literal addresses           at registration
//	CheckHost ─ the addresses of the name; one forbidden address is enough    at registration
//	Post ────── the text and the name again, then the literal address         at every connection (net.Dialer.ControlContext)
//
// The last check counts most: it sees the address that is about to be connected to,
// whatever DNS said before. The forbidden networks come from IANA's registries
// (code.dny.dev/ssrf), plus this machine's own addresses; --webhook-allow opens networks.
// There are no redirects, no cookies, and no proxy except the one of --webhook-proxy.
// outbound_test.go lists each place in the program that opens connections.
//
// A webhook secret is encrypted with AES-256-GCM under a key that HKDF derives from the
// installation's secret. Client and endpoint are bound in, so an encrypted secret that is
// copied to another row cannot be decrypted there. The secret has generations (ADR 0043):
// the first byte of everything encrypted names the one that did it, and secret/watch.go
// follows a rotation.
//
// Start reading at chunk.go, then dispatcher.go; or at sender.go.
package webhook
