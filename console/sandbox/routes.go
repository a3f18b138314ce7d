package sandbox

import (
	"net/http"

	"till/console/shell"
	"till/people"
)

// Routes are the pages of this room, with who may.
var Routes = []shell.Route{
	{Method: http.MethodGet, Path: "/c/{client}/sandbox", For: shell.Staff, May: people.SandboxUse, TestOnly: true, Handle: in((*visit).sandbox)},
	{Method: http.MethodGet, Path: "/c/{client}/sandbox/phone", For: shell.Staff, May: people.SandboxUse, TestOnly: true, Handle: in((*visit).ownPhone)},
	{Method: http.MethodPost, Path: "/c/{client}/sandbox/order", For: shell.Staff, May: people.SandboxUse, TestOnly: true, Handle: in((*visit).placeOrder)},
	{Method: http.MethodPost, Path: "/c/{client}/sandbox/choose", For: shell.Staff, May: people.SandboxUse, TestOnly: true, WhileSuspended: true, Handle: in((*visit).chooseNumber)},
	{Method: http.MethodPost, Path: "/c/{client}/sandbox/answer", For: shell.Staff, May: people.SandboxUse, TestOnly: true, WhileSuspended: true, Handle: in((*visit).answerPrompt)},
	{Method: http.MethodPost, Path: "/c/{client}/sandbox/handset", For: shell.Staff, May: people.SandboxUse, TestOnly: true, WhileSuspended: true, Handle: in((*visit).setHandset)},
}
