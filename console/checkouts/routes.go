package checkouts

import (
	"net/http"

	"till/console/shell"
	"till/people"
)

// Routes are the pages of this room, with who may.
var Routes = []shell.Route{
	{Method: http.MethodGet, Path: "/c/{client}/checkouts", For: shell.Staff, May: people.PaymentsSee, Handle: in((*visit).list)},
	{Method: http.MethodGet, Path: "/c/{client}/checkouts/new", For: shell.Staff, May: people.LinksManage, Handle: in((*visit).make)},
	{Method: http.MethodPost, Path: "/c/{client}/checkouts/new", For: shell.Staff, May: people.LinksManage, Handle: in((*visit).postMake)},
	{Method: http.MethodGet, Path: "/c/{client}/checkouts/{id}", For: shell.Staff, May: people.PaymentsSee, Handle: in((*visit).checkout)},
	{Method: http.MethodPost, Path: "/c/{client}/checkouts/{id}/cancel", For: shell.Staff, May: people.LinksManage, WhileSuspended: true, Handle: in((*visit).postCancel)},
	{Method: http.MethodGet, Path: "/c/{client}/links", For: shell.Staff, May: people.PaymentsSee, Handle: in((*visit).links)},
	{Method: http.MethodGet, Path: "/c/{client}/links/new", For: shell.Staff, May: people.LinksManage, Handle: in((*visit).newLink)},
	{Method: http.MethodPost, Path: "/c/{client}/links/new", For: shell.Staff, May: people.LinksManage, Handle: in((*visit).postNewLink)},
	{Method: http.MethodGet, Path: "/c/{client}/links/{id}", For: shell.Staff, May: people.PaymentsSee, Handle: in((*visit).link)},
	{Method: http.MethodGet, Path: "/c/{client}/links/{id}/print", For: shell.Staff, May: people.PaymentsSee, Handle: in((*visit).printLink)},
	{Method: http.MethodPost, Path: "/c/{client}/links/{id}/state", For: shell.Staff, May: people.LinksManage, WhileSuspended: true, Handle: in((*visit).postLinkState)},
	{Method: http.MethodPost, Path: "/c/{client}/links/{id}/title", For: shell.Staff, May: people.LinksManage, Handle: in((*visit).postLinkTitle)},
}
