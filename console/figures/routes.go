package figures

import (
	"net/http"

	"till/console/shell"
	"till/people"
)

// Routes are the pages of this room, with who may.
var Routes = []shell.Route{
	{Method: http.MethodGet, Path: "/house", For: shell.House, May: people.OperatorsSee, Handle: in((*visit).house)},
	{Method: http.MethodGet, Path: "/c/{client}/home", For: shell.Staff, May: people.PaymentsSee, Handle: in((*visit).home)},
	{Method: http.MethodGet, Path: "/c/{client}/figures", For: shell.Staff, May: people.PaymentsSee, Handle: in((*visit).moreFigures)},
	{Method: http.MethodGet, Path: "/c/{client}/home.csv", For: shell.Staff, May: people.Export, Handle: in((*visit).homeCSV)},
}
