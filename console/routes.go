package console

import (
	"net/http"
	"slices"

	"till/console/access"
	"till/console/checkouts"
	"till/console/counter"
	"till/console/figures"
	"till/console/hooks"
	"till/console/money"
	"till/console/sandbox"
	"till/console/shell"
	"till/people"
)

// Routes is every page and act of the console: those of the rooms, each in its routes.go,
// and the live hints. Tests go through it with each role and with another merchant's person.
var Routes = slices.Concat(access.Routes, money.Routes, figures.Routes, counter.Routes, checkouts.Routes, hooks.Routes, sandbox.Routes, []shell.Route{
	{Method: http.MethodGet, Path: "/c/{client}/live", For: shell.Staff, May: people.Member, Stream: true, Handle: (*shell.Visit).Live},
})
