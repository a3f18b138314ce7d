// Package money has the commands about payments, payouts and the books: what became of a
// payment, what needs a person's decision, and whether the books are right.
//
// Start reading at subject.go; then there is one file per command.
package money
