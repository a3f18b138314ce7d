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

	// TestOnly routes are 404 for live merchants.
	TestOnly bool

	handle func(v *visit) error
}

// Routes is every page and act of the console. Tests go through it with each
// role and with another merchant's person.
var Routes []Route

// The handlers look into the table for their menus, so it is filled here.
func init() {
	Routes = []Route{
		{Method: http.MethodGet, Path: "/{$}", For: SignedIn, handle: (*visit).start},
		{Method: http.MethodPost, Path: "/leave", For: SignedIn, handle: (*visit).leave},
		{Method: http.MethodPost, Path: "/me/language", For: SignedIn, handle: (*visit).setLanguage},

		{Method: http.MethodGet, Path: "/c/{client}", For: Staff, May: people.Member, handle: (*visit).clientStart},
		{Method: http.MethodGet, Path: "/c/{client}/payments", For: Staff, May: people.PaymentsSee, handle: (*visit).payments},
		{Method: http.MethodGet, Path: "/c/{client}/payments.csv", For: Staff, May: people.Export, handle: (*visit).paymentsCSV},
		{Method: http.MethodGet, Path: "/c/{client}/payouts.csv", For: Staff, May: people.WalletsSee, handle: (*visit).payoutsCSV},
		{Method: http.MethodGet, Path: "/c/{client}/payments/{id}", For: Staff, May: people.PaymentsSee, handle: (*visit).payment},
		{Method: http.MethodGet, Path: "/c/{client}/payouts", For: Staff, May: people.WalletsSee, handle: (*visit).payouts},
		{Method: http.MethodGet, Path: "/c/{client}/payouts/{id}", For: Staff, May: people.WalletsSee, handle: (*visit).payout},
		{Method: http.MethodPost, Path: "/c/{client}/search", For: Staff, May: people.PaymentsSee, handle: (*visit).postSearch},
		{Method: http.MethodGet, Path: "/c/{client}/search", For: Staff, May: people.PaymentsSee, handle: (*visit).search},
		{Method: http.MethodGet, Path: "/c/{client}/live", For: Staff, May: people.Member, handle: (*visit).live},
	}
}

// What is answered outside of the table.
var (
	noRoute       = Route{handle: func(*visit) error { return errNoPage }}
	insecureRoute = Route{handle: func(*visit) error { return errInsecure }}
	foreignRoute  = Route{handle: func(*visit) error { return errForeign }}
)
