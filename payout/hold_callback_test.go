package payout_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"till"
	"till/books"
	"till/engine"
	"till/provider"
	"till/provider/sandbox"
)

// lost sends what is to be sent, and loses the answer.
func (w *world) lost(ctx context.Context, r provider.Request, _ int) (provider.Result, error) {
	w.operator.Payouts().Submit(context.WithoutCancel(ctx), r)
	return provider.Result{}, errAway
}

func notFound(context.Context, provider.Query, int) (provider.Result, error) {
	return provider.Result{Outcome: provider.NotFound}, nil
}

// calledBack is that the operator calls us back about a payout.
func (w *world) calledBack(t *testing.T, id till.ID) {
	t.Helper()
	if err := w.master.RecordCallback(context.Background(), "", w.ref(id), nil); err != nil {
		t.Fatal(err)
	}
}

// What was proven absent and is held is asked about when the operator calls back:
// it knows the payout after all, and the reserve must not be given back.
func TestAHeldPayoutIsAskedAboutWhenItsOperatorCallsBack(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{Window: 3 * time.Minute}, func(t *testing.T, w *world) {
		w.deaf = true
		w.way.set(w.lost, notFound) // its reads lag behind for longer than they should
		id := w.createAndSend("4567").ID
		time.Sleep(time.Millisecond)
		w.hold(w.client.ID)
		time.Sleep(time.Minute)
		if s := w.step(id); s.HeldAt == 0 || s.NotFoundReads < 2 {
			t.Fatalf("the step is %+v; want it proven absent, and held", s)
		}
		w.way.set(nil, nil)
		w.calledBack(t, id)
		time.Sleep(5 * time.Second)
		submits, _ := w.way.counts()
		if p := w.payout(id); p.Status != till.PayoutSuccess || w.credits(id) != 1 || submits != 1 || w.cases(id) != "" {
			t.Errorf("called back about, it is %s with %d credits after %d sends, with the cases %q; want success, one, one, none",
				p.Status, w.credits(id), submits, w.cases(id))
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}

// A payout of which the operator has the request is not held any more: there is
// nothing to send, and nothing to release.
func TestWhatTheOperatorHoldsIsNotHeldHere(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{Window: 3 * time.Minute}, func(t *testing.T, w *world) {
		w.deaf = true
		w.way.set(w.lost, notFound)
		id := w.createAndSend("4567").ID
		time.Sleep(time.Millisecond)
		w.hold(w.client.ID)
		time.Sleep(time.Minute)
		w.way.set(nil, func(context.Context, provider.Query, int) (provider.Result, error) {
			return provider.Result{Outcome: provider.Open}, nil
		})
		w.calledBack(t, id)
		time.Sleep(5 * time.Second)
		if p, s := w.payout(id), w.step(id); p.Status != till.PayoutProcessing || p.Resolution.State == till.NeedsAttention || w.cases(id) != "" || s.HeldAt != 0 {
			t.Errorf("it is %s, %s, with the cases %q, held since %s; want it processing, and not held", p.Status, p.Resolution.State, w.cases(id), s.HeldAt)
		}
		w.wantWallet(t, 0, 1000, 0)
		w.way.set(nil, nil)
		time.Sleep(10 * time.Second)
		w.wantWallet(t, 1000, 0, 0)
	})
}

// A send that was refused, and that the operator then calls back about, was taken
// after all: it is asked about, and cannot be cancelled.
func TestARefusedPayoutThatIsCalledBackAboutIsNotCancelled(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]bool{"held": true, "not held": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The cancel may hold the step's lock just when it is due: then the next poll claims it.
			inWorldWith(t, sandbox.Config{Window: 3 * time.Minute, NoDedup: true, PollInterval: time.Second}, func(t *testing.T, w *world) {
				w.deaf = true
				w.way.set(func(ctx context.Context, r provider.Request, n int) (provider.Result, error) {
					if n == 1 {
						w.lost(ctx, r, n)
						return refuse(time.Minute)
					}
					return w.operator.Payouts().Submit(ctx, r)
				}, func(context.Context, provider.Query, int) (provider.Result, error) { return provider.Result{}, errAway })
				id := w.createAndSend("4567").ID
				time.Sleep(time.Millisecond)
				if held {
					w.hold(w.client.ID)
				}
				time.Sleep(30 * time.Second)
				w.calledBack(t, id)
				time.Sleep(45 * time.Second)
				if p, err := w.master.Cancel(context.Background(), w.ref(id), "api:test"); till.ErrorCode(err) != till.CodeNotCancellable {
					t.Errorf("cancel: %+v, %v", p, err)
				}
				w.wantWallet(t, 0, 1000, 0)
				w.way.set(nil, nil)
				time.Sleep(time.Minute)
				submits, _ := w.way.counts()
				if p := w.payout(id); p.Status != till.PayoutSuccess || w.credits(id) != 1 || submits != 1 || w.cases(id) != "" {
					t.Errorf("it is %s with %d credits after %d sends, with the cases %q; want success, one, one, none", p.Status, w.credits(id), submits, w.cases(id))
				}
				w.wantWallet(t, 1000, 0, 0)
			})
		})
	}
}

