package payout_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"till"
	"till/engine"
	"till/provider"
	"till/provider/sandbox"
	"till/store/storetest"
)

// What was sent again is proven absent anew before it is sent once more.
func TestAResendIsProvenAbsentAnew(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.deaf = true
		w.way.set(func(ctx context.Context, r provider.Request, n int) (provider.Result, error) {
			if n > 1 { // the first never arrives; the second does, and its answer is lost
				w.operator.Payouts().Submit(ctx, r)
			}
			return provider.Result{}, errAway
		}, nil)
		id := w.create("4567").ID
		time.Sleep(window)
		submits, _ := w.way.counts()
		if p := w.payout(id); p.Status != till.PayoutSuccess || w.credits(id) != 1 || submits != 2 {
			t.Errorf("%s with %d credits after %d sends; want success, one, two", p.Status, w.credits(id), submits)
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}

// A payout whose send was begun cannot be cancelled, also if it turned out that
// nothing left us: its attempt is on record under its reference, and it goes out
// again at any moment.
func TestAPayoutWhoseSendWasBegunIsNotCancelled(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.way.set(func(context.Context, provider.Request, int) (provider.Result, error) {
			return provider.Result{}, fmt.Errorf("%w: dial refused", provider.ErrNotSent)
		}, nil)
		id := w.create("4567").ID
		time.Sleep(100 * time.Millisecond)
		if s := w.step(id); s.Sends != 0 || s.SendStartedAt == 0 {
			t.Fatalf("the step is %+v; want one whose send was begun and did not leave", s)
		}
		if _, err := w.master.Cancel(context.Background(), w.ref(id), "api:test"); till.ErrorCode(err) != till.CodeNotCancellable {
			t.Errorf("cancel: %v, want %s", err, till.CodeNotCancellable)
		}
		w.wantWallet(t, 0, 1000, 0)
		w.way.set(nil, nil)
		time.Sleep(5 * time.Second)
		if p := w.payout(id); p.Status != till.PayoutSuccess || w.credits(id) != 1 {
			t.Errorf("%s with %d credits; want success with one", p.Status, w.credits(id))
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}

// One replica of the operator's that lags behind cannot have a reserve released:
// the two reads that prove a payout absent are the settle time apart.
func TestOneStaleReplicaReleasesNoReserve(t *testing.T) {
	t.Parallel()
	settle := 3 * time.Second
	inWorldOf(t, sandbox.Config{Window: settle + 700*time.Millisecond}, func(t *provider.Traits) { t.NotFoundDelay = settle }, func(t *testing.T, w *world) {
		w.deaf = true
		made := time.Now()
		w.way.set(func(ctx context.Context, r provider.Request, _ int) (provider.Result, error) {
			w.operator.Payouts().Submit(ctx, r)
			return provider.Result{}, errAway
		}, func(ctx context.Context, q provider.Query, _ int) (provider.Result, error) {
			if time.Since(made) < settle+2*time.Second { // four polls longer than it should
				return provider.Result{Outcome: provider.NotFound}, nil
			}
			return w.operator.Payouts().Check(ctx, q)
		})
		id := w.create("4567").ID
		time.Sleep(settle + 1700*time.Millisecond) // between two polls
		w.wantWallet(t, 0, 1000, 0)
		time.Sleep(settle + time.Second)
		if p := w.payout(id); p.Status != till.PayoutSuccess || w.credits(id) != 1 {
			t.Errorf("%s with %d credits; want success with one", p.Status, w.credits(id))
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}

// What a process has claimed and did not send, because it stood still until its
// lease was over, was not sent: it goes out, also to an operator that is sent to
// once, also if another instance has asked about it meanwhile.
func TestWhatAPausedProcessDidNotSendIsSent(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{NoDedup: true, Window: 3 * time.Minute, PollInterval: time.Second}, func(t *testing.T, w *world) {
		w.deaf = true
		w.way.mu.Lock()
		w.way.pause = engine.Lease + 10*time.Second
		w.way.mu.Unlock()
		_, stop := w.start() // a second instance
		defer stop()
		id := w.create("4567").ID
		time.Sleep(engine.Lease + 5*time.Second)
		if submits, checks := w.way.counts(); submits != 0 || checks == 0 {
			t.Fatalf("after its lease: %d sends, %d checks; want the other to ask", submits, checks)
		}
		time.Sleep(10 * time.Second)
		submits, _ := w.way.counts()
		if p := w.payout(id); p.Status != till.PayoutSuccess || submits != 1 || w.credits(id) != 1 {
			t.Errorf("%s after %d sends with %d credits; want success, one, one", p.Status, submits, w.credits(id))
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}

// A claim that waits for the database longer than its lease lasts has sent
// nothing either.
func TestAClaimThatWaitedLongerThanItsLeaseIsUnsent(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{NoDedup: true, Window: 3 * time.Minute, PollInterval: time.Second}, func(t *testing.T, w *world) {
		w.deaf = true
		w.stop()
		w.restart(onlyAccepts)
		id := w.create("4567").ID
		w.stop()
		storetest.HoldWriters(w.store, engine.Lease+5*time.Second)
		w.restart()
		time.Sleep(engine.Lease + 10*time.Second)
		submits, _ := w.way.counts()
		if p := w.payout(id); p.Status != till.PayoutSuccess || submits != 1 || w.credits(id) != 1 {
			t.Errorf("%s after %d sends with %d credits; want success, one, one", p.Status, submits, w.credits(id))
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}

// A send that was refused and then called back about was a send: what goes out after two
// reads that found nothing is the second, and its rejection is checked.
func TestASendAfterOneThatWasRefusedAndCalledBackAboutIsTheSecond(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{Window: 3 * time.Minute}, func(t *testing.T, w *world) {
		w.deaf = true
		w.way.set(func(ctx context.Context, r provider.Request, n int) (provider.Result, error) {
			if n == 1 {
				w.lost(ctx, r, n)
				return refuse(0)
			}
			w.way.set(nil, nil) // from here on its reads are up to date
			return provider.Result{Outcome: provider.Rejected, Reason: till.ProviderRejected}, nil
		}, notFound)
		id := w.createAndSend("4567").ID
		time.Sleep(time.Millisecond)
		if s := w.step(id); s.Sends != 0 || s.Calls != 1 {
			t.Fatalf("after the refusal its step is %+v", s)
		}
		w.calledBack(t, id)
		time.Sleep(time.Minute)
		submits, _ := w.way.counts()
		if p := w.payout(id); p.Status != till.PayoutSuccess || w.credits(id) != 1 || submits != 2 {
			t.Errorf("it is %s %s with %d credits after %d sends; want success, one, two", p.Status, p.FailureReason, w.credits(id), submits)
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}
