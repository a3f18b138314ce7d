package collect_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"till"
	"till/collect"
	"till/engine"
	"till/internal/jsonx"
	"till/ledger"
	"till/provider"
	"till/provider/sandbox"
	"till/store"
	"till/store/storetest"
)

// world is the whole service in one process with the sandbox operator, in
// virtual time: days pass in milliseconds, and nothing is mocked.
type world struct {
	t         *testing.T
	store     *store.Store
	operator  *sandbox.Operator
	way       *way // between us and the operator
	collector *collect.Collector
	client    *till.Client
	deaf      bool // callbacks do not arrive
	fees      []till.Fee
	look      time.Duration
	stop      func()
}

const window = 10 * time.Second

// inWorld plays a story in virtual time and checks the books at its end.
func inWorld(t *testing.T, tell func(t *testing.T, w *world)) {
	t.Helper()
	inWorldWith(t, sandbox.Config{}, tell)
}

func inWorldWith(t *testing.T, c sandbox.Config, tell func(t *testing.T, w *world)) {
	t.Helper()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			database := e.Config(t)
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, database, c)
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

func newWorld(t *testing.T, database store.Config, sc sandbox.Config) *world {
	t.Helper()
	dir := t.TempDir()
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
	sc.Path, sc.Window, sc.Post = filepath.Join(dir, "sandbox.db"), window, w.post
	if sc.PollInterval == 0 {
		sc.PollInterval = 12 * time.Hour // nobody else is here, and days must pass quickly
	}
	w.look = sc.PollInterval
	if w.operator, err = sandbox.Open(ctx, sc); err != nil {
		t.Fatal(err)
	}
	w.way = &way{Provider: w.operator}
	w.client = &till.Client{ID: till.NewID(w.store.Now()), Name: "Test", Mode: till.Test, CreatedAt: w.store.Now()}
	err = w.store.Update(ctx, func(tx *store.Tx) error { return tx.InsertClient(ctx, w.client) })
	if err != nil {
		t.Fatal(err)
	}
	w.start()
	return w
}

// start brings the collector up, as a process would after a crash.
func (w *world) start(change ...func(c *engine.Config)) {
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
	w.collector = collect.New(c)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	go func() { w.collector.Run(ctx); done <- struct{}{} }()
	go func() { w.operator.Run(ctx); done <- struct{}{} }()
	w.stop = func() {
		cancel()
		<-done
		<-done
		if err := w.collector.Close(context.Background()); err != nil {
			w.t.Error(err)
		}
	}
}

// way is the network between us and the operator, which a test can break.
type way struct {
	provider.Provider
	mu      sync.Mutex
	submits int
	checks  int
	submit  func(ctx context.Context, r provider.Request, n int) (provider.Result, error)
	check   func(ctx context.Context, q provider.Query, n int) (provider.Result, error)
}

func (y *way) Submit(ctx context.Context, r provider.Request) (provider.Result, error) {
	y.mu.Lock()
	y.submits++
	n, f := y.submits, y.submit
	y.mu.Unlock()
	if f != nil {
		return f(ctx, r, n)
	}
	return y.Provider.Submit(ctx, r)
}

func (y *way) Check(ctx context.Context, q provider.Query) (provider.Result, error) {
	y.mu.Lock()
	y.checks++
	n, f := y.checks, y.check
	y.mu.Unlock()
	if f != nil {
		return f(ctx, q, n)
	}
	return y.Provider.Check(ctx, q)
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
	parts := strings.Split(url, "/")
	ref, ok := w.collector.ParseCallbackToken(parts[len(parts)-2], parts[len(parts)-1])
	if !ok {
		w.t.Errorf("a callback URL that is not ours: %s", url)
	}
	if w.deaf {
		return errors.New("nobody listens")
	}
	return w.collector.RecordCallback(ctx, "", ref, nil)
}

func (w *world) create(story string) *till.Payment {
	w.t.Helper()
	key := till.NewID(w.store.Now()).String()
	c, err := w.collector.Create(context.Background(), w.who(), request(w.t, key, story))
	if err != nil {
		w.t.Fatal(err)
	}
	return c.Payment
}

func (w *world) who() engine.Client {
	return engine.Client{Client: w.client, Enabled: func(string) bool { return true }, Fees: w.fees}
}

func request(t *testing.T, key, story string) *collect.Request {
	t.Helper()
	body := `{"method":"mtn_momo","country":"CG","amount":{"value":"5000","currency":"XAF"},"idempotency_key":"` + key + `","customer":{"phone":"24206123` + story + `"}}`
	r := &collect.Request{}
	if err := jsonx.Decode([]byte(body), r); err != nil {
		t.Fatal(err)
	}
	return r
}

func (w *world) payment(id till.ID) *store.PaymentRow {
	w.t.Helper()
	return readPayment(w.t, w.store, store.Ref{Client: w.client.ID, ID: id})
}

