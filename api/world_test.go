package api_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"till"
	"till/account"
	"till/api"
	"till/checkout"
	"till/collect"
	"till/engine"
	"till/internal/seal"
	"till/meter"
	"till/payout"
	"till/provider"
	"till/provider/sandbox"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
	"till/webhook"
)

const (
	baseURL    = "http://till.test/v1"
	errorPages = "http://till.test/docs/errors/"
)

// world is the whole service in one process with the sandbox operator, on a
// real database. Nothing of it is a mock.
type world struct {
	t         testing.TB
	store     *store.Store
	operator  *sandbox.Operator
	collector *collect.Collector
	payouts   *payout.Disburser
	checkouts *checkout.Checkouts
	accounts  *account.Accounts
	endpoints *webhook.Endpoints
	deliverer *webhook.Dispatcher // nil: nothing is pushed
	handler   http.Handler
	log       *lockedBuffer
	logger    *slog.Logger // writes to log; nil: nothing is logged

	called  atomic.Value // the path of the last callback
	closed  atomic.Bool  // no operator can be reached for live clients
	unready atomic.Bool  // the service takes no requests
	clients map[string]*till.Client
	keys    map[string]string // texts, by the names that cases use
	stop    func()
}

// options are what a case can choose of a world.
type options struct {
	meter     *meter.Meter // nil: nothing is counted
	rate      float64
	noPages   bool // nobody can pay on a page
	noSandbox bool
	quiet     bool         // nothing is logged
	deliver   bool         // events are pushed to endpoints
	notify    bool         // hints of other processes are heard; not in a bubble
	database  store.Config // the zero one is a new SQLite file
	quota     int64        // bytes that a test client may store
	watched   bool         // the operator's health counts

	// payments and payouts are the routes of live clients, as "mtn_momo CG XAF";
	// nil means that all lead to the operator.
	payments, payouts []string
}

const window = 10 * time.Second

