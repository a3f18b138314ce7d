// Package engine carries payments and payouts from the create call to their end.
// It claims due steps, sends requests to operators, checks them, and records the
// answers. A Processor does this for payments, or for payouts; Rules say what an
// answer means to them (packages collect and payout).
//
//	Create ── Processor.Accept: one commit for many calls
//	steps table ──claim──► Task ──call──► operator
//	     ▲                                    │
//	     └───────── Processor.Apply ◄──answer─┘
//
// It promises:
//
//   - No send without a committed right. The right is a lease with a version, and a
//     claim is a compare-and-swap on it. A claim that will send commits "a send may
//     have begun" before the first byte. Right before the call, the holder compares
//     the lease with its own monotonic clock and with the database's.
//   - The lease guards permissions, never facts: an answer is recorded no matter who
//     holds the lease by then.
//   - Nothing that is due depends on memory. The leases of a process that dies end
//     after Lease, and another instance checks before it sends.
//   - All instances agree on an operator's health and rate limits, because both are
//     in the database. A claim reads them under their locks.
//
// It knows no SQL, no HTTP and no operator's codes.
//
// Start reading at decide.go, which has the rules as pure functions. Then follow a
// create through intake.go, and a due step through worker.go, claim.go, call.go and
// record.go.
package engine
