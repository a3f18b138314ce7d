// Package collect is what happens to payments: a client asks for one
// (Create), an operator's answer is recorded (Apply), money that came late is
// credited all the same.
//
//	Create ── one commit: payment, step, event, tallies ──► 202
//	             │
//	engine: send, ask ──► Apply(answers) ── one commit: status, postings,
//	             ▲                           tallies, events, next step
//	callback ── Wake
//
// Apply is the only place where a payment changes. It takes a batch, locks,
// decides element by element in memory against the running state, and writes
// the net result; five callbacks for one payment are five decisions, the last
// four of them no-ops.
//
// Nothing here calls an operator, and nothing here decides when to ask one:
// that is package engine. Start reading at collect.go.
package collect
