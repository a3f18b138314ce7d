package sandbox

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"till"
	"till/provider"
)

func TestARestartLosesNothing(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		clock, box := newClock(), &mailbox{}
		c := Config{Path: e.newBook(t), Now: clock.Now, Sleep: clock.Sleep, Post: box.post}
		o, err := Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		approved, decided := newPayment(clock, "4567"), newPayment(clock, "0000")
		swallowed, late := newPayment(clock, "0012"), newPayment(clock, "0013")
		submit(t, o, approved, provider.Accepted)
		submit(t, o, decided, provider.Accepted)
		submit(t, o, late, provider.Accepted)
		if err := o.Decide(t.Context(), decided.Client, decided.ID, Decline); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		silent := submitInSilence(t, o, ctx, swallowed, 4)
		cancel()
		if err := <-silent; !errors.Is(err, context.Canceled) {
			t.Fatalf("the first send was answered: %v", err)
		}
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}

		o = newOperator(t, e, clock, c)
		check(t, o, approved, provider.Open)
		check(t, o, decided, provider.Failed)
		check(t, o, swallowed, provider.NotFound)
		submit(t, o, swallowed, provider.Accepted)
		submit(t, o, approved, provider.Duplicate)
		clock.Advance(decisionTime)
		check(t, o, approved, provider.Success)
		check(t, o, swallowed, provider.Success)
		if n := send(t, o); n != 3 {
			t.Errorf("%d callbacks came, want 3", n)
		}
		clock.Advance(defaultWindow - decisionTime)
		check(t, o, late, provider.Expired)
		clock.Advance(lateMoneyDelay)
		check(t, o, late, provider.Success)
	})
}

// startTogether opens n operators at the same moment, on one book that does
// not exist yet.
func startTogether(t *testing.T, e engine, n int, c Config) []*Operator {
	t.Helper()
	c.Path = e.newBook(t)
	operators := make([]*Operator, n)
	var starting sync.WaitGroup
	for i := range operators {
		starting.Go(func() {
			o, err := Open(t.Context(), c)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { o.Close() })
			operators[i] = o
		})
	}
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return operators
}

func TestSeveralProcessesShareOneBook(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		const payments, processes = 50, 3
		clock, box := newClock(), &mailbox{}
		operators := startTogether(t, e, processes, Config{Now: clock.Now, Sleep: clock.Sleep, Post: box.post})

		requests := make([]provider.Request, payments)
		var (
			mu       sync.Mutex
			outcomes = make(map[provider.Outcome]int)
			sending  sync.WaitGroup
		)
		for i := range requests {
			requests[i] = newPayment(clock, "4567")
			for _, o := range operators {
				sending.Go(func() {
					result, err := o.Submit(t.Context(), requests[i])
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					outcomes[result.Outcome]++
				})
			}
		}
		sending.Wait()
		if diff := cmp.Diff(map[provider.Outcome]int{
			provider.Accepted: payments, provider.Duplicate: payments * (processes - 1),
		}, outcomes); diff != "" {
			t.Errorf("want -, got +:\n%s", diff)
		}

		clock.Advance(decisionTime)
		for _, o := range operators {
			sending.Go(func() {
				for {
					n, next, err := o.SendCallbacks(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					if n == 0 && (next.IsZero() || next > clock.Now()) {
						return
					}
				}
			})
		}
		sending.Wait()
		if box.count() != payments {
			t.Errorf("%d callbacks came, want one for each of %d payments", box.count(), payments)
		}
		all, err := operators[0].Debits(t.Context())
		if err != nil || len(all) != payments {
			t.Errorf("%d debits: %v", len(all), err)
		}
	})
}

func TestAPersonDecides(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		clock := newClock()
		o := newOperator(t, e, clock, Config{})
		client := till.NewID(clock.Now())
		prompt := func() provider.Request {
			clock.Advance(time.Second)
			r := newPayment(clock, "0000")
			r.Client = client
			submit(t, o, r, provider.Accepted)
			return r
		}
		first, second, third := prompt(), prompt(), prompt()
		other := newPayment(clock, "0000")
		submit(t, o, other, provider.Accepted)
		plain := newPayment(clock, "0014")
		plain.Client = client
		submit(t, o, plain, provider.Accepted)

		wantPrompts := func(limit int, want ...provider.Request) {
			t.Helper()
			got, err := o.Prompts(t.Context(), client, limit)
			if err != nil {
				t.Fatal(err)
			}
			var all []Prompt
			for _, r := range want {
				all = append(all, Prompt{r.ID, r.Phone, r.Amount, r.ExpiresAt, 0})
			}
			if diff := cmp.Diff(all, got); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		}
		decide := func(r provider.Request, d Decision, want till.Code) {
			t.Helper()
			if got := till.ErrorCode(o.Decide(t.Context(), client, r.ID, d)); got != want {
				t.Errorf("deciding answered %q, want %q", got, want)
			}
		}

		wantPrompts(100, first, second, third)
		wantPrompts(2, first, second)
		wantPrompts(0)
		wantPrompts(-1)

		decide(second, Approve, "")
		decide(first, Decline, "")
		wantPrompts(100, third)
		check(t, o, second, provider.Success)
		check(t, o, first, provider.Failed)

		decide(second, Decline, till.CodePromptNotFound) // answered
		decide(other, Approve, till.CodePromptNotFound)  // another client's
		decide(plain, Approve, till.CodePromptNotFound)  // asks nobody
		check(t, o, second, provider.Success)
		check(t, o, other, provider.Open)
		check(t, o, plain, provider.Open)

		clock.Advance(third.ExpiresAt.Sub(clock.Now()))
		wantPrompts(100)
		decide(third, Approve, till.CodePromptNotFound) // too late
		check(t, o, third, provider.Expired)
	})
}

func BenchmarkSubmit(b *testing.B) {
	for _, e := range engines() {
		b.Run(e.name, func(b *testing.B) {
			clock := newClock()
			o := newOperator(b, e, clock, Config{})
			for b.Loop() {
				submit(b, o, newPayment(clock, "4567"), provider.Accepted)
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, e := range engines() {
		b.Run(e.name, func(b *testing.B) {
			clock := newClock()
			o := newOperator(b, e, clock, Config{})
			r := newPayment(clock, "4567")
			submit(b, o, r, provider.Accepted)
			for b.Loop() {
				check(b, o, r, provider.Open)
			}
		})
	}
}
