package pay

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"till"
	"till/account"
	"till/checkout"
	"till/engine"
	"till/internal/door"
	"till/internal/limit"
	"till/internal/seal"
	"till/internal/watch"
	"till/store"
)

// Prefix is what the paths of all pages begin with.
const Prefix = "/p/"

// Handles reports whether a path is a page's. Codes hold it in capitals.
func Handles(path string) bool {
	return len(path) >= len(Prefix) && strings.EqualFold(path[:len(Prefix)], Prefix)
}

// Config is what pages are made from.
type Config struct {
	Store     *store.Store
	Checkouts *checkout.Checkouts
	Limits    *checkout.Limits
	Accounts  *account.Accounts
	Offer     func(*till.Client, *till.Method) engine.Offer
	// Told returns what the operator of a payment's connection says: the name that the payer's
	// phone shows, and what to dial if no prompt comes; "" for what is not known. nil: nothing is.
	Told      func(connection, method, country, currency string) (shown, dial string)
	TestQuota int64 // bytes that each test client may store; 0 means no limit
	Ring      *seal.Ring
	URL       string // where browsers open pages, without a path

	TrustedProxies []netip.Prefix
	Stopping       <-chan struct{} // closed when the service stops; nil: never
	Log            *slog.Logger
}

// The limits of pages, beside those of package checkout.
const (
	maxUnknown    = 20              // addresses that lead nowhere, of one network, before none is looked up
	unknownRefill = 3 * time.Second // then one more after each
	maxKnown      = 10_000          // addresses of pages that this instance remembers
	maxWaits      = 200             // answers that wait for a change at once
	maxBody       = 16 << 10        // bytes of a form
	viewTimeout   = 5 * time.Second
)

// Pages serves the pages. It is safe for concurrent use.
type Pages struct {
	c       Config
	forms   *seal.Sealer
	host    string
	secure  bool
	unknown *limit.Buckets[netip.Prefix]
	rush    *rush
	waits   chan struct{}
	watches *watch.Watches
	now     func() time.Time // tests replace it

	mu    sync.Mutex
	known map[string]bool // tokens of pages that exist
}

// New returns the pages of an installation.
func New(c Config) (*Pages, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	p := &Pages{c: c, host: u.Host, secure: u.Scheme == "https", waits: make(chan struct{}, maxWaits), watches: watch.New(c.Store, c.Stopping), now: time.Now, known: map[string]bool{}, rush: newRush(&c),
		unknown: limit.NewBuckets[netip.Prefix](maxUnknown, unknownRefill)}
	p.forms, err = c.Ring.BriefSealer("forms of pages to pay on")
	return p, err
}

// The refusals that have a page of their own.
var (
	errMissing = errors.New("no page at this address")
	errForeign = errors.New("the form is of another site")
	errMethod  = errors.New("no such method")
)

// ServeHTTP implements http.Handler.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.setHeaders(w.Header())
	ctx, cancel := context.WithTimeout(r.Context(), viewTimeout)
	defer cancel()
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	v := &visit{p: p, w: w, r: r.WithContext(ctx), lang: languageOf(r, "", "")}
	defer func() {
		if fault := recover(); fault != nil && fault != http.ErrAbortHandler { //nolint:errorlint // it is compared as net/http does
			p.c.Log.Error("page to pay on panicked", "panic", fault, "stack", string(debug.Stack()))
			v.plain(http.StatusServiceUnavailable, "away")
		}
	}()
	if err := v.route(); err != nil {
		v.fail(err)
	}
}

// setHeaders sets the headers of every answer. Referrer-Policy is same-origin: with
// no-referrer, browsers would send "Origin: null" with our own forms.
func (p *Pages) setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Robots-Tag", "noindex")
	h.Set("Vary", "Accept-Encoding, Accept-Language")
	if p.secure {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// route finds out what a path is and serves it.
func (v *visit) route() error {
	if !Handles(v.r.URL.Path) {
		return errMissing
	}
	parts := strings.Split(v.r.URL.Path[len(Prefix):], "/")
	token, ok := checkout.ParseToken(parts[0])
	if !ok || len(parts) > 2 {
		return errMissing
	}
	v.token = token
	rest := ""
	if len(parts) == 2 {
		rest = parts[1]
	}
	get := v.r.Method == http.MethodGet || v.r.Method == http.MethodHead
	switch {
	case rest == "" && get && len(parts) == 1:
		return v.show(nil)
	case rest == "" && v.r.Method == http.MethodPost && len(parts) == 1:
		return v.post()
	case rest == "qr.svg" && get:
		return v.qr()
	case rest == "report" && v.r.Method == http.MethodPost:
		return v.report()
	case rest != "" && rest != "report" && get:
		return v.showOwn(rest)
	case get:
		return errMissing
	}
	return errMethod
}

// fail answers with an error. What is no refusal is ours: it is logged, and the page says
// what is certain.
func (v *visit) fail(err error) {
	if context.Cause(v.r.Context()) == context.Canceled { //nolint:errorlint // the caller has gone
		return
	}
	switch {
	case errors.Is(err, errMissing), till.ErrorCode(err) == till.CodeCheckoutNotFound:
		v.plain(http.StatusNotFound, "missing")
	case errors.Is(err, errForeign):
		v.plain(http.StatusForbidden, "foreign")
	case errors.Is(err, errMethod):
		v.w.Header().Set("Allow", "GET, HEAD, POST")
		v.plain(http.StatusMethodNotAllowed, "missing")
	default:
		v.p.c.Log.Warn("page to pay on not served", "error", err)
		v.w.Header().Set("Retry-After", "5")
		v.plain(http.StatusServiceUnavailable, "away")
	}
}

// remember notes that a page exists.
func (p *Pages) remember(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) >= maxKnown {
		clear(p.known)
	}
	p.known[token] = true
}

func (p *Pages) isKnown(token string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[token]
}

// network returns what counts as the caller's address.
func (v *visit) network() netip.Prefix { return door.Network(door.Peer(v.r, v.p.c.TrustedProxies)) }

// foreign reports whether a form was sent from another site's page. Old browsers say
// neither where from nor how: a form without its seal does nothing.
func (v *visit) foreign() bool {
	switch v.r.Header.Get("Sec-Fetch-Site") {
	case "same-origin":
		return false
	case "cross-site", "same-site":
		return true
	}
	origin := v.r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || u.Host == "" || u.Host != v.r.Host && u.Host != v.p.host
}
