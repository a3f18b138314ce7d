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
//	GiveBack  suspense −7000   operator +7000   given back outside
//	TakeFee   wallet     −75   fees       +75   our own, of money that came in
//	Reverse   operator +5000   wallet   −3000   the operator took it back; what
//	                       receivable   −2000   the wallet lacks is owed to us
//	Repay     wallet   −2000   receivable +2000 what is owed is paid first
//	Adjust    adjustments −10  wallet     +10   a person's correction, or the reverse
//
// Only wallets hold a running balance, and beside it a running debt: the sum
// of the receivable account in their currency. The line of a wallet in an
// entry is a Transaction, numbered without gaps, and is what clients read.
//
// Start reading at ledger.go.
package ledger
