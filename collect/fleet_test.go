package collect_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"till"
	"till/collect"
	"till/engine"
	"till/provider"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
)

// heard is how long it takes until all instances know what one has reported: a
// pulse, and a little, because at the same instant either may come first.
const heard = time.Second + 50*time.Millisecond

// fleet is several instances on one database, in virtual time, and one
// operator that all of them call.
type fleet struct {
	t        *testing.T
	store    *store.Store
	offset   atomic.Int64 // of the database's clock, a time.Duration
	operator *post
	client   *till.Client
	all      []*instance
	pulse    time.Duration
	look     time.Duration
	toSlow   atomic.Bool // where a story has two operators: which is routed to
}

type instance struct {
	*collect.Collector
	stop func()
}

// habits are those of a live operator, in short.
func habits() provider.Traits {
	return provider.Traits{
		ClientReference: true, ApprovalWindow: time.Minute, SubmitTimeout: 5 * time.Second, CheckTimeout: 5 * time.Second,
		NotFoundDelay: 5 * time.Second, Poll: 5 * time.Second, PollMax: time.Hour, Grace: 10 * time.Second,
		LateReads: []time.Duration{5 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 72 * time.Hour},
	}
}

// inFleet plays a story of several instances on each engine and checks the
// books at its end.
func inFleet(t *testing.T, traits provider.Traits, tell func(t *testing.T, f *fleet)) {
	t.Helper()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			database := e.Config(t)
			database.NoNotify = true // to wait on the network would stop the time here
			synctest.Test(t, func(t *testing.T) {
				ctx := context.Background()
				f := &fleet{t: t, look: 250 * time.Millisecond, operator: newPost(traits)}
				database.Now = func() till.Time { return till.TimeOf(time.Now().Add(time.Duration(f.offset.Load()))) }
				var err error
				if f.store, err = store.Open(ctx, database); err != nil {
					t.Fatal(err)
				}
				if _, err = f.store.Migrate(ctx); err != nil {
					t.Fatal(err)
				}
				f.client = storetest.NewClient(t, f.store, till.Live)
				defer func() {
					for _, i := range f.all {
						i.stop()
					}
					f.operator.checkBook(t, f)
					storetest.CheckInvariants(t, f.store)
					f.store.Close()
				}()
				tell(t, f)
			})
		})
	}
}

// start adds an instance.
func (f *fleet) start(change ...func(c *engine.Config)) *instance {
	c := engine.Config{
		Store: f.store, Secret: []byte("a secret for tests"), PollInterval: f.look, HealthInterval: f.pulse,
		Connections: map[string]provider.Provider{"post": f.operator},
		Routes:      engine.ByMode(func(till.Mode, string, string, string) string { return "post" }),
	}
	for _, g := range change {
		g(&c)
	}
	i := &instance{Collector: collect.New(c)}
	ctx, cancel := context.WithCancel(context.Background())
	var loops sync.WaitGroup
	loops.Go(func() { i.Run(ctx) })
	loops.Go(func() { i.Watch(ctx) })
	i.stop = sync.OnceFunc(func() {
		cancel()
		loops.Wait()
		if err := i.Close(context.Background()); err != nil {
			f.t.Error(err)
		}
	})
	f.all = append(f.all, i)
	return i
}

func onlyAccepts(c *engine.Config) { c.AcceptOnly = true }

// try asks an instance for a payment under a key, a new one if it is "".
func (f *fleet) try(i *instance, key string) (collect.Created, error) {
	f.t.Helper()
	if key == "" {
		key = till.NewID(till.TimeOf(time.Now())).String()
	}
	who := engine.Client{Client: f.client, Enabled: func(string) bool { return true }}
	return i.Create(context.Background(), who, request(f.t, key, "4567"))
}

func (f *fleet) create(i *instance) *till.Payment {
	f.t.Helper()
	c, err := f.try(i, "")
	if err != nil {
		f.t.Fatal(err)
	}
	return c.Payment
}

// refused tries a new payment and reports whether the method was closed to it.
func (f *fleet) refused(i *instance) bool {
	f.t.Helper()
	_, err := f.try(i, "")
	switch {
	case err == nil:
		return false
	case till.ErrorCode(err) == till.CodeMethodUnavailable:
		var e *till.Error
		if errors.As(err, &e); e.RetryAfter < time.Second || e.RetryAfter > 2*time.Minute {
			f.t.Errorf("try again after %s", e.RetryAfter)
		}
		return true
	}
	f.t.Fatal(err)
	return false
}

func status(i *instance) string {
	m, _ := till.MethodOf("mtn_momo")
	return string(i.Offer(&till.Client{Mode: till.Live}, m).Status)
}

