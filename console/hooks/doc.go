// Package hooks is the room of webhooks: endpoints and what became of events there.
package hooks

import "till/console/shell"

// visit is a visit to this room.
type visit struct{ *shell.Visit }

// in makes a page of this room one of the table.
func in(page func(*visit) error) func(*shell.Visit) error {
	return func(v *shell.Visit) error { return page(&visit{v}) }
}
