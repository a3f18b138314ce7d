package checkout_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"till"
	"till/checkout"
	"till/collect"
	"till/engine"
	"till/internal/jsonx"
	"till/provider"
	"till/provider/sandbox"
	"till/store"
	"till/store/checkouts"
	"till/store/storetest"
)

// world is checkouts in one process with the sandbox operator, in virtual time: days pass in
// milliseconds, and nothing is mocked.
type world struct {
	t         *testing.T
	store     *store.Store
	operator  *sandbox.Operator
	way       *way // between us and the operator
	collector *collect.Collector
	checkouts *checkout.Checkouts
	client    *till.Client
	look      time.Duration
	unread    bool // nobody follows the log
	stop      func()
}

const (
	window = 10 * time.Second
	secret = "a secret for tests"
)

// inWorld plays a story in virtual time and checks the books at its end.
func inWorld(t *testing.T, tell func(t *testing.T, w *world)) {
	t.Helper()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			database := e.Config(t)
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, database)
				defer func() {
					w.stop()
					storetest.CheckInvariants(t, w.store)
					w.operator.Close()
					w.store.Close()
				}()
				tell(t, w)
			})
		})
	}
}

func newWorld(t *testing.T, database store.Config) *world {
	t.Helper()
	ctx := context.Background()
	w := &world{t: t}
	// A database server lives outside the bubble; its clock does not.
	database.Now = func() till.Time { return till.TimeOf(time.Now()) }
	database.NoNotify = true // to wait on the network would stop the time here
	var err error
	if w.store, err = store.Open(ctx, database); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	w.look = 12 * time.Hour // nobody else is here, and days must pass quickly
	sc := sandbox.Config{Path: filepath.Join(t.TempDir(), "sandbox.db"), Window: window, Post: w.post, PollInterval: w.look}
	if w.operator, err = sandbox.Open(ctx, sc); err != nil {
		t.Fatal(err)
	}
	w.way = &way{Provider: w.operator}
	w.client = storetest.NewClient(t, w.store, till.Test)
	w.client.Name = "Boulangerie Mapassa" // one that pages may show
	storetest.AllowRefunds(t, w.store)    // the newest level
	w.start()
	return w
}

// start brings an instance up, as a process would after a crash.
func (w *world) start(change ...func(c *engine.Config)) {
	c := engine.Config{
		Store: w.store, Secret: []byte(secret),
		Connections:  map[string]provider.Provider{"sandbox": w.way},
		Routes:       engine.ByMode(func(till.Mode, string, string, string) string { return "sandbox" }),
		CallbackBase: "http://till.test/v1/callbacks",
		PollInterval: w.look,
	}
	for _, f := range change {
		f(&c)
	}
	w.collector = collect.New(c)
	w.checkouts = w.make(nil)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 3)
	go func() { w.collector.Run(ctx); done <- struct{}{} }()
	go func() { w.operator.Run(ctx); done <- struct{}{} }()
	go func() {
		if !w.unread {
			w.checkouts.Follow(ctx)
		}
		done <- struct{}{}
	}()
	w.stop = func() {
		cancel()
		<-done
		<-done
		<-done
		if err := w.collector.Close(context.Background()); err != nil {
			w.t.Error(err)
		}
	}
}

func (w *world) make(change func(c *checkout.Config)) *checkout.Checkouts {
	c := checkout.Config{Store: w.store, Collector: w.collector, Secret: []byte(secret), PageURL: "https://pay.till.test", Hosts: []string{"pay.till.test"}, FollowEvery: time.Minute}
	if change != nil {
		change(&c)
	}
	return checkout.New(c)
}

// way is the network between us and the operator, which counts what is asked.
type way struct {
	provider.Provider
	submits atomic.Int64
}