func (f *fleet) breaker() *admin.Breaker {
	f.t.Helper()
	var b *admin.Breaker
	err := f.store.View(context.Background(), func(tx *store.Tx) error {
		all, err := admin.Breakers(context.Background(), tx)
		b = all["post"]
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	if b == nil {
		return &admin.Breaker{State: admin.Passing}
	}
	return b
}

// count returns how many payments are in each status.
func (f *fleet) count() map[till.Status]int {
	f.t.Helper()
	n := map[till.Status]int{}
	err := f.store.View(context.Background(), func(tx *store.Tx) error {
		rows, _, err := tx.ListPayments(context.Background(), f.client.ID, store.PaymentFilter{}, store.Page{Limit: 100_000})
		for _, p := range rows {
			n[p.Status]++
		}
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

func (f *fleet) total() (n int) {
	for _, k := range f.count() {
		n += k
	}
	return n
}

func (f *fleet) step(id till.ID) *store.Step {
	f.t.Helper()
	return readStep(f.t, f.store, store.Ref{Client: f.client.ID, ID: id})
}

// fall breaks the operator and creates payments until all instances know.
func (f *fleet) fall(i *instance) {
	f.t.Helper()
	f.operator.set(func(o *post) { o.down = true })
	for range 12 {
		f.create(i)
	}
	time.Sleep(2500 * time.Millisecond) // a pulse to tell, a pulse to hear
	for n, i := range f.all {
		if status(i) != "closed" || !f.refused(i) {
			f.t.Fatalf("instance %d: the operator is down, and the method is %s", n, status(i))
		}
	}
}

// post is an operator of the tests' own: it takes money for each reference
// once, when the customer has had time to say yes.
type post struct {
	mu      sync.Mutex
	traits  provider.Traits
	down    bool
	lost    bool          // requests arrive, and their answers do not
	takes   time.Duration // how long a call takes
	approve time.Duration // how long a customer takes
	blind   time.Duration // how long its reads do not see what was sent
	book    map[till.ID]time.Time
	debits  map[till.ID]int
	submits []time.Time
	checks  []time.Time
}

func newPost(t provider.Traits) *post {
	return &post{traits: t, approve: time.Second, book: map[till.ID]time.Time{}, debits: map[till.ID]int{}}
}

func (o *post) set(f func(o *post)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f(o)
}

func (o *post) Traits() provider.Traits { return o.traits }
func (o *post) Fingerprint() string     { return "post" }

func (o *post) begin(ctx context.Context, calls *[]time.Time) error {
	o.mu.Lock()
	*calls = append(*calls, time.Now())
	takes := o.takes
	o.mu.Unlock()
	if takes == 0 {
		return nil
	}
	select {
	case <-time.After(takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (o *post) Submit(ctx context.Context, r provider.Request) (provider.Result, error) {
	if err := o.begin(ctx, &o.submits); err != nil {
		return provider.Result{}, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.down {
		return provider.Result{}, errAway
	}
	_, twice := o.book[r.Reference]
	if !twice {
		o.book[r.Reference] = time.Now()
	}
	switch {
	case o.lost:
		return provider.Result{}, errAway
	case twice:
		return provider.Result{Outcome: provider.Duplicate}, nil
	}
	return provider.Result{Outcome: provider.Accepted}, nil
}

func (o *post) Check(ctx context.Context, q provider.Query) (provider.Result, error) {
	if err := o.begin(ctx, &o.checks); err != nil {
		return provider.Result{}, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	at, held := o.book[q.Reference]
	switch {
	case o.down || o.lost && o.blind == 0:
		return provider.Result{}, errAway
	case !held || time.Since(at) < o.blind:
		return provider.Result{Outcome: provider.NotFound}, nil
	case time.Since(at) < o.approve:
		return provider.Result{Outcome: provider.Open}, nil
	}
	o.debits[q.Reference] = 1
	return provider.Result{Outcome: provider.Success, Receipt: q.Reference.String()}, nil
}

func (o *post) calls() (submits, checks int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.submits), len(o.checks)
}

// times returns when calls were made.
func (o *post) times() (submits, checks []time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.submits), slices.Clone(o.checks)
}

// checkBook holds the operator's book against ours: a success is a debit.
func (o *post) checkBook(t *testing.T, f *fleet) {
	t.Helper()
	if n := f.count()[till.Success]; n != len(o.debits) {
		t.Errorf("%d payments are a success, and the operator took money %d times", n, len(o.debits))
	}
}

// withinRate fails if in any span of time there were more calls than the rate
// and the burst allow.
func withinRate(t *testing.T, what string, calls []time.Time, r provider.Rate) {
	t.Helper()
	slices.SortFunc(calls, time.Time.Compare)
	for i := range calls {
		for j := i + r.Burst; j < len(calls); j++ {
			span := calls[j].Sub(calls[i]).Microseconds() + 1
			if n := int64(j - i + 1); (n-int64(r.Burst))*1_000_000 > int64(r.PerSecond)*span {
				t.Errorf("%d %ss within %d µs; the rate is %d per second, the burst %d", n, what, span, r.PerSecond, r.Burst)
				return
			}
		}
	}
}
