package payout_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"till"
	"till/account"
	"till/books"
	"till/engine"
	"till/provider"
	"till/provider/sandbox"
	"till/recovery"
	"till/store"
	"till/store/auditlog"
	"till/store/storetest"
)

// suspend shuts the client out, and resume lets it in again.
func (w *world) suspend() {
	w.t.Helper()
	if err := account.New(w.store, nil).Suspend(context.Background(), w.client.ID, "cli:awa"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) resume() {
	w.t.Helper()
	if err := account.New(w.store, nil).Resume(context.Background(), w.client.ID, "cli:awa"); err != nil {
		w.t.Fatal(err)
	}
}

// hold holds payouts as a person does, release ends that.
func (w *world) hold(client till.ID) {
	w.t.Helper()
	if err := books.HoldPayouts(context.Background(), w.store, client, "person:Awa", "something is wrong"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) release(client till.ID) {
	w.t.Helper()
	if err := books.ReleasePayouts(context.Background(), w.store, client, "person:Awa", "all is well"); err != nil {
		w.t.Fatal(err)
	}
}

// isHeld checks that a payout waits, with its reserve, and was not sent.
func (w *world) isHeld(t *testing.T, when string, id till.ID) {
	t.Helper()
	submits, checks := w.way.counts()
	p, s := w.payout(id), w.step(id)
	if submits != 0 || checks != 0 || p.Status != till.PayoutPending || p.Resolution.State != till.NeedsAttention || w.cases(id) != engine.CaseHeld || s == nil || s.HeldAt == 0 {
		t.Errorf("%s it is %s, %s, after %d sends and %d checks, with the cases %q; want it held", when, p.Status, p.Resolution.State,
			submits, checks, w.cases(id))
	}
	w.wantWallet(t, 0, 1000, 0)
}

// isPaid checks that a payout that was held went out, once.
func (w *world) isPaid(t *testing.T, when string, id till.ID) {
	t.Helper()
	w.isPaidAfter(t, when, id, "pending needs_attention attention_ended processing success")
}

// isPaidAfter says that a payout was paid once, and by which events it was reported.
func (w *world) isPaidAfter(t *testing.T, when string, id till.ID, events string) {
	t.Helper()
	p := w.payout(id)
	if submits, _ := w.way.counts(); submits != 1 || p.Status != till.PayoutSuccess || p.Resolution.State != till.Confirmed || w.credits(id) != 1 || w.cases(id) != "" {
		t.Errorf("%s it is %s after %d sends, with %d credits and the cases %q; want it paid once", when, p.Status, submits, w.credits(id), w.cases(id))
	}
	if got := w.kinds(id); got != events {
		t.Errorf("%s its events are %q", when, got)
	}
	w.wantWallet(t, 1000, 0, 0)
}

// Suspending a client stops its money: what was not sent waits, with its
// reserve, however long, and goes out when the client is resumed.
func TestASuspendedClientsUnsentPayoutsAreHeldAndResumed(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{Window: time.Minute}, func(t *testing.T, w *world) {
		p := w.unsent("4567")
		w.suspend()
		w.again()
		time.Sleep(10 * time.Minute) // far beyond its window
		w.isHeld(t, "while its client is suspended", p.ID)
		w.resume()
		time.Sleep(2 * time.Minute)
		w.isPaid(t, "when its client is resumed", p.ID)
	})
}

// What was sent before goes on: it is asked about, and its end is recorded.
func TestASuspensionDoesNotStopWhatWasSent(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.deaf = true
		p := w.create("4567")
		time.Sleep(100 * time.Millisecond)
		if submits, _ := w.way.counts(); submits != 1 {
			t.Fatalf("it was sent %d times", submits)
		}
		w.suspend()
		time.Sleep(5 * time.Second)
		w.isPaidAfter(t, "while its client is suspended", p.ID, "pending processing success") // it was never held
	})
}

