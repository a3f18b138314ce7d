package api

import (
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"

	"till"
	"till/account"
	"till/books"
	"till/checkout"
	"till/collect"
	"till/internal/door"
	"till/internal/quota"
	"till/internal/trace"
	"till/internal/watch"
	"till/meter"
	"till/payout"
	"till/provider/sandbox"
	"till/store"
	"till/webhook"
)

// Version is the revision of the interface, sent with every answer.
const Version = till.APIVersion

// Config configures the API.
type Config struct {
	Store     *store.Store
	Collector *collect.Collector
	Payouts   *payout.Disburser
	Checkouts *checkout.Checkouts
	Accounts  *account.Accounts
	Endpoints *webhook.Endpoints
	Sandbox   *sandbox.Operator // nil: none

	// BaseURL is the address at which clients reach the API; it ends in /v1. Location
	// headers begin with it.
	BaseURL string

	// ErrorPages is what the addresses of the pages about errors begin with; a code
	// follows. "" means that there are no pages.
	ErrorPages string

	// RateLimit is how many requests per second a client may send, with bursts of twice
	// that; 0 means no limit.
	RateLimit float64

	// TestQuota is how many bytes a test client may store; 0 means no limit.
	TestQuota int64

	// Strays records callbacks about unknown money; nil means that they are only logged.
	Strays *books.Strays

	// CallbackPolicies says how operators may call us, by connection.
	CallbackPolicies map[string]*CallbackPolicy
	// TrustedProxies are the networks whose X-Forwarded-For is trusted: for callbacks,
	// limits and the log.
	TrustedProxies []netip.Prefix

	// Ready, if not nil, returns why nothing can be served now. It is called before each
	// request, so it must be cheap.
	Ready func() error

	// Beside returns who answers a request that is not the API's, nil if nobody
	// does; nil means that nobody ever does.
	Beside func(r *http.Request) http.Handler

	Meter  *meter.Meter  // nil: nothing is counted
	Tracer *trace.Tracer // nil: nothing is traced
	Log    *slog.Logger  // nil: silence
}

// server is the API as a handler.
type server struct {
	Config
	mux     *http.ServeMux
	limits  *limits // nil: none
	polls   *inflight
	waits   *inflight
	exports *inflight
	watches *watch.Watches

	addressLimits *addressLimits
	refusalLog    *door.Log
	delays        *door.Delays

	bodies, callbacks, answers *quota.Quota

	counts *counts
}

// New returns the API. It serves /v1 and answers 404 elsewhere.
func New(c Config) http.Handler {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.BaseURL = strings.TrimSuffix(c.BaseURL, "/")
	s := &server{Config: c, mux: http.NewServeMux(), limits: newLimits(c.RateLimit),
		addressLimits: newAddressLimits(), refusalLog: door.NewLog(c.Log), delays: door.NewDelays(),
		polls: newInflight(maxPolls, maxClientPolls), waits: newInflight(maxWaits, maxClientWaits), exports: newInflight(maxExports, maxClientExports),
		bodies: quota.New(maxBodies, maxClientBodies), callbacks: quota.New(maxCallbacks, maxCallbacks), answers: quota.New(maxAnswers, maxClientAnswers)}
	s.watches = watch.New(c.Store, s.waits.stopping)
	s.counts = newCounts(s)
	for _, p := range paths() {
		s.mux.Handle("/v1"+p.pattern, &pathHandler{s, p})
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.(*exchange).failNoPath() })
	return s
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.Beside != nil {
		if other := s.Beside(r); other != nil {
			other.ServeHTTP(w, r)
			return
		}
	}
	s.counts.inFlight.Add(1)
	defer s.counts.inFlight.Add(-1)
	start := time.Now()
	c := &exchange{ResponseWriter: w, r: r, s: s, start: start, id: till.NewID(till.TimeOf(start)).String()}
	defer c.end()
	setCommonHeaders(w.Header(), c.id)
	if err := c.checkURL(); err != nil {
		c.fail(err)
		return
	}
	if !cleanPath(r) {
		c.failNoPath()
		return
	}
	s.mux.ServeHTTP(c, r)
}

var (
	apiVersion = []string{Version}
	noStore    = []string{"no-store"}
	noSniff    = []string{"nosniff"}
)

// setCommonHeaders sets the headers of every answer. Browsers must not guess another
// Content-Type: answers contain clients' texts.
func setCommonHeaders(h http.Header, id string) {
	h["X-Request-Id"] = []string{id}
	h["Api-Version"] = apiVersion
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
}

// cleanPath reports whether the mux accepts the path as it is. It would answer any other
// with a redirect of its own.
func cleanPath(r *http.Request) bool {
	p := r.URL.EscapedPath()
	return strings.HasPrefix(p, "/") && !strings.Contains(p, "//") && !strings.Contains(p, "/./") && !strings.Contains(p, "/../") &&
		!strings.HasSuffix(p, "/.") && !strings.HasSuffix(p, "/..")
}

// path is one path of the routes, with its methods.
type path struct {
	pattern string
	routes  map[string]*Route // by verb
	allow   []string
}

// paths groups the routes by path.
func paths() []*path {
	var out []*path
	byPattern := make(map[string]*path)
	for i := range Routes {
		rt := &Routes[i]
		p := byPattern[rt.Path]
		if p == nil {
			p = &path{pattern: rt.Path, routes: make(map[string]*Route)}
			byPattern[rt.Path] = p
			out = append(out, p)
		}
		p.routes[rt.Method] = rt
		verbs := rt.Method
		if rt.Method == http.MethodGet {
			p.routes[http.MethodHead] = rt
			verbs = "GET, HEAD"
		}
		if p.allow == nil {
			p.allow = []string{verbs}
		} else {
			p.allow[0] += ", " + verbs
		}
	}
	return out
}

// pathHandler serves one path.
type pathHandler struct {
	s *server
	p *path
}

// ServeHTTP implements http.Handler. The writer is the exchange that server.ServeHTTP made.
func (h *pathHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := w.(*exchange)
	rt := h.p.routes[r.Method]
	if rt == nil {
		c.Header()["Allow"] = h.p.allow
		c.fail(errNoMethod)
		return
	}
	c.r, c.route = r, rt
	err := c.authorizeAndRead()
	if err == nil {
		if c.session != nil { // anybody else could make us send spans
			c.caller = h.s.Tracer.Accept(r.Header["Traceparent"], c.start)
		}
		err = rt.handle(c)
	}
	if err != nil {
		c.fail(err)
	}
}

// end ends a call, also one that panicked. Then the client gets a plain 500, and the
// process lives.
func (c *exchange) end() {
	if v := recover(); v != nil {
		if v == http.ErrAbortHandler { // logged where it was decided
			c.release()
			c.served()
			panic(v)
		}
		c.logged = true
		c.s.Meter.Panicked("request")
		c.s.Log.Error("handler panicked", "panic", v, "request_id", c.id, "route", c.name(), "stack", string(debug.Stack()))
		if c.status != 0 {
			c.served()
			panic(http.ErrAbortHandler) // an incomplete answer must not look complete
		}
		c.fail(errPanic)
	}
	c.received = len(c.body())
	c.release()
	c.served()
}
