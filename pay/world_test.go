package pay

import (
	"context"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"till"
	"till/account"
	"till/checkout"
	"till/collect"
	"till/engine"
	"till/internal/jsonx"
	"till/internal/seal"
	"till/provider"
	"till/provider/sandbox"
	"till/store"
	"till/store/storetest"
)

// world is the pages in one process with the sandbox operator, in virtual time: the real
// handler, the real store, nothing mocked.
type world struct {
	t         *testing.T
	store     *store.Store
	operator  *sandbox.Operator
	way       *way
	collector *collect.Collector
	checkouts *checkout.Checkouts
	accounts  *account.Accounts
	pages     *Pages
	client    *till.Client
	stop      func()
	from      string // the browser's address
	language  string
	away      bool // the database was closed
}

// way is the network to the operator, which counts what is asked.
type way struct {
	provider.Provider
	submits atomic.Int64
}

func (y *way) Submit(ctx context.Context, r provider.Request) (provider.Result, error) {
	y.submits.Add(1)
	return y.Provider.Submit(ctx, r)
}

const secret = "a secret for tests"

func inWorld(t *testing.T, tell func(t *testing.T, w *world)) {
	t.Helper()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			database := e.Config(t)
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, database)
				defer w.close()
				tell(t, w)
			})
		})
	}
}