// A payout that was cancelled after a send that seemed to leave nothing is read for
// late money, and its operator's callbacks are heard, as of any other that has ended. If
// it was paid after all, that is late money: the status stays, the wallet is debited, and
// the client owes what it has spent meanwhile.
func TestASuccessAfterACancellationIsLateMoney(t *testing.T) {
	t.Parallel()
	for name, calls := range map[string]bool{"with a callback": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorldWith(t, sandbox.Config{Window: time.Minute}, func(t *testing.T, w *world) {
				w.deaf = true
				id := w.cancelledThoughTaken(t)
				w.spend(t, w.funds-400)
				after := 4 * 24 * time.Hour
				if calls {
					w.calledBack(t, id)
					after = 5 * time.Second
				}
				time.Sleep(after)
				submits, _ := w.way.counts()
				p := w.payout(id)
				if w.cases(id) != engine.CaseLateMoney || w.credits(id) != 1 || submits != 1 || p.Status != till.PayoutCancelled || p.LateSuccessAt.IsZero() {
					t.Errorf("it is %s with %d credits after %d sends, late at %s, with the cases %q; want it cancelled, one, one, and late money",
						p.Status, w.credits(id), submits, p.LateSuccessAt, w.cases(id))
				}
				if kinds := w.kinds(id); !strings.HasSuffix(kinds, "cancelled late_success") {
					t.Errorf("the client is told %q", kinds)
				}
				if lines := w.lines(id); lines != "late_payout debit" {
					t.Errorf("the wallet's lines are %q", lines)
				}
				if s := w.step(id); s != nil {
					t.Errorf("it is read for ever: %+v", s)
				}
				w.wantWallet(t, w.funds, 0, 600)
				w.fund(5000)
				w.wantWallet(t, w.funds-5000+600, 0, 0)
			})
		})
	}
}

// What a person shows about a cancelled payout is late money too, and is posted once.
func TestACancelledPayoutIsResolvedAsPaid(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{Window: time.Minute}, func(t *testing.T, w *world) {
		w.deaf = true
		id := w.cancelledThoughTaken(t)
		paid := engine.Resolution{Success: true, Receipt: "R1", By: "person:Awa", Evidence: "the operator's letter"}
		for range 2 {
			if err := w.master.Resolve(context.Background(), w.ref(id), paid); err != nil {
				t.Fatal(err)
			}
		}
		if kinds := w.kinds(id); !strings.HasSuffix(kinds, "cancelled late_success") || w.cases(id) != "" {
			t.Errorf("the client is told %q, with the cases %q", kinds, w.cases(id))
		}
		w.wantWallet(t, 1000, 0, 0)
		time.Sleep(4 * 24 * time.Hour)
		w.wantWallet(t, 1000, 0, 0)
	})
}

// cancelledThoughTaken makes a payout whose send is refused by the operator's gateway and
// taken, which is held and then cancelled.
func (w *world) cancelledThoughTaken(t *testing.T) till.ID {
	t.Helper()
	w.way.set(func(ctx context.Context, r provider.Request, n int) (provider.Result, error) {
		w.lost(ctx, r, n)
		return refuse(0)
	}, nil)
	id := w.createAndSend("4567").ID
	time.Sleep(time.Millisecond)
	w.hold(w.client.ID)
	time.Sleep(2 * time.Minute)
	if p, err := w.master.CancelFor(context.Background(), w.ref(id), "person:Awa", "fraud"); err != nil || p.Status != till.PayoutCancelled {
		t.Fatalf("cancel: %v", err)
	}
	w.wantWallet(t, 0, 0, 0)
	return id
}

// spend takes money out of the wallet, as any other use of it would.
func (w *world) spend(t *testing.T, amount int64) {
	t.Helper()
	a := books.Adjustment{Client: w.client.ID, ID: till.NewID(w.store.Now()), Amount: till.Money{Minor: -amount, Currency: "XAF"}, Reason: "spent", By: "person:Awa"}
	if _, err := books.Adjust(context.Background(), w.store, a); err != nil {
		t.Fatal(err)
	}
}
