package checkout_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"till"
	"till/checkout"
	"till/provider"
	"till/store"
	"till/store/storetest"
)

// ends checks where a checkout has come to, and what was told of it.
func (w *world) ends(ref store.Ref, state till.CheckoutState, late, overpaid bool, payment till.ID, told string) {
	w.t.Helper()
	c := w.row(ref)
	if c.State != state || c.Late != late || c.Overpaid != overpaid || c.PaymentID != payment || (state == till.CheckoutPaid) == c.PaidAt.IsZero() {
		w.t.Errorf("it is %s, late %t, overpaid %t, paid by %s at %v; want %s, %t, %t, %s", c.State, c.Late, c.Overpaid, c.PaymentID, c.PaidAt, state, late, overpaid, payment)
	}
	if got := w.told(ref); got != told {
		w.t.Errorf("told %q, want %q", got, told)
	}
}

// A decline tells nothing of the checkout; the payment does, once.
func TestPaid(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ref := w.open(key1, `,"expires_in_seconds":300`)
		w.ask(ref, 1, "0002")
		time.Sleep(window)
		w.ends(ref, till.CheckoutOpen, false, false, till.ID{}, "")
		second := w.ask(ref, 2, "4567")
		time.Sleep(window)
		w.ends(ref, till.CheckoutPaid, false, false, second.PaymentID, "paid")
		time.Sleep(10 * time.Minute) // its time is over, and it stays
		w.ends(ref, till.CheckoutPaid, false, false, second.PaymentID, "paid")
		if _, _, err := w.checkouts.Cancel(t.Context(), ref, "api:test"); !isCode(err, till.CodeCheckoutLive) {
			t.Errorf("cancelled although it is paid: %v", err)
		}
	})
}

func isCode(err error, code till.Code) bool {
	var e *till.Error
	return errors.As(err, &e) && e.Code == code
}

// Nobody paid: it expires once, and never is paid by a new ask.
func TestExpires(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ref, other := w.open(key1, `,"expires_in_seconds":300`), w.open(key2, `,"expires_in_seconds":300`)
		w.ask(other, 1, "0002")
		time.Sleep(10 * time.Minute)
		w.ends(ref, till.CheckoutExpired, false, false, till.ID{}, "expired")
		w.ends(other, till.CheckoutExpired, false, false, till.ID{}, "expired")
		if c, _, err := w.checkouts.Cancel(t.Context(), ref, "api:test"); err != nil || c.State != till.CheckoutExpired {
			t.Errorf("cancelled after its end: %+v, %v", c, err)
		}
	})
}

// A decline that is read late, when the time is over, ends nothing while a later ask is live.
func TestALogThatIsReadLate(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ref := w.open(key1, `,"expires_in_seconds":300`)
		w.stop()
		w.unread = true
		w.start()
		w.ask(ref, 1, "0002")
		time.Sleep(window)
		a := w.ask(ref, 2, "0014") // nobody knows
		time.Sleep(10 * time.Minute)
		w.stop()
		w.unread = false
		w.start()
		time.Sleep(5 * time.Minute)
		w.ends(ref, till.CheckoutOpen, false, false, till.ID{}, "")
		w.decide(a, provider.Result{Outcome: provider.Success, Receipt: "late-1", Amount: a.Amount})
		time.Sleep(2 * time.Minute)
		w.ends(ref, till.CheckoutPaid, false, false, a.PaymentID, "paid")
	})
}

// P6: its time is over while the prompt is open; the customer approves after it. Paid, not expired.
func TestTimeNeverBeatsMoney(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ref := w.open(key1, `,"expires_in_seconds":300`)
		time.Sleep(299 * time.Second)
		a := w.ask(ref, 1, "0014") // nobody knows, for as long as the test wants
		if _, _, err := w.checkouts.Cancel(t.Context(), ref, "api:test"); !isCode(err, till.CodeCheckoutLive) {
			t.Errorf("cancelled with a live ask: %v", err)
		}
		time.Sleep(10 * time.Minute)
		w.ends(ref, till.CheckoutOpen, false, false, till.ID{}, "")
		// P4: the operator is silent past the window: no second ask, whatever is posted.
		if again := w.ask(ref, 2, "4567"); again.PaymentID != a.PaymentID {
			t.Errorf("asked again: %+v", again)
		}
		w.decide(a, storetest.Succeeded)
		time.Sleep(2 * time.Minute)
		w.ends(ref, till.CheckoutPaid, false, false, a.PaymentID, "paid")
	})
}