// A person's hold is for one client or for all. It refuses new payouts with the
// answer to a retry as ever, keeps what was not sent, and ends nothing else.
func TestAPersonHoldsThePayoutsOfOneClientOrOfAll(t *testing.T) {
	t.Parallel()
	for name, all := range map[string]bool{"one client": false, "all": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorldWith(t, sandbox.Config{Window: time.Minute}, func(t *testing.T, w *world) {
				ctx := context.Background()
				other := storetest.NewClient(t, w.store, till.Test)
				fund(t, w.store, other, 1000)
				whom := w.client.ID
				if all {
					whom = store.EveryClient
				}
				w.stop()
				w.restart(onlyAccepts)
				key := till.NewID(w.store.Now()).String()
				first, err := w.master.Create(ctx, w.who(), request(t, key, "4567", "1000"))
				if err != nil {
					t.Fatal(err)
				}
				w.hold(whom)
				w.hold(whom) // a second time changes nothing
				w.again()
				if _, err := w.try("4567", 1000); till.ErrorCode(err) != till.CodePayoutsHeld {
					t.Errorf("a new payout: %v", err)
				}
				if c, err := w.master.Create(ctx, w.who(), request(t, key, "4567", "1000")); err != nil || !c.Replayed || c.Payout.ID != first.Payout.ID {
					t.Errorf("a retry of an old one: %+v, %v", c, err)
				}
				time.Sleep(10 * time.Minute)
				w.isHeld(t, "while payouts are held", first.Payout.ID)
				c, err := w.master.Create(ctx, engine.Client{Client: other, Enabled: func(string) bool { return true }}, request(t, key, "4567", "1000"))
				if held := till.ErrorCode(err) == till.CodePayoutsHeld; held != all || err == nil == all {
					t.Errorf("another client's payout: %+v, %v", c.Payout, err)
				}
				if held, err := books.HeldPayouts(ctx, w.store, store.EveryClient); err != nil || held.Waiting != 1 || len(held.Holds) != 1 ||
					held.Holds[0].By != "person:Awa" || held.Holds[0].Reason != "something is wrong" || held.Holds[0].Client != whom {
					t.Errorf("what is held: %+v, %v", held, err)
				}
				time.Sleep(5 * time.Second)
				before, _ := w.way.counts()
				w.release(whom)
				time.Sleep(2 * time.Minute)
				after, _ := w.way.counts()
				if p := w.payout(first.Payout.ID); p.Status != till.PayoutSuccess || after-before != 1 || w.credits(p.ID) != 1 || w.cases(p.ID) != "" {
					t.Errorf("released, it is %s after %d sends, with the cases %q", p.Status, after-before, w.cases(p.ID))
				}
				w.wantWallet(t, 1000, 0, 0)
				if got := w.acts("payouts."); got != "payouts.hold payouts.hold payouts.release" {
					t.Errorf("the audit log has %q", got)
				}
			})
		})
	}
}

// acts lists the actions in the client's audit log that begin with a word.
func (w *world) acts(prefix string) string {
	w.t.Helper()
	var acts []string
	w.view(func(ctx context.Context, tx *store.Tx) error {
		rows, err := auditlog.Read(ctx, tx, w.client.ID, 0, 1000)
		for _, r := range rows {
			if strings.HasPrefix(r.Action, prefix) {
				acts = append(acts, r.Action)
			}
		}
		return err
	})
	return strings.Join(acts, " ")
}

// Holds of different causes are independent: what one has held another does
// not release.
func TestHoldsOfDifferentCausesAreIndependent(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{Window: time.Minute}, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.restored(w.store.Now())
		if _, err := recovery.Release(ctx, w.store, "person:Awa"); err != nil { // so that what is made now is not one of the old
			t.Fatal(err)
		}
		p := w.unsent("4567")
		w.suspend()
		w.hold(w.client.ID)
		w.hold(store.EveryClient)
		w.again()
		for _, c := range []struct {
			name    string
			release func()
		}{
			{"while all hold it", func() {}},
			{"when a restore is released", func() {
				if _, err := recovery.Release(ctx, w.store, "person:Awa"); err != nil {
					t.Fatal(err)
				}
			}},
			{"when everybody's are released", func() { w.release(store.EveryClient) }},
			{"when its client is resumed", w.resume},
		} {
			c.release()
			time.Sleep(5 * time.Minute)
			w.isHeld(t, c.name, p.ID)
		}
		w.release(w.client.ID)
		time.Sleep(2 * time.Minute)
		w.isPaid(t, "when its client's are released", p.ID)
	})
}

