// Package privacy answers for the data of persons: what is stored under a phone
// number, and taking it out of payments, payouts and checkouts that have ended.
//
//	PersonData  reads each payment, payout and checkout of a phone number
//	Erase       puts a token in place of what names a person
//
// Amounts, times and postings stay as they are: the books must still be right.
// Start reading at erase.go.
package privacy
