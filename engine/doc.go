// Package engine works off what is due: it claims a step, sends or asks, and
// hands the operator's answer to whoever owns the subject. Payments and payouts
// differ in what an answer means to them; that is their Decider. An Engine works
// for one of them.
//
//	steps table ──claim──► Task ──call──► operator
//	     ▲                                    │
//	     └────────── Subject.Apply ◄──answer──┘
//
// The right to send is a lease with a version. A claim is a compare-and-swap
// on it; a claim that will send commits "a send may have begun" before the
// first byte; the holder looks at its own monotonic clock once more right
// before it sends. The lease guards permissions, never facts: an answer is
// recorded whoever holds the lease by then.
//
// Nothing that is due depends on memory: a process that dies leaves leases
// that end within Lease, and another goes on by asking, not by sending.
//
// What all instances must agree on is in the database: whether an operator is
// sent to (breaker.go has the rules, health.go shares them), and how many calls
// it may be asked (budget.go). A claim reads both under their locks; steps wait
// in lanes, so that what must wait hides nothing of the others (claim.go).
//
// What both share beside that is here too: the Desk takes new ones in, many in
// one commit, and answers retries and callbacks (desk.go); a Change carries a
// batch of answers to the rows that follow from them (change.go, write.go).
//
// decide.go has the rules, as pure functions. Start reading there.
package engine
