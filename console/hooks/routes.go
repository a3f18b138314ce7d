package hooks

import (
	"net/http"

	"till/console/shell"
	"till/people"
)

// Routes are the pages of this room, with who may.
var Routes = []shell.Route{
	{Method: http.MethodGet, Path: "/c/{client}/webhooks", For: shell.Staff, May: people.WebhooksSee, Handle: in((*visit).webhooks)},
	{Method: http.MethodPost, Path: "/c/{client}/webhooks", For: shell.Staff, May: people.WebhooksManage, Fresh: true, Handle: in((*visit).postWebhook)},
	{Method: http.MethodGet, Path: "/c/{client}/webhooks/{endpoint}", For: shell.Staff, May: people.WebhooksSee, Handle: in((*visit).webhookEndpoint)},
	{Method: http.MethodGet, Path: "/c/{client}/webhooks/{endpoint}/events/{n}", For: shell.Staff, May: people.WebhooksSee, Handle: in((*visit).webhookEvent)},
	{Method: http.MethodPost, Path: "/c/{client}/webhooks/{endpoint}/edit", For: shell.Staff, May: people.WebhooksManage, Fresh: true, Handle: in((*visit).postEndpointEdit)},
	{Method: http.MethodPost, Path: "/c/{client}/webhooks/{endpoint}/state", For: shell.Staff, May: people.WebhooksManage, WhileSuspended: true, Handle: in((*visit).postEndpointState)},
	{Method: http.MethodPost, Path: "/c/{client}/webhooks/{endpoint}/rotate", For: shell.Staff, May: people.WebhooksManage, Fresh: true, Handle: in((*visit).postEndpointRotate)},
	{Method: http.MethodPost, Path: "/c/{client}/webhooks/{endpoint}/delete", For: shell.Staff, May: people.WebhooksManage, WhileSuspended: true, Handle: in((*visit).postEndpointDelete)},
	{Method: http.MethodPost, Path: "/c/{client}/webhooks/{endpoint}/test", For: shell.Staff, May: people.WebhooksResend, Handle: in((*visit).postEndpointTest)},
	{Method: http.MethodPost, Path: "/c/{client}/webhooks/{endpoint}/again", For: shell.Staff, May: people.WebhooksResend, Handle: in((*visit).postEndpointAgain)},
}
