package console

import "till/console/shell"

// New returns the console.
func New(c shell.Config) (*shell.Console, error) {
	return shell.New(c, shell.Rooms{Routes: Routes, Phone: phoneRoutes, Menu: clientMenu(), HouseMenu: houseMenu()})
}

// visit is a visit to one of these pages.
type visit struct{ *shell.Visit }

// in makes a page of this package one of the table.
func in(page func(*visit) error) func(*shell.Visit) error {
	return func(v *shell.Visit) error { return page(&visit{v}) }
}
