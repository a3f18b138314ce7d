// Package collect is about payments: the body of a create call, the insert of a
// new payment, and the rules for an operator's answer, late money and reversals
// included.
//
//	Create ── one commit: payment, step, event, tallies ──► 202
//	             │
//	engine: send, check ──► Apply(answers) ── one commit: status, postings,
//	             ▲                             tallies, events, next step
//	callback ── RecordCallback
//
// It promises that a payment's money is credited once, and only the amount
// that was asked for, under a receipt that no other payment has. engine's Apply is
// the only place where a payment's status changes. It locks a batch, decides each answer in memory,
// and writes the net result: of five answers that say the same, four change nothing.
//
// It calls no operator and does not decide when to call one: package engine does.
//
// # Money after it came in
//
// A fee is fixed at creation and posted in the commit of the collection. A reversal is
// recorded once, whatever the wallet holds; what is not available is owed. Each commit that
// leaves money available repays the client's debt first, so no wallet is written with both.
// facts records what may happen to a payment at most once: its fee, its reversal. The
// primary key rejects a second row. docs/guide/money.md lists the accounts. Clients see
// late_success_at and reversed_at: the times of two events, whose numbers are in the
// payment's row.
//
// Start reading at create.go, then rules.go.
package collect
