package collect_test

import (
	"context"
	"testing"
	"time"

	"till"
	"till/provider"
)

// A send that the operator refused to take was none: it is made again when the
// operator says, within the customer's time, and debits once.
func TestARefusedPaymentIsSentAgainWhenTheOperatorSays(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.way.set(func(ctx context.Context, r provider.Request, n int) (provider.Result, error) {
			if n == 1 {
				return provider.Result{}, &provider.Refusal{Err: provider.ErrCredentials, RetryAfter: 4 * time.Second}
			}
			return w.operator.Submit(ctx, r)
		}, nil)
		created := w.create("4567")
		time.Sleep(3 * time.Second)
		submits, checks := w.way.counts()
		if s := w.step(created.ID); s == nil || s.Sends != 0 || submits != 1 || checks != 0 {
			t.Fatalf("after the refusal: step %+v, %d sends, %d checks; want one that was not sent", s, submits, checks)
		}
		time.Sleep(4 * time.Second)
		p := w.payment(created.ID)
		if submits, _ = w.way.counts(); p.Status != till.Success || w.debits(p.ID) != 1 || submits != 2 {
			t.Errorf("%s with %d debits after %d sends; want success, 1, 2", p.Status, w.debits(p.ID), submits)
		}
		if p.ExpiresAt != created.ExpiresAt {
			t.Error("what was not sent before moves the end of the window")
		}
	})
}

// Refused until the window is over, a payment ends without a doubt, and nobody
// has to check it.
func TestAPaymentThatIsRefusedToTheEndFails(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.way.set(func(context.Context, provider.Request, int) (provider.Result, error) {
			return provider.Result{}, &provider.Refusal{Err: provider.ErrCredentials, RetryAfter: time.Hour}
		}, nil)
		id := w.create("4567").ID
		time.Sleep(window + time.Second)
		if p := w.payment(id); p.Status != till.Failed || p.FailureReason != till.ProviderUnavailable || w.cases(id) != "" {
			t.Errorf("%s %s, cases %q; want failed provider_unavailable and none", p.Status, p.FailureReason, w.cases(id))
		}
	})
}