// A hold is seen at the last moment: a process that has claimed a payout and
// pauses before it sends, or waits for its commit, does not send it.
func TestAHoldStopsWhatIsClaimedAndNotSent(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{Window: time.Minute, PollInterval: time.Second}, func(t *testing.T, w *world) {
		w.way.mu.Lock()
		w.way.pause = 10 * time.Second
		w.way.mu.Unlock()
		_, stop := w.start() // a second instance
		defer stop()
		p := w.create("4567")
		time.Sleep(2 * time.Second)
		if s := w.step(p.ID); s.Sends != 1 || s.LeaseUntil == 0 {
			t.Fatalf("the step is %+v; want it claimed for its first send", s)
		}
		w.hold(store.EveryClient)
		time.Sleep(5 * time.Minute)
		w.isHeld(t, "claimed before and held since", p.ID)
		w.way.set(func(context.Context, provider.Request, int) (provider.Result, error) {
			return provider.Result{}, fmt.Errorf("%w: dial refused", provider.ErrNotSent)
		}, nil)
		w.release(store.EveryClient)
		time.Sleep(2 * time.Second)
		got := w.payout(p.ID)
		for n := 0; got.Resolution.State != till.Waiting && n < 50; n++ { // a try may be under way just now
			time.Sleep(30 * time.Millisecond)
			got = w.payout(p.ID)
		}
		if got.Resolution.State != till.Waiting || w.cases(p.ID) != "" {
			t.Errorf("released and not sent yet it is %s, with the cases %q", got.Resolution.State, w.cases(p.ID))
		}
		w.way.set(nil, nil)
		before, _ := w.way.counts()
		time.Sleep(10 * time.Second)
		if after, _ := w.way.counts(); after-before != 1 || w.payout(p.ID).Status != till.PayoutSuccess || w.credits(p.ID) != 1 {
			t.Errorf("it is %s after %d sends more, with %d credits", w.payout(p.ID).Status, after-before, w.credits(p.ID))
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}

// One whose send was begun and left nothing can be cancelled while it is held.
func TestAHeldPayoutIsCancelledWhateverItsFirstSendCameTo(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{Window: time.Minute}, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.way.set(func(context.Context, provider.Request, int) (provider.Result, error) {
			return provider.Result{}, fmt.Errorf("%w: dial refused", provider.ErrNotSent)
		}, nil)
		begun := w.create("4567")
		time.Sleep(100 * time.Millisecond)
		w.suspend()
		time.Sleep(5 * time.Minute)
		if s := w.step(begun.ID); s.Sends != 0 || s.SendStartedAt == 0 || s.HeldAt == 0 {
			t.Fatalf("the step is %+v; want one whose send was begun, did not leave, and is held", s)
		}
		if p, err := w.master.CancelFor(ctx, w.ref(begun.ID), "person:Awa", "fraud"); err != nil || p.Status != till.PayoutCancelled {
			t.Errorf("cancel: %v", err)
		}
		w.wantWallet(t, 0, 0, 0)
		if w.cases(begun.ID) != "" || w.kinds(begun.ID) != "pending needs_attention cancelled" {
			t.Errorf("it has the cases %q and the events %q", w.cases(begun.ID), w.kinds(begun.ID))
		}
		w.way.set(nil, nil)
		w.resume()
		time.Sleep(5 * time.Minute)
		if p := w.payout(begun.ID); p.Status != till.PayoutCancelled || w.credits(begun.ID) != 0 {
			t.Errorf("after the release it is %s with %d credits", p.Status, w.credits(begun.ID))
		}
	})
}

// What was sent, and is proven absent, is not sent again while payouts are held.
// Its time runs, because nobody can cancel it: it ends as failed.
func TestAHoldStopsASecondSend(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{Window: 3 * time.Minute}, func(t *testing.T, w *world) {
		w.way.set(func(context.Context, provider.Request, int) (provider.Result, error) {
			return provider.Result{}, errAway
		}, nil)
		p := w.createAndSend("4567")
		time.Sleep(time.Millisecond)
		w.hold(w.client.ID)
		time.Sleep(2 * time.Minute)
		submits, _ := w.way.counts()
		if got := w.payout(p.ID); submits != 1 || got.Status != till.PayoutPending || w.cases(p.ID) != engine.CaseHeld {
			t.Errorf("in its time it is %s after %d sends, with the cases %q; want it held after one", got.Status, submits, w.cases(p.ID))
		}
		w.wantWallet(t, 0, 1000, 0)
		time.Sleep(2 * time.Minute)
		submits, _ = w.way.counts()
		if got := w.payout(p.ID); submits != 1 || got.Status != till.PayoutFailed || w.cases(p.ID) != "" {
			t.Errorf("after its time it is %s after %d sends, with the cases %q; want failed after one", got.Status, submits, w.cases(p.ID))
		}
		w.wantWallet(t, 0, 0, 0)
		if held, err := books.HeldPayouts(context.Background(), w.store, store.EveryClient); err != nil || held.Waiting != 0 {
			t.Errorf("%+v wait, %v", held, err)
		}
	})
}

// A suspended client makes no payout, however the call was admitted, and gets an error: it is no
// hold that ends by itself.
func TestASuspendedClientMakesNoPayout(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{Window: time.Minute}, func(t *testing.T, w *world) {
		w.suspend()
		if p, err := w.try("4567", 1000); till.ErrorCode(err) != till.CodeClientSuspended {
			t.Errorf("got %+v, %v", p, err)
		}
	})
}
