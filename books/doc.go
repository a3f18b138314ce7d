// Package books proves that the books are right and keeps them: it verifies
// what is stored, exports it, corrects it in a person's name, and keeps the audit log.
//
//	Verify          proves the invariants that a database can show
//	ExtendChains    extends the chains over the audit logs, after the commits
//	EachAudit       reads the audit log of a client
//	ReadDayReport   what a day brought, and what the books hold
//	ReadStatus      whether everything is well
//	Export          writes the statement of a client, of any size
//	Adjust          corrects a wallet in a person's name
//	Cases           lists what a person has to check; CaseDetailOf, ResolveCase
//	Strays          records money that names us and matches nothing here
//
// Verify changes nothing and reads one client after another in short snapshots,
// so it can run beside a server. Rows that never change are read in slices; rows
// that change are compared inside one snapshot. So a concurrent write is never
// reported as a problem. The tests of other packages end with Verify.
//
// Books knows no SQL and repairs nothing: a person decides about a problem. What an
// operator says of the same money is compared in reconcile, and what is left after a
// restore is settled in recovery. Start reading at verify.go.
//
// # Audit rows
//
// Audit rows have their cause (store.WithCause: the request, the command) and the SHA-256
// of their evidence. Each client's rows form one chain, extended after the commits under a
// key that is derived from the installation's secret (audit_chain.go, ADR 0018). The
// service logs the heads of the chains (audit_heads.go).
//
// # Long reads
//
// Long reads are many short ones: exports and till verify read in slices by key, with the
// end fixed at the start (statement.go, verify_fast.go). Rows that never change
// may be read in many snapshots; rows that change are compared inside one.
//
// # How a stray is closed
//
//	callback, token ours, payment not here ── api/callbacks.go ── ReadClaim ── Strays.Record ─┐ table strays,
//	line missing here, of our form ── reconcile --apply ── reconcile/strays.go ─────────────────────┴ keyed by connection
//	the client's retry is credited ── engine/strays.go: the stray is closed in that commit, an attribution taken back
//	till strays attribute ── an adjustment with the stray's id          till strays foreign ── closed with a reason
//
// A stray is money that names us and matches no payment or payout. The table does not begin
// with a client, because nobody may know whose money it is. A commit that may credit a
// payment checks, in the round trip of its locks, whether any stray is open, and reads more
// only then. A stray may be written while its payment is being credited. So strays.go
// checks once more under the lock of that client's head, and neither misses the other.
package books
