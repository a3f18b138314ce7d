package payout_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"till"
	"till/engine"
	"till/provider"
	"till/provider/sandbox"
)

func refuse(after time.Duration) (provider.Result, error) {
	return provider.Result{}, &provider.Refusal{Err: provider.ErrCredentials, RetryAfter: after}
}

// A send that the operator refused to take was none, also where it would not
// notice a second one: it is made again when the operator says, and pays once.
func TestARefusedPayoutIsSentAgainWhenTheOperatorSays(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{Window: time.Minute, NoDedup: true}, func(t *testing.T, w *world) {
		began := time.Now()
		var sent []time.Duration
		w.way.set(func(ctx context.Context, r provider.Request, n int) (provider.Result, error) {
			sent = append(sent, time.Since(began))
			if n == 1 {
				return refuse(17 * time.Second)
			}
			return w.operator.Payouts().Submit(ctx, r)
		}, nil)
		id := w.create("4567").ID
		time.Sleep(5 * time.Second)
		if s := w.step(id); s == nil || s.Sends != 0 || s.Calls != 1 {
			t.Fatalf("after the refusal its step is %+v; want one that was not sent", s)
		}
		if _, checks := w.way.counts(); checks != 0 {
			t.Errorf("the operator was asked %d times about what it refused to take", checks)
		}
		w.wantWallet(t, 0, 1000, 0)
		time.Sleep(25 * time.Second)
		if p := w.payout(id); p.Status != till.PayoutSuccess || w.credits(id) != 1 {
			t.Errorf("%s with %d credits, want success with one", p.Status, w.credits(id))
		}
		if len(sent) != 2 || sent[1] < 17*time.Second || sent[1] > 18*time.Second {
			t.Errorf("it was sent after %v; want at once and after the 17 s that the operator asked for", sent)
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}

// An operator that refuses us until the window is over has nothing of ours: the
// payout fails and gives its reserve back, instead of waiting for a person.
func TestAPayoutThatIsRefusedToTheEndFailsAndReleasesItsReserve(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{NoDedup: true}, func(t *testing.T, w *world) {
		w.way.set(func(context.Context, provider.Request, int) (provider.Result, error) { return refuse(0) }, nil)
		id := w.create("4567").ID
		time.Sleep(window + 2*time.Second)
		if p := w.payout(id); p.Status != till.PayoutFailed || p.FailureReason != till.ProviderUnavailable || !p.FailureDetail.Retryable {
			t.Errorf("it is %s %s, want failed provider_unavailable", p.Status, p.FailureReason)
		}
		w.wantWallet(t, 0, 0, 0)
	})
}

// A refusal of a second send says nothing about the first, which may have
// arrived: the reserve is kept, and the operator is asked.
func TestARefusedSecondSendIsNotTakenForUnsent(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{Window: time.Minute}, func(t *testing.T, w *world) {
		var first provider.Request
		w.way.set(func(ctx context.Context, r provider.Request, n int) (provider.Result, error) {
			if n == 1 {
				first = r
				return provider.Result{}, errAway
			}
			// The first one was on its way all the time, and arrives now.
			w.operator.Payouts().Submit(context.WithoutCancel(ctx), first)
			return refuse(time.Second)
		}, nil)
		w.deaf = true
		id := w.create("4567").ID
		time.Sleep(30 * time.Second)
		submits, _ := w.way.counts()
		if p := w.payout(id); p.Status != till.PayoutSuccess || w.credits(id) != 1 || submits != 2 {
			t.Errorf("%s with %d credits after %d sends; want success, 1, 2", p.Status, w.credits(id), submits)
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}

// The gateway's word alone ends no payout: what has left us is asked about once, after
// the settle time, before its reserve is given back. Here it was taken.
func TestARefusedPayoutThatWasTakenIsNotFailedUnasked(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"refused to the end": 0, "told to come back too late": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.deaf = true
				w.way.set(func(ctx context.Context, r provider.Request, n int) (provider.Result, error) {
					w.lost(ctx, r, n)
					return refuse(after)
				}, nil)
				id := w.create("4567").ID
				time.Sleep(window + 3*time.Second)
				if p := w.payout(id); p.Status != till.PayoutSuccess || w.credits(id) != 1 || w.cases(id) != "" {
					t.Errorf("it is %s %s with %d credits, with the cases %q; want success, one, none", p.Status, p.FailureReason, w.credits(id), w.cases(id))
				}
				if kinds := w.kinds(id); strings.Contains(kinds, "failed") {
					t.Errorf("the client is told %q", kinds)
				}
				w.wantWallet(t, 1000, 0, 0)
			})
		})
	}
}

// While the operator does not say that it has nothing, the reserve of what was refused
// is kept, also if a later send left nothing.
func TestARefusedPayoutWaitsForTheReadThatFindsNothing(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.way.set(func(_ context.Context, _ provider.Request, n int) (provider.Result, error) {
			if n == 1 {
				return refuse(0)
			}
			return provider.Result{}, provider.ErrNotSent
		}, func(context.Context, provider.Query, int) (provider.Result, error) { return provider.Result{}, errAway })
		id := w.create("4567").ID
		time.Sleep(window + time.Hour)
		if p := w.payout(id); p.Status != till.PayoutPending || w.cases(id) != engine.CaseOverdue {
			t.Errorf("unanswered, it is %s %s with the cases %q; want it open, and a person told", p.Status, p.FailureReason, w.cases(id))
		}
		w.wantWallet(t, 0, 1000, 0)
		w.way.set(func(context.Context, provider.Request, int) (provider.Result, error) { return refuse(0) }, nil)
		time.Sleep(2 * time.Hour)
		if p := w.payout(id); p.Status != till.PayoutFailed || p.FailureReason != till.ProviderUnavailable || w.cases(id) != "" {
			t.Errorf("after a read that finds nothing it is %s %s, with the cases %q; want failed provider_unavailable", p.Status, p.FailureReason, w.cases(id))
		}
		w.wantWallet(t, 0, 0, 0)
	})
}
