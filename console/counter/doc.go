// Package counter is the room where a cashier asks for money, waits for it and prints the receipt.
package counter

import "till/console/shell"

// visit is a visit to this room.
type visit struct{ *shell.Visit }

// in makes a page of this room one of the table.
func in(page func(*visit) error) func(*shell.Visit) error {
	return func(v *shell.Visit) error { return page(&visit{v}) }
}
