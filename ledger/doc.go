// Package ledger is double entry, pure: it says which postings a money
// decision makes and holds the sums in bounds. It knows no database and no
// clock.
//
// Every entry sums to zero. A credit is positive, a debit negative. A wallet
// is what we owe a client, so money that comes in credits it; the other side
// is the operator's account of that connection, which now holds the money
// for us:
//
//	Settle    operator −5000   wallet   +5000   the customer paid
//	Suspend   operator −7000   suspense +7000   paid, but not what we asked for
//
// Only wallets hold a running balance. The line of a wallet in an entry is a
// Transaction, numbered without gaps, and is what clients read.
//
// Start reading at ledger.go.
package ledger
