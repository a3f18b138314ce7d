// Package books proves that the books are right and keeps them so: it reads
// what is stored and says what does not fit.
//
//	Verify        the invariants that a database can show, on a live system
//	Seal          the chain over the audit logs, built behind the commit
//	Fold          what was tallied by the hour goes into the counters, likewise
//	EachAudit     the audit log of a client
//	Export        the statement of a client, of any size
//	Adjust        a person's correction of a wallet
//	Cases         what a person has to look at; ShowCase, ResolveCase
//	Reconcile     an operator's statement held against payments, payouts and ledger
//
// Verify changes nothing and reads one client after another in short
// snapshots, so it can run beside a server at any time. What never changes
// once it is written is walked in slices; what does change is compared with
// its other half inside one snapshot. So a write that happens meanwhile is
// never taken for a fault. The tests of the other packages end with it.
// verify_fast.go lets plain histories pass; what is left is judged closely.
//
// Reconcile changes nothing either; ApplyStatement lets a statement's lines
// settle payments and payouts, through collect and payout and nowhere else.
//
// Books knows no SQL and repairs nothing: a fault is for a person to look at.
// Start reading at verify.go.
package books
