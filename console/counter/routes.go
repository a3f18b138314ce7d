package counter

import (
	"net/http"

	"till/console/shell"
	"till/people"
)

// Routes are the pages of this room, with who may.
var Routes = []shell.Route{
	{Method: http.MethodGet, Path: "/c/{client}/payments/{id}/receipt", For: shell.Staff, May: people.PaymentsSee, Handle: in((*visit).receipt)},
	{Method: http.MethodGet, Path: "/c/{client}/collect", For: shell.Staff, May: people.Collect, Handle: in((*visit).collect)},
	{Method: http.MethodPost, Path: "/c/{client}/collect", For: shell.Staff, May: people.Collect, Handle: in((*visit).postCollect)},
	{Method: http.MethodGet, Path: "/c/{client}/collect/mine", For: shell.Staff, May: people.Collect, Handle: in((*visit).mine)},
	{Method: http.MethodGet, Path: "/c/{client}/collect/{id}", For: shell.Staff, May: people.Collect, Handle: in((*visit).collected)},
}
