// Package payout is what happens to payouts: a client asks for one (Create),
// takes it back (Cancel), an operator's answer is recorded (Apply).
//
//	Create ── one commit: payout, reserve, step, event, tallies ──► 202
//	             │
//	engine: claim ── one commit: "a send may have begun" ──► send, ask
//	             │
//	         Apply(answers) ── one commit: status, postings or release,
//	             ▲              tallies, events, next step
//	callback ── Wake
//
// Money that may have left is never spent twice. The amount and the fee are
// reserved in the commit that makes the payout, under the lock of the client's
// head, one call after the other: two payouts of 60 from 100 are one yes and one
// no. The reserve is posted on success, given back on failure, and kept for as
// long as nobody knows. Unlike a payment, a payout is always made without a
// lease: the claim that sends it writes so down before the first byte, so Cancel
// can tell what was not sent, and whoever takes over asks instead of sending.
//
// The machinery is package engine's, as it is for payments; this package says
// what an answer means to a payout. Start reading at payout.go.
package payout