// debits counts how often the operator took money for a payment.
func (w *world) debits(id till.ID) int {
	w.t.Helper()
	all, err := w.operator.Debits(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	n := 0
	for _, d := range all {
		if d.Payment == id {
			n++
		}
	}
	return n
}

// credits lists the wallet lines of a payment by type.
func (w *world) credits(id till.ID) string {
	w.t.Helper()
	var types []string
	w.view(func(ctx context.Context, tx *store.Tx) error {
		ts, _, err := tx.ListTransactions(ctx, w.client.ID, store.TransactionFilter{PaymentID: id}, store.Page{Limit: 10})
		for _, t := range ts {
			types = append(types, t.Type)
		}
		return err
	})
	return strings.Join(types, " ")
}

// kinds lists the events of a payment, in order.
func (w *world) kinds(id till.ID) string {
	w.t.Helper()
	var kinds []string
	w.view(func(ctx context.Context, tx *store.Tx) error {
		es, err := tx.Events(ctx, w.client.ID, 0, 10_000)
		for _, e := range es {
			if e.SubjectID == id {
				kinds = append(kinds, strings.TrimPrefix(string(e.Kind), "payment."))
			}
		}
		return err
	})
	return strings.Join(kinds, " ")
}

// cases lists the open cases of a payment.
func (w *world) cases(id till.ID) string {
	w.t.Helper()
	return readCases(w.t, w.store, id)
}

// posted sums the postings of an account in XAF.
func (w *world) posted(account ledger.AccountKind) (sum int64) {
	w.t.Helper()
	w.view(func(ctx context.Context, tx *store.Tx) (err error) {
		sum, err = tx.Posted(ctx, w.client.ID, account, "XAF")
		return err
	})
	return sum
}

func (w *world) step(id till.ID) *store.Step {
	w.t.Helper()
	return readStep(w.t, w.store, store.Ref{Client: w.client.ID, ID: id})
}

func (w *world) view(f func(ctx context.Context, tx *store.Tx) error) {
	w.t.Helper()
	storetest.View(w.t, w.store, f)
}

// outcome is what the contract says of one ending of a phone number.
type outcome struct {
	digits  string
	status  till.Status
	reason  till.FailureReason
	state   till.ResolutionState
	debits  int
	credits string
	kinds   string
	cases   string
}

var stories = []outcome{
	{"4567", "success", "", "confirmed", 1, "collection", "pending processing success", ""},
	{"0000", "expired", "customer_timeout", "confirmed", 0, "", "pending processing expired", ""},
	{"0002", "failed", "customer_declined", "confirmed", 0, "", "pending processing failed", ""},
	{"0003", "expired", "customer_timeout", "confirmed", 0, "", "pending processing expired", ""},
	{"0004", "failed", "insufficient_funds", "confirmed", 0, "", "pending processing failed", ""},
	{"0005", "failed", "payer_not_found", "confirmed", 0, "", "pending failed", ""},
	{"0006", "failed", "payer_limit_reached", "confirmed", 0, "", "pending processing failed", ""},
	{"0007", "failed", "wrong_pin", "confirmed", 0, "", "pending processing failed", ""},
	{"0011", "success", "", "confirmed", 1, "collection", "pending success", ""},
	{"0012", "success", "", "confirmed", 1, "collection", "pending processing success", ""},
	{"0013", "expired", "customer_timeout", "confirmed", 1, "late_collection", "pending processing expired late_success", "late_money"},
	{"0014", "processing", "", "needs_attention", 0, "", "pending processing needs_attention", "overdue"},
	{"0015", "success", "", "confirmed", 1, "collection", "pending processing success", ""},
	{"0016", "success", "", "confirmed", 1, "collection", "pending processing success", ""},
	{"0017", "success", "", "confirmed", 1, "collection", "pending processing success", ""},
	{"0018", "failed", "customer_declined", "confirmed", 0, "", "pending processing failed", ""},
	{"0019", "processing", "", "needs_attention", 1, "", "pending processing needs_attention", "mismatch"},
}

func (s outcome) check(t *testing.T, w *world, id till.ID) {
	t.Helper()
	p := w.payment(id)
	got := outcome{s.digits, p.Status, p.FailureReason, p.Resolution.State, w.debits(id), w.credits(id), w.kinds(id), w.cases(id)}
	if got != s {
		t.Errorf("story %s\n got  %+v\n want %+v", s.digits, got, s)
	}
}

func TestEveryStoryEndsAsTheContractSays(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ids := make([]till.ID, len(stories))
		for i, s := range stories {
			ids[i] = w.create(s.digits).ID
		}
		time.Sleep(window + 8*time.Second)
		for i, s := range stories {
			s.check(t, w, ids[i])
		}
	})
}

func TestEveryStoryEndsTheSameWithoutAnyCallback(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.deaf = true
		ids := make([]till.ID, len(stories))
		for i, s := range stories {
			ids[i] = w.create(s.digits).ID
		}
		time.Sleep(window + 8*time.Second)
		for i, s := range stories {
			s.check(t, w, ids[i])
		}
	})
}
