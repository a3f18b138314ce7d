package payout_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"till"
	"till/engine"
	"till/internal/jsonx"
	"till/ledger"
	"till/payout"
	"till/provider"
	"till/provider/sandbox"
	"till/store"
	"till/store/storetest"
)

// world is payouts in one process with the sandbox operator, in virtual time:
// days pass in milliseconds, and nothing is mocked.
type world struct {
	t        *testing.T
	store    *store.Store
	operator *sandbox.Operator
	way      *way // between us and the operator
	master   *payout.Disburser
	client   *till.Client
	funds    int64 // what the wallet began with
	fee      int64 // of every payout
	deaf     bool  // callbacks do not arrive
	look     time.Duration
	offset   atomic.Int64 // of the database's clock, a time.Duration
	stop     func()
}

const window = 10 * time.Second

// inWorld plays a story in virtual time and checks the books at its end.
func inWorld(t *testing.T, tell func(t *testing.T, w *world)) {
	t.Helper()
	inWorldWith(t, sandbox.Config{}, tell)
}

func inWorldWith(t *testing.T, c sandbox.Config, tell func(t *testing.T, w *world)) {
	t.Helper()
	inWorldOf(t, c, nil, tell)
}

// inWorldOf is inWorldWith an operator of other habits.
func inWorldOf(t *testing.T, c sandbox.Config, habits func(*provider.Traits), tell func(t *testing.T, w *world)) {
	t.Helper()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			database := e.Config(t)
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, database, c, habits)
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

func newWorld(t *testing.T, database store.Config, sc sandbox.Config, habits func(*provider.Traits)) *world {
	t.Helper()
	ctx := context.Background()
	w := &world{t: t}
	// A database server lives outside the bubble; its clock does not.
	database.Now = func() till.Time { return till.TimeOf(time.Now().Add(time.Duration(w.offset.Load()))) }
	database.NoNotify = true // to wait on the network would stop the time here
	var err error
	if w.store, err = store.Open(ctx, database); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	if sc.Window == 0 {
		sc.Window = window
	}
	sc.Path, sc.Post = filepath.Join(t.TempDir(), "sandbox.db"), w.post
	if sc.PollInterval == 0 {
		sc.PollInterval = 12 * time.Hour // nobody else is here, and days must pass quickly
	}
	w.look = sc.PollInterval
	if w.operator, err = sandbox.Open(ctx, sc); err != nil {
		t.Fatal(err)
	}
	w.way = &way{Payouts: w.operator.Payouts(), habits: habits}
	w.client = storetest.NewClient(t, w.store, till.Test)
	w.fund(100_000)
	w.restart()
	return w
}

// fund lets a customer's money come in.
func (w *world) fund(amount int64) {
	w.t.Helper()
	w.funds += amount
	fund(w.t, w.store, w.client, amount)
}

func fund(t *testing.T, s *store.Store, client *till.Client, amount int64) {
	t.Helper()
	c := storetest.NewCollector(t, s)
	p := storetest.NewPayment(t, c, client, storetest.Body{Value: till.Money{Minor: amount}.Value()})
	storetest.Apply(t, c, s, p, storetest.Succeeded)
}

// restart brings an instance up in the place of the one that was stopped.
func (w *world) restart(change ...func(c *engine.Config)) {
	w.master = w.make(change...) // before the operator's callbacks can search for it
	w.stop = w.run(w.master)
}

// start brings another instance up, as a process would after a crash.
func (w *world) start(change ...func(c *engine.Config)) (m *payout.Disburser, stop func()) {
	m = w.make(change...)
	return m, w.run(m)
}

func (w *world) make(change ...func(c *engine.Config)) *payout.Disburser {
	c := engine.Config{
		Store: w.store, Secret: []byte("a secret for tests"),
		Connections:  map[string]provider.Provider{"sandbox": w.way},
		Routes:       engine.ByMode(func(till.Mode, string, string, string) string { return "sandbox" }),
		CallbackBase: "http://till.test/v1/callbacks",
		PollInterval: w.look,
	}
	for _, f := range change {
		f(&c)
	}
	return payout.New(c)
}