func (y *way) Submit(ctx context.Context, r provider.Request) (provider.Result, error) {
	y.submits.Add(1)
	return y.Provider.Submit(ctx, r)
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

func (w *world) who() checkout.Client {
	return checkout.Client{Client: w.client, Actor: "api:test", Enabled: func(string) bool { return true }}
}

func request(t *testing.T, body string) *checkout.Request {
	t.Helper()
	r := &checkout.Request{}
	if err := jsonx.Decode([]byte(body), r); err != nil {
		t.Fatal(err)
	}
	return r
}

const (
	key1 = "0b8b5a1c-9f39-4a7e-8f5f-3f3a6d1c1a01"
	key2 = "0b8b5a1c-9f39-4a7e-8f5f-3f3a6d1c1a02"
)

// body is that of a checkout, with some members more.
func body(key, more string) string {
	return `{"amount":{"value":"5000","currency":"XAF"},"idempotency_key":"` + key + `","reference":"ORDER-1042","description":"Two loaves"` + more + `}`
}

// open makes a checkout and returns its place.
func (w *world) open(key, more string) store.Ref {
	w.t.Helper()
	c, err := w.checkouts.Create(context.Background(), w.who(), request(w.t, body(key, more)))
	if err != nil {
		w.t.Fatal(err)
	}
	return store.Ref{Client: w.client.ID, ID: c.Checkout.ID}
}

// typed is what somebody types: the number ends in a story of the sandbox.
func typed(n int, story string) checkout.Typed {
	return checkout.Typed{N: n, Phone: "24206123" + story, Method: "mtn_momo", Country: "CG"}
}

// ask asks, and fails the test if that is refused.
func (w *world) ask(ref store.Ref, n int, story string) *till.Ask {
	w.t.Helper()
	a, err := w.checkouts.Ask(context.Background(), w.who(), ref, typed(n, story))
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *world) view(ref store.Ref) checkout.View {
	w.t.Helper()
	v, err := w.checkouts.View(context.Background(), ref)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// debits counts how often the operator took money.
func (w *world) debits() int {
	w.t.Helper()
	all, err := w.operator.Debits(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return len(all)
}

// row reads a checkout.
func (w *world) row(ref store.Ref) (c *checkouts.Row) {
	w.t.Helper()
	storetest.View(w.t, w.store, func(ctx context.Context, tx *store.Tx) (err error) {
		c, err = checkouts.Get(ctx, tx, ref)
		return err
	})
	return c
}

// told lists the events of a checkout, in order.
func (w *world) told(ref store.Ref) string {
	w.t.Helper()
	var kinds []string
	storetest.View(w.t, w.store, func(ctx context.Context, tx *store.Tx) error {
		events, err := tx.EventBodies(ctx, ref.Client, 0, 10_000)
		for _, e := range events {
			if e.SubjectID != ref.ID {
				continue
			}
			kinds = append(kinds, strings.TrimPrefix(string(e.Kind), "checkout."))
			var body struct {
				Data struct{ Checkout struct{ ID, State string } }
			}
			if err := json.Unmarshal(e.AppendJSON(nil), &body); err != nil || body.Data.Checkout.ID != ref.ID.String() || body.Data.Checkout.State == "" {
				w.t.Errorf("%s: %v, %s", e.Kind, err, e.AppendJSON(nil))
			}
		}
		return err
	})
	return strings.Join(kinds, " ")
}

// decide records what the operator says of an ask in the end.
func (w *world) decide(a *till.Ask, r provider.Result) {
	w.t.Helper()
	storetest.Apply(w.t, w.collector, w.store, &till.Payment{ClientID: a.ClientID, ID: a.PaymentID, IdempotencyKey: a.Key.String(), Amount: a.Amount}, r)
}

// change runs a commit under the lock of a client's head.
func (w *world) change(client till.ID, do func(tx *store.Tx) error) {
	w.t.Helper()
	err := w.store.Update(context.Background(), func(tx *store.Tx) error {
		if _, err := tx.LockHeads(context.Background(), []till.ID{client}); err != nil {
			return err
		}
		return do(tx)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}
