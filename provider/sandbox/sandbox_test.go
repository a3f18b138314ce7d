package sandbox

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"till"
	"till/provider"
	"till/provider/providertest"
)

// clock is time that passes when it is told to, or when somebody sleeps.
type clock struct {
	mu  sync.Mutex
	now till.Time
}

func newClock() *clock {
	return &clock{now: till.TimeOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
}

func (c *clock) Now() till.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.Advance(d)
	return ctx.Err()
}

// newOperator opens an operator on a book of its own, or on c.Path, in the
// clock's time. Callbacks go to nobody unless c.Post says where.
func newOperator(t testing.TB, e engine, clock *clock, c Config) *Operator {
	t.Helper()
	if c.Path == "" {
		c.Path = e.newBook(t)
	}
	c.Now, c.Sleep = clock.Now, clock.Sleep
	if c.Post == nil {
		c.Post = func(context.Context, string, []byte) error { return errors.New("nobody listens") }
	}
	o, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

// newPayment returns a request of a client of its own, for a phone number that
// ends in the four digits.
func newPayment(clock *clock, digits string) provider.Request {
	now := clock.Now()
	return provider.Request{
		Client:      till.NewID(now),
		ID:          till.NewID(now),
		Reference:   till.NewID(now),
		Method:      "mtn_momo",
		Country:     "CG",
		Phone:       "24206123" + digits,
		Amount:      till.Money{Minor: 500, Currency: "XAF"},
		ExpiresAt:   now.Add(defaultWindow),
		CallbackURL: "http://till.example/callbacks",
	}
}

func submit(t testing.TB, o *Operator, r provider.Request, want provider.Outcome) {
	t.Helper()
	result, err := o.Submit(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if result.Outcome != want {
		t.Fatalf("submit answered %q, want %q", result.Outcome, want)
	}
}

func check(t testing.TB, o *Operator, r provider.Request, want provider.Outcome) provider.Result {
	t.Helper()
	result, err := o.Check(t.Context(), provider.Query{Reference: r.Reference})
	if err != nil {
		t.Fatal(err)
	}
	if result.Outcome != want {
		t.Fatalf("check answered %q, want %q", result.Outcome, want)
	}
	return result
}

// submitInSilence submits a request that gets no answer, and returns when the
// book has so many rows: the silence has begun.
func submitInSilence(t testing.TB, o *Operator, ctx context.Context, r provider.Request, rows int) <-chan error {
	t.Helper()
	silent := make(chan error, 1)
	go func() {
		_, err := o.Submit(ctx, r)
		silent <- err
	}()
	for {
		var n int
		err := o.book.reader.QueryRow(`SELECT (SELECT count(*) FROM requests) + (SELECT count(*) FROM swallowed)`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		if n >= rows {
			return silent
		}
		time.Sleep(time.Millisecond)
	}
}

// debits counts the debits of a reference.
func debits(t testing.TB, o *Operator, reference till.ID) int {
	t.Helper()
	all, err := o.Debits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, d := range all {
		if d.Reference == reference {
			n++
		}
	}
	return n
}

func TestProvider(t *testing.T) {
	digits := map[providertest.Story]string{
		providertest.Approve:      "4567",
		providertest.Decline:      "0002",
		providertest.NeverAnswer:  "0003",
		providertest.NoFunds:      "0004",
		providertest.UnknownPayer: "0005",
		providertest.LimitReached: "0006",
		providertest.WrongPIN:     "0007",
		providertest.LostAnswer:   "0011",
		providertest.LostRequest:  "0012",
		providertest.Stuck:        "0014",
		providertest.WrongAmount:  "0019",
	}
	harness := func(e engine, c Config) func(*testing.T) providertest.Harness {
		return func(t *testing.T) providertest.Harness {
			clock := newClock()
			o := newOperator(t, e, clock, c)
			return providertest.Harness{
				Provider: o,
				Request: func(s providertest.Story) (provider.Request, bool) {
					d, ok := digits[s]
					return newPayment(clock, d), ok
				},
				Advance: clock.Advance,
				Debits:  func(reference till.ID) int { return debits(t, o, reference) },
			}
		}
	}
	onEngines(t, func(t *testing.T, e engine) {
		t.Run("as shipped", func(t *testing.T) {
			t.Parallel()
			providertest.Run(t, harness(e, Config{}))
		})
		t.Run("without deduplication", func(t *testing.T) {
			t.Parallel()
			providertest.Run(t, harness(e, Config{NoDedup: true}))
		})
	})
}

func TestWithoutDeduplicationADoubleSendIsTwoDebits(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		clock := newClock()
		o := newOperator(t, e, clock, Config{NoDedup: true})
		if o.Traits().ClientReference {
			t.Error("the traits promise deduplication")
		}
		r := newPayment(clock, "4567")
		submit(t, o, r, provider.Accepted)
		clock.Advance(700 * time.Millisecond)
		submit(t, o, r, provider.Accepted)
		clock.Advance(500 * time.Millisecond)
		check(t, o, r, provider.Open) // the newest
		if got := debits(t, o, r.Reference); got != 1 {
			t.Errorf("after 1.2 s there are %d debits, want 1", got)
		}
		clock.Advance(500 * time.Millisecond)
		check(t, o, r, provider.Success)
		all, err := o.Debits(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != 2 || all[0].Reference != r.Reference || all[1].Payment != r.ID || all[0].At >= all[1].At {
			t.Errorf("the debits are %v, want two of the reference, 700 ms apart", all)
		}
	})
}

func TestARefusedPayerLeavesNoTrace(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		clock := newClock()
		o := newOperator(t, e, clock, Config{})
		r := newPayment(clock, "0005")
		submit(t, o, r, provider.Rejected)
		submit(t, o, r, provider.Rejected)
		clock.Advance(time.Hour)
		check(t, o, r, provider.NotFound)
	})
}

func TestClosingEndsASilence(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		for _, digits := range []string{"0011", "0012"} {
			clock := newClock()
			o, err := Open(t.Context(), Config{Path: e.newBook(t), Now: clock.Now})
			if err != nil {
				t.Fatal(err)
			}
			r := newPayment(clock, digits)
			silent := submitInSilence(t, o, t.Context(), r, 1)
			if err := o.Close(); err != nil {
				t.Error(err)
			}
			if err := <-silent; !errors.Is(err, ErrClosed) {
				t.Errorf("%s: submit returned %v, want ErrClosed", digits, err)
			}
		}
	})
}

func TestTheWindowIsTheRequestsOwn(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		clock := newClock()
		o := newOperator(t, e, clock, Config{Window: 3 * time.Second})
		if got := o.Traits().ApprovalWindow; got != 3*time.Second {
			t.Errorf("the window is %v, want 3s", got)
		}

		// The customer's time counts from the payment's creation, not from the
		// arrival of the request.
		r := newPayment(clock, "0003")
		r.ExpiresAt = clock.Now().Add(3 * time.Second)
		clock.Advance(2 * time.Second)
		submit(t, o, r, provider.Accepted)
		clock.Advance(999 * time.Millisecond)
		check(t, o, r, provider.Open)
		clock.Advance(time.Millisecond)
		check(t, o, r, provider.Expired)

		// A request that does not say gets the operator's window.
		r = newPayment(clock, "0003")
		r.ExpiresAt = 0
		submit(t, o, r, provider.Accepted)
		clock.Advance(2999 * time.Millisecond)
		check(t, o, r, provider.Open)
		clock.Advance(time.Millisecond)
		check(t, o, r, provider.Expired)
	})
}