func (w *world) run(m *payout.Disburser) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	go func() { m.Run(ctx); done <- struct{}{} }()
	go func() { w.operator.Run(ctx); done <- struct{}{} }()
	return func() {
		cancel()
		<-done
		<-done
		if err := m.Close(context.Background()); err != nil {
			w.t.Error(err)
		}
	}
}

func onlyAccepts(c *engine.Config) { c.AcceptOnly = true }

// way is the network between us and the operator, which a test can break.
type way struct {
	sandbox.Payouts
	mu      sync.Mutex
	submits int
	checks  int
	submit  func(ctx context.Context, r provider.Request, n int) (provider.Result, error)
	check   func(ctx context.Context, q provider.Query, n int) (provider.Result, error)

	// pause stops a process once, between its claim and its send: there it
	// reads the habits of the operator a second time.
	pause time.Duration
	looks int

	habits func(t *provider.Traits) // changes the operator's, if not nil
}

func (y *way) Fingerprint() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.looks = 0
	return y.Payouts.Fingerprint()
}

func (y *way) Traits() provider.Traits {
	y.mu.Lock()
	var pause time.Duration
	if y.looks++; y.looks == 2 {
		pause, y.pause = y.pause, 0
	}
	y.mu.Unlock()
	time.Sleep(pause)
	t := y.Payouts.Traits()
	if y.habits != nil {
		y.habits(&t)
	}
	return t
}

func (y *way) Submit(ctx context.Context, r provider.Request) (provider.Result, error) {
	y.mu.Lock()
	y.submits++
	n, f := y.submits, y.submit
	y.mu.Unlock()
	if f != nil {
		return f(ctx, r, n)
	}
	return y.Payouts.Submit(ctx, r)
}

func (y *way) Check(ctx context.Context, q provider.Query) (provider.Result, error) {
	y.mu.Lock()
	y.checks++
	n, f := y.checks, y.check
	y.mu.Unlock()
	if f != nil {
		return f(ctx, q, n)
	}
	return y.Payouts.Check(ctx, q)
}

func (y *way) set(submit func(context.Context, provider.Request, int) (provider.Result, error), check func(context.Context, provider.Query, int) (provider.Result, error)) {
	y.mu.Lock()
	y.submit, y.check = submit, check
	y.mu.Unlock()
}

func (y *way) counts() (submits, checks int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.submits, y.checks
}

// post is the way of a callback from the operator to us.
func (w *world) post(ctx context.Context, url string, body []byte) error {
	if w.deaf { // then nothing that a test replaces meanwhile is looked at
		return errors.New("nobody listens")
	}
	parts := strings.Split(url, "/")
	ref, ok := w.master.ParseCallbackToken(parts[len(parts)-2], parts[len(parts)-1])
	if !ok {
		w.t.Errorf("a callback URL that is not ours: %s", url)
	}
	return w.master.RecordCallback(ctx, "", ref, nil)
}

func (w *world) who() engine.Client {
	return engine.Client{Client: w.client, Enabled: func(string) bool { return true },
		Fees: []till.Fee{{Kind: till.PayoutFee, Method: "mtn_momo", Currency: "XAF", Flat: w.fee}}}
}

func request(t testing.TB, key, story, value string) *payout.Request {
	t.Helper()
	body := `{"method":"mtn_momo","country":"CG","amount":{"value":"` + value + `","currency":"XAF"},"idempotency_key":"` + key +
		`","recipient":{"phone":"24206123` + story + `"}}`
	r := &payout.Request{}
	if err := jsonx.Decode([]byte(body), r); err != nil {
		t.Fatal(err)
	}
	return r
}

// try asks for a payout with a key of its own.
func (w *world) try(story string, amount int64) (payout.Created, error) {
	w.t.Helper()
	key := till.NewID(w.store.Now()).String()
	return w.master.Create(context.Background(), w.who(), request(w.t, key, story, till.Money{Minor: amount}.Value()))
}

