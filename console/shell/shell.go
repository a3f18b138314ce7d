package shell

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"till"
	"till/account"
	"till/checkout"
	"till/collect"
	"till/console/assets"
	"till/internal/door"
	"till/internal/seal"
	"till/payout"
	"till/people"
	"till/provider/sandbox"
	"till/store"
	"till/store/lookup"
	"till/webhook"
)

// Config is what the console is made of.
type Config struct {
	Store     *store.Store
	People    *people.People
	Accounts  *account.Accounts
	Endpoints *webhook.Endpoints
	Secret    []byte     // the installation's root
	Ring      *seal.Ring // seals; nil means one generation, which is Secret

	// Collector, Payouts and Checkouts take what people ask for; Sandbox is the shop's and the
	// handset's; TestQuota is how many bytes a test merchant may store, 0 for any number.
	Collector *collect.Collector
	Payouts   *payout.Disburser
	Checkouts *checkout.Checkouts
	Sandbox   *sandbox.Operator
	TestQuota int64

	// BaseURL is how clients reach the API from outside. Origin is an address of
	// the console itself, "" where that has the origin of BaseURL.
	BaseURL string
	Origin  string

	// PhoneOrigin is where a phone in the same network reaches the handset, ""
	// where that is the console's origin.
	PhoneOrigin string

	// TrustedProxies are whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix

	// SubmitRate returns how many payments or payouts a second a connection
	// takes, 0 if there is no limit; nil means that nothing is known.
	SubmitRate func(connection string, kind till.SubjectKind) int

	Log *slog.Logger // nil means silence
}

// Rooms is what the shell is around: the pages, and the menus that lead to them.
type Rooms struct {
	Routes    []Route
	Phone     []Route      // of a handset, under PhonePrefix
	Menu      [][]MenuItem // of a merchant, in its groups
	HouseMenu []MenuItem
}

// Console is the pages as a handler. It is safe for concurrent use.
type Console struct {
	Config
	Site      string // https://pay.example.com
	Secure    bool   // browsers come by HTTPS
	mux       *http.ServeMux
	cross     *http.CrossOriginProtection
	addresses *seal.Sealer    // phones in addresses
	Phones    *seal.Sealer    // tokens of handsets on second devices
	Marks     lookup.PhoneKey // of the index of phones
	streams   *streams
	gate      *gate

	rooms Rooms

	// sessionOf returns who a cookie belongs to: People.Session, unless a test
	// says who visits.
	SessionOf func(v *Visit, token string) (*people.Session, error)
	Now       func() till.Time
}

// Prefix is where the console is mounted.
const Prefix = "/console"

// New returns the console.
func New(c Config, rooms Rooms) (*Console, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Ring == nil {
		c.Ring = seal.Single(c.Secret)
	}
	base, err := url.Parse(cmp.Or(c.Origin, c.BaseURL))
	if err != nil {
		return nil, fmt.Errorf("the base URL of the console: %w", err)
	}
	k := &Console{Config: c, mux: http.NewServeMux(), cross: http.NewCrossOriginProtection(), streams: newStreams(), gate: newGate(door.NewLog(c.Log)),
		Site: base.Scheme + "://" + base.Host, Secure: base.Scheme == "https", Now: c.Store.Now, rooms: rooms}
	k.SessionOf = func(v *Visit, token string) (*people.Session, error) {
		return c.People.Session(v.R.Context(), v.From, token)
	}
	if err := k.cross.AddTrustedOrigin(k.Site); err != nil {
		return nil, fmt.Errorf("the base URL of the console: %w", err)
	}
	if k.addresses, err = c.Ring.BriefSealer("console phones in addresses"); err != nil {
		return nil, err
	}
	if k.Phones, err = c.Ring.BriefSealer("console handsets on phones"); err != nil {
		return nil, err
	}
	for i := range rooms.Phone {
		r := &rooms.Phone[i]
		k.mux.HandleFunc(r.Method+" "+PhonePrefix+r.Path, func(w http.ResponseWriter, q *http.Request) { k.serve(w, q, r) })
	}
	if k.Marks, err = lookup.NewPhoneKey(c.Secret); err != nil {
		return nil, err
	}
	for _, group := range rooms.Menu {
		if err := k.findPages("/c/{client}", group); err != nil {
			return nil, err
		}
	}
	if err := k.findPages("", rooms.HouseMenu); err != nil {
		return nil, err
	}
	for i := range rooms.Routes {
		r := &rooms.Routes[i]
		k.mux.HandleFunc(r.Method+" "+Prefix+r.Path, func(w http.ResponseWriter, q *http.Request) { k.serve(w, q, r) })
	}
	k.mux.HandleFunc("GET "+assets.Prefix+"{name}", assets.Serve)
	k.mux.HandleFunc("/", func(w http.ResponseWriter, q *http.Request) { k.serve(w, q, &noRoute) })
	return k, nil
}

// Handles reports whether a path is the console's and not the API's.
func Handles(path string) bool {
	return path == Prefix || strings.HasPrefix(path, Prefix+"/") || strings.HasPrefix(path, PhonePrefix+"/")
}

// Stop ends the streams, which would keep a server from stopping, and writes what
// the log still lacks.
func (k *Console) Stop() {
	k.streams.stop()
	k.gate.refusals.Flush()
}

// readTimeout is how long the body of somebody who is signed in may take: people's
// lines are slow, and what they type must not be lost.
const readTimeout = 60 * time.Second

// maxForm is the largest body of a request, whatever its method.
const maxForm = 64 << 10

// ServeHTTP implements http.Handler.
func (k *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header(), k.Secure)
	if !k.reachable(r) && !forAnyone(r.URL.Path) {
		k.serve(w, r, &insecureRoute)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if foreignLoad(r) || k.cross.Check(r) != nil {
		k.refuseForeign(w, r)
		return
	}
	if r.URL.Path == Prefix {
		http.Redirect(w, r, Prefix+"/", http.StatusPermanentRedirect)
		return
	}
	k.mux.ServeHTTP(w, r)
}

// refuseForeign refuses what another site's page sends or loads. The log has the
// route's pattern: the path may hold the token of a link.
func (k *Console) refuseForeign(w http.ResponseWriter, r *http.Request) {
	_, pattern := k.mux.Handler(r)
	k.gate.refusals.Add(door.Refusal{Reason: "foreign_site", From: door.Peer(r, k.TrustedProxies), Status: http.StatusForbidden, Route: pattern, Origin: r.Header.Get("Origin"), Warn: true}, "")
	k.serve(w, r, &foreignRoute)
}

// reachable reports whether a session may travel over this connection: by
// HTTPS, or on this machine under a name of this machine.
func (k *Console) reachable(r *http.Request) bool { return k.Secure || door.Local(r) }

// PhonePrefix is where the handset is on a person's own phone.
const PhonePrefix = "/phone"

// forAnyone reports whether a path may travel over any connection: no session
// does, and nothing there is worth more than the token in it.
func forAnyone(path string) bool {
	return strings.HasPrefix(path, PhonePrefix+"/") || strings.HasPrefix(path, assets.Prefix)
}
