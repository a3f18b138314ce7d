package payout_test

import (
	"context"
	"testing"
	"time"

	"till"
	"till/provider"
	"till/provider/sandbox"
)

// A clock that is set back by an hour, or was a day ahead, delays no payout and
// leaves none a day too long to be sent.
func TestAClockThatIsSetBackKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{PollInterval: time.Second}, func(t *testing.T, w *world) {
		w.deaf = true
		// It is held by the operator for a while, and then paid.
		began := time.Now()
		w.way.set(nil, func(ctx context.Context, q provider.Query, _ int) (provider.Result, error) {
			if time.Since(began) < 8*time.Second {
				return provider.Result{Outcome: provider.Open}, nil
			}
			return w.operator.Payouts().Check(ctx, q)
		})
		open := w.create("4567").ID
		time.Sleep(5 * time.Second)
		w.offset.Store(int64(-time.Hour))
		time.Sleep(5 * time.Second)
		if p := w.payout(open); p.Status != till.PayoutSuccess {
			t.Errorf("an hour back it is %s, due in %s", p.Status, w.step(open).DueAt.Sub(w.store.Now()))
		}

		w.offset.Store(int64(24 * time.Hour))
		w.stop()
		w.restart(onlyAccepts)
		ahead := w.create("4567").ID
		w.offset.Store(0)
		made := w.create("4567")
		after := made.ID
		if p := w.payout(after); p.ExpiresAt > w.store.Now().Add(window) || made.ExpiresAt != p.ExpiresAt {
			t.Errorf("made after a day ahead, it may be sent for %s, and the answer said until %s", p.ExpiresAt.Sub(w.store.Now()), made.ExpiresAt)
		}
		w.stop()
		w.way.set(func(context.Context, provider.Request, int) (provider.Result, error) {
			return provider.Result{}, errAway
		}, nil)
		w.restart()
		time.Sleep(2 * time.Second)
		for _, id := range []till.ID{ahead, after} {
			// Proven absent and sent again, it has a window of its own.
			if p := w.payout(id); p.ExpiresAt > w.store.Now().Add(window) {
				t.Errorf("it may be sent for %s", p.ExpiresAt.Sub(w.store.Now()))
			}
		}
		time.Sleep(time.Minute)
		for _, id := range []till.ID{ahead, after} {
			if p := w.payout(id); p.Status != till.PayoutFailed {
				t.Errorf("what never arrived is %s a minute later", p.Status)
			}
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}

// A callback that came while the clock was a day ahead does not keep a payout that
// never arrived from being proven absent.
func TestACallbackOfAClockThatWasAheadKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{PollInterval: time.Second}, func(t *testing.T, w *world) {
		w.way.set(func(context.Context, provider.Request, int) (provider.Result, error) {
			return provider.Result{}, errAway
		}, nil)
		w.offset.Store(int64(24 * time.Hour))
		id := w.create("4567").ID
		time.Sleep(100 * time.Millisecond)
		w.calledBack(t, id)
		w.offset.Store(0)
		time.Sleep(time.Minute)
		if p := w.payout(id); p.Status != till.PayoutFailed {
			t.Errorf("what never arrived is %s a minute later, with the step %+v", p.Status, w.step(id))
		}
	})
}

// What the operator has called back about stays called back about when a clock that was
// ahead is set right: it is neither cancelled nor sent again.
func TestACallbackIsEvidenceWhateverTheClockSays(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{PollInterval: time.Second, Window: 3 * time.Minute, NoDedup: true}, func(t *testing.T, w *world) {
		w.deaf = true
		w.way.set(func(ctx context.Context, r provider.Request, n int) (provider.Result, error) {
			w.lost(ctx, r, n)
			return refuse(time.Minute)
		}, func(context.Context, provider.Query, int) (provider.Result, error) { return provider.Result{}, errAway })
		w.offset.Store(int64(24 * time.Hour))
		id := w.createAndSend("4567").ID
		time.Sleep(time.Second)
		w.calledBack(t, id)
		w.offset.Store(0)
		time.Sleep(5 * time.Second)
		w.hold(w.client.ID)
		time.Sleep(5 * time.Second)
		if p, err := w.master.Cancel(context.Background(), w.ref(id), "api:test"); till.ErrorCode(err) != till.CodeNotCancellable {
			t.Errorf("cancel: %+v, %v", p, err)
		}
		w.release(w.client.ID)
		time.Sleep(2 * time.Minute)
		w.way.set(nil, nil)
		time.Sleep(time.Minute)
		if p := w.payout(id); p.Status != till.PayoutSuccess || w.credits(id) != 1 {
			submits, _ := w.way.counts()
			t.Errorf("it is %s with %d credits after %d sends; want success, one, one", p.Status, w.credits(id), submits)
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}
