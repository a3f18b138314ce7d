package console

import (
	"till/console/sandbox"
	"till/console/shell"
)

// New returns the console.
func New(c shell.Config) (*shell.Console, error) {
	return shell.New(c, shell.Rooms{Routes: Routes, Phone: sandbox.Phone, Menu: clientMenu(), HouseMenu: houseMenu()})
}
