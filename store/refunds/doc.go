// Package refunds has the SQL of what went back of payments: the sums of each payment's
// refunds, what a refund is decided on, and the reads with which verify proves both.
//
// A refund is a row of payouts, which store reads and writes like any payout. The sums are
// rows of their own, so that payments are not touched: a payment without refunds has none.
// The database holds them to the payment's amount. They change only while the client's head
// is locked.
package refunds
