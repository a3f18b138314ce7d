// Package figures is the room of the first pages, a merchant's and the house's: what came in, what is open, what needs somebody.
package figures

import "till/console/shell"

// visit is a visit to this room.
type visit struct{ *shell.Visit }

// in makes a page of this room one of the table.
func in(page func(*visit) error) func(*shell.Visit) error {
	return func(v *shell.Visit) error { return page(&visit{v}) }
}
