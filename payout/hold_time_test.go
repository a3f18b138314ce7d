package payout_test

import (
	"context"
	"testing"
	"time"

	"till"
	"till/provider"
	"till/provider/sandbox"
	"till/store"
)

// A send that has to wait for the database to see whether payouts are held has the
// operator's time nevertheless: a send that is cut short is one whose outcome nobody
// knows.
func TestAPayoutHasItsTimeHoweverLongItIsLookedForHolds(t *testing.T) {
	t.Parallel()
	const timeout = 5 * time.Second
	inWorldOf(t, sandbox.Config{Window: time.Minute}, func(t *provider.Traits) { t.SubmitTimeout = timeout }, func(t *testing.T, w *world) {
		var left time.Duration
		w.way.set(func(ctx context.Context, r provider.Request, _ int) (provider.Result, error) {
			if end, ok := ctx.Deadline(); ok {
				left = time.Until(end)
			}
			return w.operator.Payouts().Submit(ctx, r)
		}, nil)
		w.way.mu.Lock()
		w.way.pause = 2 * time.Second
		w.way.mu.Unlock()
		id := w.create("4567").ID
		time.Sleep(time.Second)
		for range 4 { // all that read
			go func() {
				if err := w.store.View(context.Background(), func(*store.Tx) error { time.Sleep(timeout); return nil }); err != nil {
					t.Error(err)
				}
			}()
		}
		time.Sleep(20 * time.Second)
		if p := w.payout(id); left < timeout || p.Status != till.PayoutSuccess {
			t.Errorf("it is %s, sent with %s left; want success, with %s", p.Status, left, timeout)
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}
