package access

import (
	"net/http"

	"till/console/shell"
	"till/people"
)

// Routes are the pages of this room, with who may.
var Routes = []shell.Route{
	{Method: http.MethodGet, Path: "/{$}", For: shell.SignedIn, Handle: in((*visit).start)},
	{Method: http.MethodPost, Path: "/leave", For: shell.SignedIn, Handle: in((*visit).leave)},
	{Method: http.MethodGet, Path: "/enter", For: shell.Everyone, Handle: in((*visit).enter)},
	{Method: http.MethodPost, Path: "/enter", For: shell.Everyone, Handle: in((*visit).postEnter)},
	{Method: http.MethodPost, Path: "/enter/code", For: shell.Everyone, Handle: in((*visit).postCode)},
	{Method: http.MethodPost, Path: "/enter/passkey", For: shell.Everyone, Handle: in((*visit).postPasskey)},
	{Method: http.MethodPost, Path: "/enter/as", For: shell.Everyone, Handle: in((*visit).postDemo)},
	{Method: http.MethodGet, Path: "/enter/{token}", For: shell.Everyone, Handle: in((*visit).enterDemo)},
	{Method: http.MethodGet, Path: "/join/{token}", For: shell.Everyone, Handle: in((*visit).join)},
	{Method: http.MethodPost, Path: "/join/{token}", For: shell.Everyone, Handle: in((*visit).postJoin)},
	{Method: http.MethodPost, Path: "/join/{token}/passkey", For: shell.Everyone, Handle: in((*visit).postJoinPasskey)},
	{Method: http.MethodPost, Path: "/join/{token}/accept", For: shell.SignedIn, Handle: in((*visit).postAccept)},
	{Method: http.MethodGet, Path: "/me", For: shell.SignedIn, Handle: in((*visit).me)},
	{Method: http.MethodPost, Path: "/me", For: shell.SignedIn, Handle: in((*visit).postMe)},
	{Method: http.MethodPost, Path: "/me/prove", For: shell.SignedIn, Fresh: true, Handle: in((*visit).postProve)},
	{Method: http.MethodPost, Path: "/me/password", For: shell.SignedIn, Handle: in((*visit).postPassword)},
	{Method: http.MethodGet, Path: "/me/totp", For: shell.SignedIn, Handle: in((*visit).totp)},
	{Method: http.MethodPost, Path: "/me/totp", For: shell.SignedIn, Handle: in((*visit).postTOTP)},
	{Method: http.MethodPost, Path: "/me/totp/remove", For: shell.SignedIn, Handle: in((*visit).postTOTPRemove)},
	{Method: http.MethodPost, Path: "/me/codes", For: shell.SignedIn, Handle: in((*visit).postCodes)},
	{Method: http.MethodGet, Path: "/me/passkey", For: shell.SignedIn, Handle: in((*visit).newPasskey)},
	{Method: http.MethodPost, Path: "/me/passkey", For: shell.SignedIn, Handle: in((*visit).postNewPasskey)},
	{Method: http.MethodPost, Path: "/me/passkey/remove", For: shell.SignedIn, Handle: in((*visit).postPasskeyRemove)},
	{Method: http.MethodPost, Path: "/me/sessions", For: shell.SignedIn, Handle: in((*visit).postSessions)},
	{Method: http.MethodGet, Path: "/roles", For: shell.SignedIn, Handle: in((*visit).roles)},
	{Method: http.MethodGet, Path: "/house/people", For: shell.House, May: people.HousePeople, Handle: in((*visit).people)},
	{Method: http.MethodPost, Path: "/house/people/invite", For: shell.House, May: people.HousePeople, Fresh: true, Handle: in((*visit).postInvite)},
	{Method: http.MethodPost, Path: "/house/people/withdraw", For: shell.House, May: people.HousePeople, Fresh: true, Handle: in((*visit).postWithdraw)},
	{Method: http.MethodPost, Path: "/house/people/role", For: shell.House, May: people.HousePeople, Fresh: true, Handle: in((*visit).postRole)},
	{Method: http.MethodPost, Path: "/house/people/reset", For: shell.House, May: people.HousePeople, Fresh: true, Handle: in((*visit).postReset)},
	{Method: http.MethodPost, Path: "/house/people/end", For: shell.House, May: people.HousePeople, Fresh: true, Handle: in((*visit).postEnd)},
	{Method: http.MethodPost, Path: "/house/people/disable", For: shell.House, May: people.HousePeople, Fresh: true, Handle: in((*visit).postDisable)},
	{Method: http.MethodGet, Path: "/c/{client}/people", For: shell.Staff, May: people.PeopleManage, Handle: in((*visit).people)},
	{Method: http.MethodPost, Path: "/c/{client}/people/invite", For: shell.Staff, May: people.PeopleManage, Fresh: true, Handle: in((*visit).postInvite)},
	{Method: http.MethodPost, Path: "/c/{client}/people/withdraw", For: shell.Staff, May: people.PeopleManage, Fresh: true, WhileSuspended: true, Handle: in((*visit).postWithdraw)},
	{Method: http.MethodPost, Path: "/c/{client}/people/role", For: shell.Staff, May: people.PeopleManage, Fresh: true, WhileSuspended: true, Handle: in((*visit).postRole)},
	{Method: http.MethodPost, Path: "/c/{client}/people/reset", For: shell.Staff, May: people.PeopleManage, Fresh: true, Handle: in((*visit).postReset)},
	{Method: http.MethodPost, Path: "/c/{client}/people/end", For: shell.Staff, May: people.PeopleManage, Fresh: true, WhileSuspended: true, Handle: in((*visit).postEnd)},
	{Method: http.MethodPost, Path: "/c/{client}/people/factor", For: shell.Staff, May: people.PolicySet, Fresh: true, Handle: in((*visit).postFactor)},
	{Method: http.MethodPost, Path: "/me/language", For: shell.SignedIn, Handle: in((*visit).setLanguage)},
	{Method: http.MethodGet, Path: "/c/{client}", For: shell.Staff, May: people.Member, Handle: in((*visit).clientStart)},
	{Method: http.MethodGet, Path: "/c/{client}/keys", For: shell.Staff, May: people.KeysManage, Handle: in((*visit).keys)},
	{Method: http.MethodPost, Path: "/c/{client}/keys", For: shell.Staff, May: people.KeysManage, Fresh: true, Handle: in((*visit).postKey)},
	{Method: http.MethodPost, Path: "/c/{client}/keys/rotate", For: shell.Staff, May: people.KeysManage, Fresh: true, Handle: in((*visit).postKeyRotate)},
	{Method: http.MethodPost, Path: "/c/{client}/keys/revoke", For: shell.Staff, May: people.KeysManage, Fresh: true, WhileSuspended: true, Handle: in((*visit).postKeyRevoke)},
	{Method: http.MethodGet, Path: "/c/{client}/audit", For: shell.Staff, May: people.AuditSee, Handle: in((*visit).audit)},
	{Method: http.MethodGet, Path: "/c/{client}/audit.csv", For: shell.Staff, May: people.AuditSee, Handle: in((*visit).auditCSV)},
	{Method: http.MethodGet, Path: "/house/audit", For: shell.House, May: people.HouseAudit, Handle: in((*visit).audit)},
	{Method: http.MethodGet, Path: "/house/audit.csv", For: shell.House, May: people.HouseAudit, Handle: in((*visit).auditCSV)},
	{Method: http.MethodGet, Path: "/c/{client}/settings", For: shell.Staff, May: people.WalletsSee, Handle: in((*visit).settings)},
	{Method: http.MethodPost, Path: "/c/{client}/settings", For: shell.Staff, May: people.PolicySet, Fresh: true, Handle: in((*visit).postSettings)},
}
