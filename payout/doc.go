// Package payout is about payouts: the body of a create call, the reserve and the
// insert of a new payout, its cancellation, and the rules for an operator's answer.
//
//	Create ── one commit: payout, reserve, step, event, tallies ──► 202
//	             │
//	engine: claim ── one commit: "a send may have begun" ──► send, check
//	             │
//	         Apply(answers) ── one commit: status, postings or release,
//	             ▲              tallies, events, next step
//	callback ── RecordCallback
//
// It promises that money which may have left is never spent twice. The commit that
// makes a payout reserves its amount and fee under the lock of the client's head,
// one call after the other: of two payouts of 60 from 100, one is rejected. Success
// posts the reserve and failure releases it. While the outcome is unknown, the
// reserve stays.
//
// A payout is always created without a lease, unlike a payment. The claim that
// sends it commits that first. So Cancel knows what was not sent, and an instance
// that takes over checks instead of sending.
//
// Between the create and the decision, payouts use the same engine as payments; payout
// decides what an answer means (ADR 0014).
//
// The difference is caution. A payout is never created with the lease held, so a payout
// that is not marked as sent was not sent. Its reserve is kept while the outcome is
// unknown; till cases show prints how much. On an operator that cannot look up our
// reference, "not found" proves nothing. Such a payout is neither sent again nor ended: a
// person decides. The table facts records that a payout's money left at most once, in time
// or late.
//
// A refund is a payout that names the payment it gives back: one table, one state machine, one
// engine. Its recipient, method and currency are the payment's. What went back of a payment and
// what is on its way is a row that the database holds to the payment's amount, and at most one
// refund of a payment is open. All of it is decided in the commit of the create, after the key
// was looked up (refund.go). The road is chosen once and pinned (road.go).
//
// Start reading at create.go, then rules.go, then refund.go.
package payout