func newWorld(t *testing.T, database store.Config) *world {
	t.Helper()
	ctx := context.Background()
	w := &world{t: t, from: "203.0.113.7:1000", language: "en"}
	database.Now = func() till.Time { return till.TimeOf(time.Now()) }
	database.NoNotify = true // to wait on the network would stop the time here
	var err error
	if w.store, err = store.Open(ctx, database); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	w.operator, err = sandbox.Open(ctx, sandbox.Config{Path: filepath.Join(t.TempDir(), "sandbox.db"), Window: 10 * time.Second, Post: w.post, PollInterval: 12 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	w.way = &way{Provider: w.operator}
	w.accounts = account.New(w.store, nil)
	if w.client, _, err = w.accounts.CreateClient(ctx, "Boulangerie Mapassa", till.Test, "command:test"); err != nil {
		t.Fatal(err)
	}
	if err := w.accounts.SetProfile(ctx, &till.Profile{ClientID: w.client.ID, Zone: "Africa/Brazzaville", Country: "CG"}, "command:test"); err != nil {
		t.Fatal(err)
	}
	storetest.AllowRefunds(t, w.store) // the newest level
	w.start()
	return w
}

func (w *world) start() {
	w.collector = collect.New(engine.Config{
		Store: w.store, Secret: []byte(secret),
		Connections:  map[string]provider.Provider{"sandbox": w.way},
		Routes:       engine.ByMode(func(till.Mode, string, string, string) string { return "sandbox" }),
		CallbackBase: "http://till.test/v1/callbacks", PollInterval: 12 * time.Hour,
	})
	limits, err := checkout.NewLimits([]byte(secret))
	if err != nil {
		w.t.Fatal(err)
	}
	w.checkouts = checkout.New(checkout.Config{Store: w.store, Collector: w.collector, Secret: []byte(secret), PageURL: "https://pay.till.test", Hosts: []string{"pay.till.test"},
		FollowEvery: time.Minute, Limit: limits.Limit, Opening: limits.Opening, Blocked: limits.Blocked,
		Ended: func(ctx context.Context, a *till.Ask, why till.FailureReason) error {
			return limits.Note(ctx, w.store, a, why)
		}})
	if w.pages, err = New(Config{Store: w.store, Checkouts: w.checkouts, Limits: limits, Accounts: w.accounts, Offer: w.collector.Offer, Ring: seal.Single([]byte(secret)), URL: "https://pay.till.test"}); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 3)
	go func() { w.checkouts.Follow(ctx); done <- struct{}{} }()
	go func() { w.collector.Run(ctx); done <- struct{}{} }()
	go func() { w.operator.Run(ctx); done <- struct{}{} }()
	w.stop = func() {
		cancel()
		for range cap(done) {
			<-done
		}
		if err := w.collector.Close(context.Background()); err != nil {
			w.t.Error(err)
		}
	}
}

func (w *world) close() {
	w.stop()
	if w.away {
		return
	}
	storetest.CheckInvariants(w.t, w.store)
	w.operator.Close()
	w.store.Close()
}

// post is the way of a callback from the operator to us.
func (w *world) post(ctx context.Context, url string, body []byte) error {
	parts := strings.Split(url, "/")
	ref, ok := w.collector.ParseCallbackToken(parts[len(parts)-2], parts[len(parts)-1])
	if !ok {
		w.t.Errorf("a callback URL that is not ours: %s", url)
	}
	return w.collector.RecordCallback(ctx, "", ref, nil)
}

// open makes a checkout and returns the path of its page.
func (w *world) open(more string) string {
	w.t.Helper()
	c, err := w.create(more, w.client)
	if err != nil {
		w.t.Fatal(err)
	}
	return Prefix + c.Checkout.Token
}

// create makes a checkout of a client.
func (w *world) create(more string, client *till.Client) (checkout.Created, error) {
	w.t.Helper()
	r := &checkout.Request{}
	body := `{"amount":{"value":"5000","currency":"XAF"},"idempotency_key":"` + till.NewID(till.TimeOf(time.Now())).String() + `","reference":"ORDER-1042"` + more + `}`
	if err := jsonx.Decode([]byte(body), r); err != nil {
		w.t.Fatal(err)
	}
	who := engine.Client{Client: client, Actor: "api:test", Enabled: func(string) bool { return true }}
	return w.checkouts.Create(context.Background(), who, r)
}

// answer is what a browser got.
type answer struct {
	status int
	header http.Header
	body   string
	zipped int
}

// do sends a request as a small browser does.
func (w *world) do(method, path string, form url.Values, change ...func(*http.Request)) answer {
	w.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequest(method, "https://pay.till.test"+path, body)
	r.RemoteAddr = w.from
	r.Header.Set("Accept-Language", w.language)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, f := range change {
		f(r)
	}
	rec := httptest.NewRecorder()
	w.pages.ServeHTTP(rec, r)
	a := answer{status: rec.Code, header: rec.Header(), body: rec.Body.String()}
	r2 := httptest.NewRequest(http.MethodGet, "https://pay.till.test"+path, nil)
	if method == http.MethodGet {
		r2.RemoteAddr = w.from
		r2.Header = r.Header.Clone()
		r2.Header.Set("Accept-Encoding", "gzip")
		rec = httptest.NewRecorder()
		w.pages.ServeHTTP(rec, r2)
		a.zipped = rec.Body.Len()
	}
	return a
}

func (w *world) get(path string) answer { w.t.Helper(); return w.do(http.MethodGet, path, nil) }

var sealed = regexp.MustCompile(`name="form" value="([^"]+)"`)

// formOf returns the seal of the form of a page.
func (w *world) formOf(a answer) string {
	w.t.Helper()
	m := sealed.FindStringSubmatch(a.body)
	if m == nil {
		w.t.Fatalf("no form: %s", textOf(a.body))
	}
	return m[1]
}

// fill reads the form, takes some time, and posts it with a number; then says that the number
// is right. It returns where the browser is sent.
func (w *world) fill(path, phone string) string {
	w.t.Helper()
	form := w.formOf(w.get(path))
	time.Sleep(5 * time.Second)
	a := w.do(http.MethodPost, path, url.Values{"form": {form}, "phone": {phone}})
	if a.status != http.StatusOK || !strings.Contains(a.body, `name="sure"`) {
		w.t.Fatalf("%d, not asked whether it is right: %s", a.status, textOf(a.body))
	}
	return w.yes(path, a)
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([a-z_]+)" value="([^"]*)">`)

// yes posts the form of the page "is this your number?".
func (w *world) yes(path string, a answer) string {
	w.t.Helper()
	b := w.do(http.MethodPost, path, hiddenOf(a))
	if b.status != http.StatusSeeOther {
		w.t.Fatalf("%d: %s", b.status, textOf(b.body))
	}
	return b.header.Get("Location")
}

func hiddenOf(a answer) url.Values {
	form := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(a.body[:strings.Index(a.body, "</main>")], -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	return form
}

// until reads a page until it says something.
func (w *world) until(path, what string) answer {
	w.t.Helper()
	var a answer
	for range 200 {
		if a = w.get(path); strings.Contains(a.body, what) {
			return a
		}
		time.Sleep(time.Second)
	}
	w.t.Fatalf("the page never says %q: %s", what, textOf(a.body))
	return a
}

// approve types the right PIN on the telephone that rings.
func (w *world) approve() {
	w.t.Helper()
	prompts, err := w.operator.Prompts(context.Background(), w.client.ID, 10)
	if err != nil || len(prompts) != 1 {
		w.t.Fatalf("%d telephones ring: %v", len(prompts), err)
	}
	if err := w.operator.Decide(context.Background(), w.client.ID, prompts[0].Payment, sandbox.Approve); err != nil {
		w.t.Fatal(err)
	}
}
