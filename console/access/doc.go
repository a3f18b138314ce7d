// Package access is the room of who may: signing in, one's own page, people, API keys, settings and the log of what was done.
package access

import "till/console/shell"

// visit is a visit to this room.
type visit struct{ *shell.Visit }

// in makes a page of this room one of the table.
func in(page func(*visit) error) func(*shell.Visit) error {
	return func(v *shell.Visit) error { return page(&visit{v}) }
}
