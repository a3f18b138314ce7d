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
// # Create
//
// Create does not read before it writes: the unique index on (client, idempotency key)
// decides. If the key exists, the stored payment is read. A call with the same body gets
// the first answer again. Rules that can change (methods, phones, limits) reject a call
// only after the key was looked up. So a retry always finds its payment.
//
// # Apply
//
// Apply (engine/record.go) is the only place where a payment's status changes, also when a person
// decides (till payment resolve); docs/state_machine.md draws the statuses. It locks the
// steps, then the client's head. It decides each answer in memory and writes the net
// result. If a batch fails, each of its answers runs again alone, unless the database is
// unavailable.
//
// # The right to send
//
// The right to send is a lease with a version. If a slot is free, a payment is created with
// the lease held and sent without a claim (engine/send_permit.go); it counts as possibly
// sent from then on. An instance that takes over an expired lease checks with the operator
// first. The same reference is sent again only if the operator has no such request ("proven
// absent"). The proof has three parts:
//
//   - two checks answered "not found", and nothing was ever acknowledged;
//   - the first check began after the settle time (Traits.NotFoundDelay), counted from
//     the deadline of the latest send;
//   - the two checks lie a settle time apart, so that one stale replica is not counted
//     twice.
//
// A first send counts as none if certainly no byte left us, or if the operator's gateway
// refused it before the operator saw it (a token, too many calls). If the operator calls
// back, it knows the request; then neither counts as proof that it was not sent, before one
// more check. What a gateway refused did leave us, so it ends only after one check that
// found nothing. (An M-Pesa payment cannot be asked about; it ends with its window.) The
// reference is derived from the installation's secret and the idempotency key. So a payment
// that was lost with a restored backup and is created again meets the operator's duplicate
// check. engine/decide.go holds these rules as pure functions.
//
// # Holds
//
// A row of payout_holds stops the payouts of one client or of all clients. Its cause is a
// restore, a person, or the client's suspension. Till reads it in the commit of the create,
// in the commit of the claim, and once more right before the first byte. A payout that was
// not sent waits with its reserve (steps.held_at) and a case held. When nothing holds it
// any more, it gets a whole new window. Unsent payments of a suspended client are not sent,
// and their time runs (ADR 0020). The commit of a create decides whether the client is
// suspended (LockMakers, engine/intake.go), for the API, the console and whatever comes.
// books/holds.go has the commands, engine/hold.go the rules.
//
// # The lease guards permissions, never facts
//
// An answer is recorded no matter who holds the lease by then; only the holder may
// reschedule. While the database is unavailable, an answer waits in memory with the slot of
// its call (engine/unrecorded.go). So there are never more waiting answers than slots, and
// none is dropped while the process runs; what a stop loses is logged, and asked for again.
// Callbacks wait too, limited in number and bytes. Operators' texts are cleaned in one
// place (provider/clean.go). A payment that makes the program fail each time is quarantined
// (engine/quarantine.go): it becomes a case, it is retried ever more slowly, and the queue
// moves on.
//
// # What is due
//
// What is due is in the narrow table steps. A row exists while a call is scheduled,
// late-money reads included. Nothing that is due depends on memory. The leases of a process
// that dies end after 20 s. Each operator and operation has its own queue of steps, called
// a lane, so a slow or unavailable operator delays no other. An instance ignores the lanes
// of connections that it does not have. A step that no instance takes becomes a case once
// its time is over (engine/stranded.go). If more steps of a lane are due than an instance
// can take, clients take turns (engine/fair.go). A call that ends wakes the loop. Each
// instance caches what it sent recently, so most checks and most answers need not read the
// payment again. The database rejects a change if the cached payment is out of date.
//
// # Clocks
//
// Times are the database's. A client's own times never go back; due times, leases and
// deadlines use the clock alone. If the clock is set back, each instance notices and brings
// back what lies too far in the future (engine/clock.go, store/clock.go; webhook/clock.go
// for deliveries). Before each call, the lease is compared with the machine's monotonic
// clock and with the database's clock. The monotonic clock alone is not enough: it stops
// while a machine is suspended.
//
// # Which operator
//
// Which operator a payment goes to is decided at creation: the first connection of its
// route (config, engine/route.go) that serves its method, country and currency
// (provider.Selective) and whose breaker is passing. The payment keeps that connection and
// its fingerprint. A method without a route is not offered and is rejected like an unknown
// one (ADR 0017). Methods are data: method_table.go, and what the configuration adds.
// operators/operators.go lists the adapters and opens the connections. A callback finds its
// payment by the token in its path, a MAC. If an operator calls one address for all
// payments, it finds it by what the operator repeats (operator_references, written in the
// commit of the first send). The callback makes the step due, at most once a second (ADR
// 0012).
//
// # Health and rate limits
//
// Health and rate limits are shared through the database (ADR 0008). All instances add up
// sums of call results, never a row per call. A circuit breaker per operator, changed by
// compare-and-swap, decides whether new payments go out. A token bucket per operator and
// operation limits the calls. A create reads none of these rows: it uses a state in memory
// that is at most a second old, and tokens that were taken in advance. engine/breaker.go
// holds the breaker's rules as pure functions.
//
// # An unknown commit
//
// If COMMIT returns an error, the connection breaks during it, or the synchronous standby
// did not get it, nobody knows whether the transaction happened. internal/db/postgres or
// internal/db/sqlite returns ErrUnknownCommit, and the writer of creates, answers or
// deliveries runs the same batch once more: creates that are there already are found by
// their keys and adopted, answers are decided again on the rows as they are, deliveries are
// recognised by their lease. If that fails too, each call runs alone. If the database is
// unavailable, creates get 503, answers wait (engine/unrecorded.go), and deliveries are
// sent again after their lease. A claim is looked up (engine/find_claims.go): what it took
// is sent under its lease, or recorded as not sent if the lease is over by then; what it
// did not take is still due. A callback is kept and recorded later (engine/callback.go).
// What says that something happened, a line ended and its counts, comes after a commit that
// is known, once (engine/unsure.go). A create is answered 202 only after a commit that is
// known; otherwise it gets 503, and a retry with the same key finds what is there.
//
// Start reading at decide.go, which has the rules as pure functions. Then follow a
// create through intake.go, and a due step through worker.go, claim.go, call.go and
// record.go.
package engine
