// Package proof has the reads by which the books are verified: payments, payouts, events,
// lines of wallets, endpoints and facts of one client, in slices, beside what they must agree
// with.
//
// Its functions run in a transaction of store and write nothing. What the rows mean, and
// which of them are wrong, package books decides.
package proof
