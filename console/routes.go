package console

import (
	"net/http"

	"till/people"
)

// Audience is who a route is for.
type Audience int

// The audiences.
const (
	Everyone Audience = iota // needs no session
	SignedIn                 // any person
	Staff                    // a role with the {client} of the path, or a look of the house
	House                    // a role of the house
)

// Route is one page or act of the console.
type Route struct {
	Method string // GET answers HEAD too
	Path   string // under Prefix, as http.ServeMux takes it
	For    Audience
	May    people.Permission // what the person must be allowed; Member: any role will do
	Fresh  bool              // the act needs fresh proof; see visit.checkProof

	// Stream is answered until the person leaves.
	Stream bool

	// TestOnly routes are 404 for live merchants.
	TestOnly bool

	// WhileSuspended says that an act works for a suspended merchant: it neither
	// moves money nor gives access. Pages to read always work.
	WhileSuspended bool

	handle func(v *visit) error
}

// Routes is every page and act of the console. Tests go through it with each
// role and with another merchant's person.
var Routes = []Route{
	{Method: http.MethodGet, Path: "/{$}", For: SignedIn, handle: (*visit).start},
	{Method: http.MethodPost, Path: "/leave", For: SignedIn, handle: (*visit).leave},
	{Method: http.MethodGet, Path: "/enter", For: Everyone, handle: (*visit).enter},
	{Method: http.MethodPost, Path: "/enter", For: Everyone, handle: (*visit).postEnter},
	{Method: http.MethodPost, Path: "/enter/code", For: Everyone, handle: (*visit).postCode},
	{Method: http.MethodPost, Path: "/enter/passkey", For: Everyone, handle: (*visit).postPasskey},
	{Method: http.MethodPost, Path: "/enter/as", For: Everyone, handle: (*visit).postDemo},
	{Method: http.MethodGet, Path: "/enter/{token}", For: Everyone, handle: (*visit).enterDemo},
	{Method: http.MethodGet, Path: "/join/{token}", For: Everyone, handle: (*visit).join},
	{Method: http.MethodPost, Path: "/join/{token}", For: Everyone, handle: (*visit).postJoin},
	{Method: http.MethodPost, Path: "/join/{token}/passkey", For: Everyone, handle: (*visit).postJoinPasskey},
	{Method: http.MethodPost, Path: "/join/{token}/accept", For: SignedIn, handle: (*visit).postAccept},

	{Method: http.MethodGet, Path: "/me", For: SignedIn, handle: (*visit).me},
	{Method: http.MethodPost, Path: "/me", For: SignedIn, handle: (*visit).postMe},
	{Method: http.MethodPost, Path: "/me/prove", For: SignedIn, Fresh: true, handle: (*visit).postProve},
	{Method: http.MethodPost, Path: "/me/password", For: SignedIn, handle: (*visit).postPassword},
	{Method: http.MethodGet, Path: "/me/totp", For: SignedIn, handle: (*visit).totp},
	{Method: http.MethodPost, Path: "/me/totp", For: SignedIn, handle: (*visit).postTOTP},
	{Method: http.MethodPost, Path: "/me/totp/remove", For: SignedIn, handle: (*visit).postTOTPRemove},
	{Method: http.MethodPost, Path: "/me/codes", For: SignedIn, handle: (*visit).postCodes},
	{Method: http.MethodGet, Path: "/me/passkey", For: SignedIn, handle: (*visit).newPasskey},
	{Method: http.MethodPost, Path: "/me/passkey", For: SignedIn, handle: (*visit).postNewPasskey},
	{Method: http.MethodPost, Path: "/me/passkey/remove", For: SignedIn, handle: (*visit).postPasskeyRemove},
	{Method: http.MethodPost, Path: "/me/sessions", For: SignedIn, handle: (*visit).postSessions},
	{Method: http.MethodGet, Path: "/roles", For: SignedIn, handle: (*visit).roles},

	{Method: http.MethodGet, Path: "/house", For: House, May: people.OperatorsSee, handle: (*visit).house},
	{Method: http.MethodGet, Path: "/house/search", For: House, May: people.ClientsLook, handle: (*visit).search},
	{Method: http.MethodPost, Path: "/house/search", For: House, May: people.ClientsLook, handle: (*visit).postSearch},
	{Method: http.MethodGet, Path: "/house/people", For: House, May: people.HousePeople, handle: (*visit).people},
	{Method: http.MethodPost, Path: "/house/people/invite", For: House, May: people.HousePeople, Fresh: true, handle: (*visit).postInvite},
	{Method: http.MethodPost, Path: "/house/people/withdraw", For: House, May: people.HousePeople, Fresh: true, handle: (*visit).postWithdraw},
	{Method: http.MethodPost, Path: "/house/people/role", For: House, May: people.HousePeople, Fresh: true, handle: (*visit).postRole},
	{Method: http.MethodPost, Path: "/house/people/reset", For: House, May: people.HousePeople, Fresh: true, handle: (*visit).postReset},
	{Method: http.MethodPost, Path: "/house/people/end", For: House, May: people.HousePeople, Fresh: true, handle: (*visit).postEnd},
	{Method: http.MethodPost, Path: "/house/people/disable", For: House, May: people.HousePeople, Fresh: true, handle: (*visit).postDisable},

	{Method: http.MethodGet, Path: "/c/{client}/people", For: Staff, May: people.PeopleManage, handle: (*visit).people},
	{Method: http.MethodPost, Path: "/c/{client}/people/invite", For: Staff, May: people.PeopleManage, Fresh: true, handle: (*visit).postInvite},
	{Method: http.MethodPost, Path: "/c/{client}/people/withdraw", For: Staff, May: people.PeopleManage, Fresh: true, WhileSuspended: true, handle: (*visit).postWithdraw},
	{Method: http.MethodPost, Path: "/c/{client}/people/role", For: Staff, May: people.PeopleManage, Fresh: true, WhileSuspended: true, handle: (*visit).postRole},
	{Method: http.MethodPost, Path: "/c/{client}/people/reset", For: Staff, May: people.PeopleManage, Fresh: true, handle: (*visit).postReset},
	{Method: http.MethodPost, Path: "/c/{client}/people/end", For: Staff, May: people.PeopleManage, Fresh: true, WhileSuspended: true, handle: (*visit).postEnd},
	{Method: http.MethodPost, Path: "/c/{client}/people/factor", For: Staff, May: people.PolicySet, Fresh: true, handle: (*visit).postFactor},

	{Method: http.MethodPost, Path: "/me/language", For: SignedIn, handle: (*visit).setLanguage},

	{Method: http.MethodGet, Path: "/c/{client}", For: Staff, May: people.Member, handle: (*visit).clientStart},
	{Method: http.MethodGet, Path: "/c/{client}/home", For: Staff, May: people.PaymentsSee, handle: (*visit).home},
	{Method: http.MethodGet, Path: "/c/{client}/figures", For: Staff, May: people.PaymentsSee, handle: (*visit).moreFigures},
	{Method: http.MethodGet, Path: "/c/{client}/home.csv", For: Staff, May: people.Export, handle: (*visit).homeCSV},
	{Method: http.MethodGet, Path: "/c/{client}/payments", For: Staff, May: people.PaymentsSee, handle: (*visit).payments},
	{Method: http.MethodGet, Path: "/c/{client}/payments.csv", For: Staff, May: people.Export, handle: (*visit).paymentsCSV},
	{Method: http.MethodGet, Path: "/c/{client}/payouts.csv", For: Staff, May: people.WalletsSee, handle: (*visit).payoutsCSV},
	{Method: http.MethodGet, Path: "/c/{client}/payments/export", For: Staff, May: people.ExportPhones, handle: (*visit).paymentsExport},
	{Method: http.MethodPost, Path: "/c/{client}/payments/export", For: Staff, May: people.ExportPhones, Fresh: true, WhileSuspended: true, handle: (*visit).paymentsExport},
	{Method: http.MethodGet, Path: "/c/{client}/payouts/export", For: Staff, May: people.ExportPhones, handle: (*visit).payoutsExport},
	{Method: http.MethodPost, Path: "/c/{client}/payouts/export", For: Staff, May: people.ExportPhones, Fresh: true, WhileSuspended: true, handle: (*visit).payoutsExport},
	{Method: http.MethodGet, Path: "/c/{client}/payments/{id}", For: Staff, May: people.PaymentsSee, handle: (*visit).payment},
	{Method: http.MethodGet, Path: "/c/{client}/payments/{id}/receipt", For: Staff, May: people.Collect, handle: (*visit).receipt},
	{Method: http.MethodGet, Path: "/c/{client}/payments/{id}/note", For: Staff, May: people.NotesWrite, handle: (*visit).paymentNote},
	{Method: http.MethodPost, Path: "/c/{client}/payments/{id}/note", For: Staff, May: people.NotesWrite, WhileSuspended: true, handle: (*visit).paymentNote},
	{Method: http.MethodGet, Path: "/c/{client}/payouts/{id}/note", For: Staff, May: people.NotesWrite, handle: (*visit).payoutNote},
	{Method: http.MethodPost, Path: "/c/{client}/payouts/{id}/note", For: Staff, May: people.NotesWrite, WhileSuspended: true, handle: (*visit).payoutNote},
	{Method: http.MethodGet, Path: "/c/{client}/collect", For: Staff, May: people.Collect, handle: (*visit).collect},
	{Method: http.MethodPost, Path: "/c/{client}/collect", For: Staff, May: people.Collect, handle: (*visit).postCollect},
	{Method: http.MethodGet, Path: "/c/{client}/collect/mine", For: Staff, May: people.Collect, handle: (*visit).mine},
	{Method: http.MethodGet, Path: "/c/{client}/collect/{id}", For: Staff, May: people.Collect, handle: (*visit).collected},
	{Method: http.MethodGet, Path: "/c/{client}/payouts", For: Staff, May: people.WalletsSee, handle: (*visit).payouts},
	{Method: http.MethodGet, Path: "/c/{client}/payouts/{id}", For: Staff, May: people.WalletsSee, handle: (*visit).payout},
	{Method: http.MethodGet, Path: "/c/{client}/wallets", For: Staff, May: people.WalletsSee, handle: (*visit).wallets},
	{Method: http.MethodGet, Path: "/c/{client}/wallets/{currency}", For: Staff, May: people.WalletsSee, handle: (*visit).statement},
	{Method: http.MethodGet, Path: "/c/{client}/wallets/{currency}/statement.csv", For: Staff, May: people.WalletsSee, handle: (*visit).statementCSV},
	{Method: http.MethodPost, Path: "/c/{client}/search", For: Staff, May: people.PaymentsSee, WhileSuspended: true, handle: (*visit).postSearch},
	{Method: http.MethodGet, Path: "/c/{client}/search", For: Staff, May: people.PaymentsSee, handle: (*visit).search},
	{Method: http.MethodGet, Path: "/c/{client}/webhooks", For: Staff, May: people.WebhooksSee, handle: (*visit).webhooks},
	{Method: http.MethodPost, Path: "/c/{client}/webhooks", For: Staff, May: people.WebhooksManage, Fresh: true, handle: (*visit).postWebhook},
	{Method: http.MethodGet, Path: "/c/{client}/webhooks/{endpoint}", For: Staff, May: people.WebhooksSee, handle: (*visit).webhookEndpoint},
	{Method: http.MethodGet, Path: "/c/{client}/webhooks/{endpoint}/events/{n}", For: Staff, May: people.WebhooksSee, handle: (*visit).webhookEvent},
	{Method: http.MethodPost, Path: "/c/{client}/webhooks/{endpoint}/edit", For: Staff, May: people.WebhooksManage, Fresh: true, handle: (*visit).postEndpointEdit},
	{Method: http.MethodPost, Path: "/c/{client}/webhooks/{endpoint}/state", For: Staff, May: people.WebhooksManage, WhileSuspended: true, handle: (*visit).postEndpointState},
	{Method: http.MethodPost, Path: "/c/{client}/webhooks/{endpoint}/rotate", For: Staff, May: people.WebhooksManage, Fresh: true, handle: (*visit).postEndpointRotate},
	{Method: http.MethodPost, Path: "/c/{client}/webhooks/{endpoint}/delete", For: Staff, May: people.WebhooksManage, WhileSuspended: true, handle: (*visit).postEndpointDelete},
	{Method: http.MethodPost, Path: "/c/{client}/webhooks/{endpoint}/test", For: Staff, May: people.WebhooksResend, handle: (*visit).postEndpointTest},
	{Method: http.MethodPost, Path: "/c/{client}/webhooks/{endpoint}/again", For: Staff, May: people.WebhooksResend, handle: (*visit).postEndpointAgain},
	{Method: http.MethodGet, Path: "/c/{client}/keys", For: Staff, May: people.KeysManage, handle: (*visit).keys},
	{Method: http.MethodPost, Path: "/c/{client}/keys", For: Staff, May: people.KeysManage, Fresh: true, handle: (*visit).postKey},
	{Method: http.MethodPost, Path: "/c/{client}/keys/rotate", For: Staff, May: people.KeysManage, Fresh: true, handle: (*visit).postKeyRotate},
	{Method: http.MethodPost, Path: "/c/{client}/keys/revoke", For: Staff, May: people.KeysManage, Fresh: true, WhileSuspended: true, handle: (*visit).postKeyRevoke},
	{Method: http.MethodGet, Path: "/c/{client}/audit", For: Staff, May: people.AuditSee, handle: (*visit).audit},
	{Method: http.MethodGet, Path: "/c/{client}/audit.csv", For: Staff, May: people.AuditSee, handle: (*visit).auditCSV},
	{Method: http.MethodGet, Path: "/house/audit", For: House, May: people.HouseAudit, handle: (*visit).audit},
	{Method: http.MethodGet, Path: "/house/audit.csv", For: House, May: people.HouseAudit, handle: (*visit).auditCSV},
	{Method: http.MethodGet, Path: "/c/{client}/settings", For: Staff, May: people.WalletsSee, handle: (*visit).settings},
	{Method: http.MethodPost, Path: "/c/{client}/settings", For: Staff, May: people.PolicySet, Fresh: true, handle: (*visit).postSettings},
	{Method: http.MethodPost, Path: "/c/{client}/payments/{id}/phone", For: Staff, May: people.PhonesSee, WhileSuspended: true, handle: (*visit).revealPayment},
	{Method: http.MethodPost, Path: "/c/{client}/payouts/{id}/phone", For: Staff, May: people.PhonesSee, WhileSuspended: true, handle: (*visit).revealPayout},
	{Method: http.MethodGet, Path: "/c/{client}/sandbox", For: Staff, May: people.SandboxUse, TestOnly: true, handle: (*visit).sandbox},
	{Method: http.MethodGet, Path: "/c/{client}/sandbox/phone", For: Staff, May: people.SandboxUse, TestOnly: true, handle: (*visit).ownPhone},
	{Method: http.MethodPost, Path: "/c/{client}/sandbox/order", For: Staff, May: people.SandboxUse, TestOnly: true, handle: (*visit).placeOrder},
	{Method: http.MethodPost, Path: "/c/{client}/sandbox/choose", For: Staff, May: people.SandboxUse, TestOnly: true, WhileSuspended: true, handle: (*visit).chooseNumber},
	{Method: http.MethodPost, Path: "/c/{client}/sandbox/answer", For: Staff, May: people.SandboxUse, TestOnly: true, WhileSuspended: true, handle: (*visit).answerPrompt},
	{Method: http.MethodPost, Path: "/c/{client}/sandbox/handset", For: Staff, May: people.SandboxUse, TestOnly: true, WhileSuspended: true, handle: (*visit).setHandset},
	{Method: http.MethodGet, Path: "/c/{client}/live", For: Staff, May: people.Member, Stream: true, handle: (*visit).live},
}

// What is answered outside of the table.
var (
	noRoute       = Route{handle: func(*visit) error { return errNoPage }}
	insecureRoute = Route{handle: func(*visit) error { return errInsecure }}
	foreignRoute  = Route{handle: func(*visit) error { return errForeign }}
)
