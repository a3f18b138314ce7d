// Package rehearse tests a handler of webhooks: it sends good, repeated, stale, forged and
// unusual events, checks the answers and, by a command of the handler's author, at what was
// done, and says what is wrong. It is till webhook check. It also says why a captured request
// does not verify, which is till webhook verify.
//
// What only the effect can show is not seen without that command, and never passed. The
// package needs no service and prints nothing.
//
// Start reading at run.go; checks.go has the 24 checks, events.go what is sent, explain.go the
// captured request.
package rehearse
