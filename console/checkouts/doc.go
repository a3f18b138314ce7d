// Package checkouts is the room of orders that are paid on a page: the list, a single one, and a
// new one for merchants without a program of their own; and of links, on which anybody can pay.
package checkouts

import "till/console/shell"

// visit is a visit to this room.
type visit struct{ *shell.Visit }

// in makes a page of this room one of the table.
func in(page func(*visit) error) func(*shell.Visit) error {
	return func(v *shell.Visit) error { return page(&visit{v}) }
}
