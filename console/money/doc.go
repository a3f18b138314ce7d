// Package money is the room of payments, payouts and wallets: lists, their tables, single ones, statements and the search.
package money

import "till/console/shell"

// visit is a visit to this room.
type visit struct{ *shell.Visit }

// in makes a page of this room one of the table.
func in(page func(*visit) error) func(*shell.Visit) error {
	return func(v *shell.Visit) error { return page(&visit{v}) }
}