// newWorld starts a service and a few clients. Its owner calls stop.
func newWorld(t testing.TB, o options) *world {
	t.Helper()
	dir, ctx := t.TempDir(), context.Background()
	w := &world{t: t, clients: map[string]*till.Client{}, keys: map[string]string{}, log: &lockedBuffer{}}
	var err error
	if o.database.Path == "" {
		o.database.Path = storetest.Engines()[0].Config(t).Path
	}
	// In a bubble, the clock of a database server would be another one, and
	// time would stand still while somebody waits on the network.
	o.database.NoNotify = !o.notify
	o.database.Now = func() till.Time { return till.TimeOf(time.Now()) }
	if w.store, err = store.Open(ctx, o.database); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	err = w.store.Update(ctx, func(tx *store.Tx) error {
		err := admin.InsertInstallation(ctx, tx, &admin.Installation{LogID: till.NewID(tx.Now()), SecretCheck: []byte("not looked at"), CreatedAt: tx.Now()})
		if err == nil {
			_, err = admin.RaiseLevel(ctx, tx, admin.Level)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w.operator, err = sandbox.Open(ctx, sandbox.Config{Path: filepath.Join(dir, "sandbox.db"), Window: window, Post: w.post})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if o.quiet {
		log = nil
	}
	w.logger = log
	w.collector = collect.New(engine.Config{
		Store: w.store, Secret: []byte("a secret for tests"), Log: log,
		Connections:  map[string]provider.Provider{"sandbox": watched{w.operator, !o.watched}},
		Routes:       engine.ByMode(w.route(o.payments)),
		CallbackBase: baseURL + "/callbacks",
	})
	w.payouts = payout.New(engine.Config{
		Store: w.store, Secret: []byte("a secret for tests"), Log: log,
		Connections:  map[string]provider.Provider{"sandbox": w.operator.Payouts()},
		Routes:       engine.ByMode(w.route(o.payouts)),
		Refunds:      engine.Refunds{Origins: map[string]engine.Origin{"sandbox": {Fingerprint: w.operator.Fingerprint()}, storetest.Connection: {}}},
		CallbackBase: baseURL + "/callbacks",
	})
	w.checkouts = checkout.New(checkout.Config{Store: w.store, Collector: w.collector, Secret: []byte("a secret for tests"), PageURL: map[bool]string{false: "https://pay.till.test"}[o.noPages], Hosts: []string{"pay.till.test"}, Log: log})
	w.accounts = account.New(w.store, log)
	w.makeEndpoints(o.deliver)
	c := api.Config{
		Store: w.store, Collector: w.collector, Payouts: w.payouts, Checkouts: w.checkouts, Accounts: w.accounts, Sandbox: w.operator, Endpoints: w.endpoints,
		BaseURL: baseURL, ErrorPages: errorPages, RateLimit: o.rate, TestQuota: o.quota, Ready: w.ready, Meter: o.meter, Log: log,
	}
	if o.noSandbox {
		c.Sandbox = nil
	}
	w.handler = api.New(c)
	w.people()
	w.run()
	return w
}

// watched is the sandbox, as one whose failures count if a test wants that.
type watched struct {
	*sandbox.Operator
	unwatched bool
}

func (o watched) Traits() provider.Traits {
	t := o.Operator.Traits()
	t.NoBreaker = o.unwatched
	return t
}

// people makes the clients and keys that cases name.
func (w *world) people() {
	for _, name := range []string{"test", "other", "live"} {
		mode := till.Test
		if name == "live" {
			mode = till.Live
		}
		c, key, err := w.accounts.CreateClient(context.Background(), name, mode, "a test")
		if err != nil {
			w.t.Fatal(err)
		}
		w.clients[name], w.keys[name] = c, key
	}
	w.addKey("test", "reader", till.PaymentsRead)
	w.addKey("test", "writer", till.PaymentsWrite)
	w.addKey("test", "hooks", till.WebhooksManage)
	w.addKey("test", "manager", till.KeysManage, till.PaymentsRead, till.PaymentsWrite)
	w.addKey("other", "other_manager", till.Scopes...)
	if err := w.accounts.EnableMethod(context.Background(), w.clients["live"].ID, "mpesa", true, "a test"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) addKey(client, name string, scopes ...till.Scope) {
	text, _, err := w.accounts.CreateKey(context.Background(), w.clients[client].ID, name, scopes, 0, "a test")
	if err != nil {
		w.t.Fatal(err)
	}
	w.keys[name] = text
}

func (w *world) run() {
	ctx, cancel := context.WithCancel(context.Background())
	workers := []func(context.Context){w.collector.Run, w.payouts.Run, w.operator.Run, w.accounts.Run}
	if w.deliverer != nil {
		workers = append(workers, w.deliverer.Run)
	}
	done := make(chan struct{}, len(workers))
	for _, run := range workers {
		go func() { run(ctx); done <- struct{}{} }()
	}
	w.stop = func() {
		cancel()
		for range workers {
			<-done
		}
		if w.deliverer != nil {
			if err := w.deliverer.Close(context.Background()); err != nil {
				w.t.Error(err)
			}
		}
		if err := w.collector.Close(context.Background()); err != nil {
			w.t.Error(err)
		}
		if err := w.payouts.Close(context.Background()); err != nil {
			w.t.Error(err)
		}
		w.operator.Close()
		w.store.Close()
	}
}

// route gives live clients the same operator here: what is tested is the way
// to it, and it can be closed.
func (w *world) route(live []string) func(mode till.Mode, method, country, currency string) string {
	return func(mode till.Mode, method, country, currency string) string {
		if mode == till.Live && (w.closed.Load() || live != nil && !slices.Contains(live, method+" "+country+" "+currency)) {
			return ""
		}
		return "sandbox"
	}
}

func (w *world) ready() error {
	if w.unready.Load() {
		return fmt.Errorf("not ready")
	}
	return nil
}

// post brings a callback of the operator to the API, as MTN does it.
func (w *world) post(_ context.Context, url string, body []byte) error {
	target := url[len("http://till.test"):]
	w.called.Store(target)
	a := w.do(http.MethodPut, target, "", string(body))
	if a.Code != http.StatusOK {
		return fmt.Errorf("callback answered %d", a.Code)
	}
	return nil
}

// do sends a request to the API and returns the answer.
func (w *world) do(method, target, key, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, bytes.NewBufferString(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set("X-Api-Key", key)
	}
	a := httptest.NewRecorder()
	w.handler.ServeHTTP(a, r)
	return a
}

// makeEndpoints makes what is behind /webhook-endpoints, and pushes events to
// them if a case asks for it.
func (w *world) makeEndpoints(deliver bool) {
	vault, err := webhook.NewSecretSealer(seal.Single([]byte("a secret for tests only")))
	if err != nil {
		w.t.Fatal(err)
	}
	w.endpoints = &webhook.Endpoints{Store: w.store, Secrets: vault, Sender: webhook.NewSender(webhook.SenderConfig{})}
	if deliver {
		w.deliverer = webhook.New(webhook.Config{Store: w.store, Secrets: vault, Sender: receiver{}, NoHints: true})
		w.endpoints.Wake = w.deliverer.Wake
	}
}

// receiver is the other side of every endpoint: the end of the address says
// what it answers.
type receiver struct{}

func (receiver) Host(url string) string { return url }

func (receiver) Post(_ context.Context, url string, _ http.Header, _ []byte) webhook.Response {
	time.Sleep(12 * time.Millisecond)
	a := webhook.Response{Status: http.StatusOK, Took: 12 * time.Millisecond, Body: "thank you"}
	switch path.Base(url) {
	case "broken":
		a.Status, a.Body = http.StatusInternalServerError, "out of order"
	case "gone":
		a.Status, a.Body = http.StatusGone, ""
	case "dead":
		a = webhook.Response{Problem: webhook.ProblemConnect, Took: 12 * time.Millisecond}
	}
	return a
}