// P4: silent past the window, and then it has failed: the next may be asked.
func TestAnAskThatFailsInTheEnd(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ref := w.open(key1, "")
		a := w.ask(ref, 1, "0014")
		time.Sleep(10 * time.Minute)
		if v := w.view(ref); v.MayAsk() || v.Last.Stand() != till.AskLive {
			t.Fatalf("it may ask again although nobody knows: %+v", v.Last)
		}
		w.decide(a, storetest.Declined)
		if v := w.view(ref); !v.MayAsk() {
			t.Fatalf("it may not ask again: %+v", v.Last)
		}
		second := w.ask(ref, 2, "4567")
		time.Sleep(2 * time.Minute)
		w.ends(ref, till.CheckoutPaid, false, false, second.PaymentID, "paid")
	})
}

// P5: late money of the first ask after the second was paid: overpaid, told once, with a case.
func TestOverpaid(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ref := w.open(key1, "")
		first := w.ask(ref, 1, "0002")
		time.Sleep(window)
		second := w.ask(ref, 2, "4567")
		time.Sleep(2 * time.Minute)
		w.ends(ref, till.CheckoutPaid, false, false, second.PaymentID, "paid")
		w.decide(first, storetest.Succeeded)
		time.Sleep(2 * time.Minute)
		w.ends(ref, till.CheckoutPaid, false, true, second.PaymentID, "paid overpaid")
		storetest.View(t, w.store, func(ctx context.Context, tx *store.Tx) error {
			open, err := tx.Cases(ctx, store.CaseFilter{Client: w.client.ID, Subject: first.PaymentID, Limit: 10})
			found := false
			for _, c := range open {
				found = found || c.Kind == "paid_twice"
			}
			if !found {
				t.Errorf("no case of the first: %+v", open)
			}
			return err
		})
	})
}

// Money that comes after the checkout has ended is late, and wins.
func TestLate(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		expired, cancelled := w.open(key1, `,"expires_in_seconds":300`), w.open(key2, "")
		a, b := w.ask(expired, 1, "0002"), w.ask(cancelled, 1, "0002")
		time.Sleep(10 * time.Minute)
		if c, _, err := w.checkouts.Cancel(t.Context(), cancelled, "api:test"); err != nil || c.State != till.CheckoutCancelled {
			t.Fatalf("not cancelled: %+v, %v", c, err)
		}
		if _, err := w.checkouts.Ask(t.Context(), w.who(), cancelled, typed(2, "4567")); !errors.Is(err, checkout.ErrOver) {
			t.Errorf("asked after it was cancelled: %v", err)
		}
		w.decide(a, storetest.Succeeded)
		w.decide(b, storetest.Succeeded)
		time.Sleep(2 * time.Minute)
		w.ends(expired, till.CheckoutPaid, true, false, a.PaymentID, "expired paid")
		w.ends(cancelled, till.CheckoutPaid, true, false, b.PaymentID, "cancelled paid")
	})
}

// An ask that was written down and not sent gets no payment once its checkout was cancelled.
func TestCancelEndsWhatWasNotSent(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ref := w.open(key1, "")
		collector := w.collector
		w.collector = storetest.NewCollector(t, w.store)
		if err := w.collector.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		dying := w.make(nil)
		w.collector = collector
		if a, err := dying.Ask(t.Context(), w.who(), ref, typed(1, "4567")); err == nil || a.Stand() != till.AskUnsent {
			t.Fatalf("%+v, %v", a, err)
		}
		if c, asks, err := w.checkouts.Cancel(t.Context(), ref, "api:test"); err != nil || c.State != till.CheckoutCancelled || asks[0].Refused != till.AskNotSent {
			t.Fatalf("not cancelled: %+v, %+v, %v", c, asks, err)
		}
		if a, err := w.checkouts.Ask(t.Context(), w.who(), ref, typed(1, "4567")); err != nil || a.Stand() != till.AskEnded {
			t.Errorf("posted again: %+v, %v", a, err)
		}
		w.ends(ref, till.CheckoutCancelled, false, false, till.ID{}, "cancelled")
		if w.way.submits.Load() != 0 {
			t.Error("it was sent all the same")
		}
	})
}
