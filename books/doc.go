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
package books