// create makes a payout of 1 000.
func (w *world) create(story string) *till.Payout {
	w.t.Helper()
	c, err := w.try(story, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	return c.Payout
}

// createAndSend is create, and waits until the payout is sent: an instance rests for some
// milliseconds between two reads on a distributed database.
func (w *world) createAndSend(story string) *till.Payout {
	w.t.Helper()
	p := w.create(story)
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if submits, _ := w.way.counts(); submits > 0 {
			return p
		}
		if time.Now().After(end) {
			w.t.Fatal("it is not sent within a minute")
		}
	}
}

func (w *world) ref(id till.ID) store.Ref { return store.Ref{Client: w.client.ID, ID: id} }

func (w *world) payout(id till.ID) *store.PayoutRow {
	w.t.Helper()
	var p *store.PayoutRow
	w.view(func(ctx context.Context, tx *store.Tx) (err error) {
		p, err = tx.Payout(ctx, w.ref(id))
		return err
	})
	return p
}

func (w *world) wallet() *ledger.Wallet {
	w.t.Helper()
	var l *ledger.Wallet
	w.view(func(ctx context.Context, tx *store.Tx) (err error) {
		l, err = tx.Wallet(ctx, w.client.ID, "XAF")
		return err
	})
	return l
}

// wantWallet says what left the wallet for good and what is held and owed.
func (w *world) wantWallet(t *testing.T, spent, reserved, owed int64) {
	t.Helper()
	l := w.wallet()
	if l.Balance != w.funds-spent || l.Reserved != reserved || l.Owed != owed {
		t.Errorf("the wallet has %d with %d reserved and %d owed; want %d, %d, %d", l.Balance, l.Reserved, l.Owed, w.funds-spent, reserved, owed)
	}
}

// credits counts how often the operator paid a payout (I8).
func (w *world) credits(id till.ID) int {
	w.t.Helper()
	all, err := w.operator.Credits(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	n := 0
	for _, c := range all {
		if c.Payout == id {
			n++
		}
	}
	return n
}

// lines lists the wallet's lines of a payout by type, the newest first.
func (w *world) lines(id till.ID) string {
	w.t.Helper()
	var types []string
	w.view(func(ctx context.Context, tx *store.Tx) error {
		ts, _, err := tx.ListTransactions(ctx, w.client.ID, store.TransactionFilter{PayoutID: id}, store.Page{Limit: 10})
		for _, t := range ts {
			types = append(types, t.Type+" "+t.Direction)
		}
		return err
	})
	return strings.Join(types, ", ")
}

// kinds lists the events of a payout, in order.
func (w *world) kinds(id till.ID) string {
	w.t.Helper()
	var kinds []string
	w.view(func(ctx context.Context, tx *store.Tx) error {
		es, err := tx.PayoutEvents(ctx, w.ref(id))
		for _, e := range es {
			kinds = append(kinds, strings.TrimPrefix(strings.TrimPrefix(string(e.Kind), "payout."), "refund."))
		}
		return err
	})
	return strings.Join(kinds, " ")
}

// cases lists the open cases of a payout.
func (w *world) cases(id till.ID) string {
	w.t.Helper()
	var kinds []string
	w.view(func(ctx context.Context, tx *store.Tx) error {
		cs, err := tx.Cases(ctx, store.CaseFilter{Limit: 1000})
		for _, c := range cs {
			if c.SubjectID == id {
				kinds = append(kinds, c.Kind)
			}
		}
		return err
	})
	return strings.Join(kinds, " ")
}

func (w *world) step(id till.ID) (s *store.Step) {
	w.t.Helper()
	w.view(func(ctx context.Context, tx *store.Tx) (err error) {
		s, err = tx.Step(ctx, w.ref(id))
		return err
	})
	return s
}

func (w *world) view(f func(ctx context.Context, tx *store.Tx) error) {
	w.t.Helper()
	storetest.View(w.t, w.store, f)
}
