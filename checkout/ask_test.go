package checkout_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"till"
	"till/checkout"
	"till/engine"
	"till/store"
	"till/store/checkouts"
	"till/store/storetest"
)

// P2: declined, then another number, and paid. The form of the first ask, posted again, asks nothing.
func TestAnotherNumberAfterADecline(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ref := w.open(key1, "")
		first := w.ask(ref, 1, "0002")
		time.Sleep(window)
		if v := w.view(ref); v.Last.Stand() != till.AskEnded || !v.MayAsk() || v.Next() != 2 || v.Payment.FailureReason != till.CustomerDeclined {
			t.Fatalf("after a decline: %+v", v.Last)
		}
		if again := w.ask(ref, 1, "4567"); again.PaymentID != first.PaymentID || w.way.submits.Load() != 1 {
			t.Errorf("the first form asked again: %+v", again)
		}
		if _, err := w.checkouts.Ask(t.Context(), w.who(), ref, typed(3, "4567")); !errors.Is(err, checkout.ErrForm) {
			t.Errorf("a form of an ask to come: %v", err)
		}
		second := w.ask(ref, 2, "4567")
		time.Sleep(window)
		if v := w.view(ref); v.Last.Stand() != till.AskCredited || v.MayAsk() || second.PaymentID == first.PaymentID {
			t.Fatalf("after the approval: %+v", v.Last)
		}
		for n := range 5 {
			if a := w.ask(ref, n, "4568"); a.PaymentID != second.PaymentID {
				t.Errorf("asked again although it is paid: %+v", a)
			}
		}
		if w.debits() != 1 || w.way.submits.Load() != 2 {
			t.Errorf("%d debits, %d prompts", w.debits(), w.way.submits.Load())
		}
	})
}

// P3: posted again while the first is live, with whatever form and number.
func TestALiveAskIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ref := w.open(key1, "")
		first := w.ask(ref, 1, "0003")
		for n := range 4 {
			if a := w.ask(ref, n, "4567"); a.N != 1 || a.PaymentID != first.PaymentID || a.Phone != first.Phone {
				t.Errorf("form %d asked: %+v", n, a)
			}
		}
		time.Sleep(2 * window)
		if w.way.submits.Load() != 1 || w.debits() != 0 {
			t.Errorf("%d prompts, %d debits", w.way.submits.Load(), w.debits())
		}
	})
}

// A process dies between the two commits: the next post makes the payment of the row that is
// there, whatever is typed now.
func TestACrashBetweenTheCommits(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ref := w.open(key1, "")
		collector := w.collector
		w.collector = storetest.NewCollector(t, w.store, func(c *engine.Config) { c.AcceptOnly = true })
		// The second commit of this one never comes.
		if err := w.collector.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		dying := w.make(nil)
		w.collector = collector
		a, err := dying.Ask(t.Context(), w.who(), ref, typed(1, "4567"))
		if err == nil || a == nil || a.Stand() != till.AskUnsent {
			t.Fatalf("%+v, %v; want an ask that was not sent", a, err)
		}
		if v := w.view(ref); v.MayAsk() || v.Last.Stand() != till.AskUnsent || v.Payment != nil {
			t.Fatalf("after the crash: %+v", v)
		}
		again := w.ask(ref, 1, "0002") // another number, which would decline
		if again.N != 1 || again.Phone != a.Phone || again.Key != a.Key {
			t.Errorf("asked %+v, want the row that is there, %+v", again, a)
		}
		time.Sleep(window)
		if v := w.view(ref); v.Last.Stand() != till.AskCredited || w.way.submits.Load() != 1 || w.debits() != 1 {
			t.Errorf("%+v after %d prompts and %d debits", v.Last, w.way.submits.Load(), w.debits())
		}
	})
}

// P15: a checkout that was lost with its database and made again by the shop's retry names the
// same payments.
func TestALostCheckoutNamesTheSamePayments(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ref := w.open(key1, "")
		first := w.ask(ref, 1, "0002")
		time.Sleep(window)
		second := w.ask(ref, 2, "0003")
		lose(t, w)
		again := w.open(key1, "")
		if again == ref {
			t.Fatal("the checkout was not lost")
		}
		a := w.ask(again, 1, "4567")
		if a.N != 2 || a.PaymentID != second.PaymentID || a.Phone != second.Phone {
			t.Errorf("asked %+v, want the payment that was made before, %+v", a, second)
		}
		time.Sleep(time.Second)
		v := w.view(again)
		if v.Last.N != 2 || v.Last.Key == first.Key || w.way.submits.Load() != 2 {
			t.Errorf("%+v after %d prompts", v.Last, w.way.submits.Load())
		}
	})
}

// lose takes all checkouts away, as a restore of an older backup does.
func lose(t *testing.T, w *world) {
	t.Helper()
	err := w.store.Update(context.Background(), func(tx *store.Tx) error {
		return tx.DB().Script(context.Background(), `DELETE FROM checkouts; DELETE FROM checkout_asks; DELETE FROM checkout_cursors; DELETE FROM pay_tokens`)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What is wrong with what was typed costs nothing: no row, and none of the asks.
func TestWhatWasTypedWrongIsNotWrittenDown(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ref := w.open(key1, `,"methods":["mtn_momo"],"country":"CG"`)
		for name, c := range map[string]checkout.Typed{
			"number":  {N: 1, Phone: "06123456", Method: "mtn_momo", Country: "CG"},
			"method":  {N: 1, Phone: "242061234567", Method: "airtel_money", Country: "CG"},
			"nothing": {N: 1},
			"country": {N: 1, Phone: "237650000000", Method: "mtn_momo", Country: "CM"},
		} {
			_, err := w.checkouts.Ask(t.Context(), w.who(), ref, c)
			var e *till.Error
			if !errors.As(err, &e) || e.Code != till.CodeValidationFailed || len(e.Fields) == 0 {
				t.Errorf("%s: %v", name, err)
			}
		}
		if v := w.view(ref); v.Last != nil || w.way.submits.Load() != 0 {
			t.Errorf("something was written down: %+v", v.Last)
		}
	})
}

// At most five asks and three numbers.
func TestTheBoundsOfAsks(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ref, other := w.open(key1, ""), w.open(key2, "")
		for n := 1; n <= till.MaxAsks; n++ {
			w.ask(ref, n, []string{"0002", "0007"}[n%2])
			time.Sleep(2 * window)
		}
		if _, err := w.checkouts.Ask(t.Context(), w.who(), ref, typed(till.MaxAsks+1, "0002")); !errors.Is(err, checkout.ErrAsks) {
			t.Errorf("the sixth ask: %v", err)
		}
		for n, story := range []string{"0002", "0004", "0006"} {
			w.ask(other, n+1, story)
			time.Sleep(2 * window)
		}
		if _, err := w.checkouts.Ask(t.Context(), w.who(), other, typed(4, "4567")); !errors.Is(err, checkout.ErrAsks) {
			t.Errorf("the fourth number: %v", err)
		}
		if a := w.ask(other, 4, "0002"); a.N != 4 {
			t.Errorf("a number that was asked before: %+v", a)
		}
	})
}

// Time over: nothing new is asked; a checkout whose number is fixed asks no other.
func TestTimeOverAndFixedNumber(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ref := w.open(key1, `,"expires_in_seconds":300,"phone":"242061230002","phone_fixed":true`)
		if a := w.ask(ref, 1, "4567"); a.Phone != "242061230002" {
			t.Errorf("another number was asked: %+v", a)
		}
		time.Sleep(301 * time.Second)
		if _, err := w.checkouts.Ask(t.Context(), w.who(), ref, typed(2, "4567")); !errors.Is(err, checkout.ErrOver) {
			t.Errorf("asked after its time: %v", err)
		}
		if a := w.ask(ref, 1, "4567"); a.N != 1 || a.Stand() != till.AskEnded {
			t.Errorf("the ask of the old form is %+v", a)
		}
	})
}

// An ask that is to be made when its checkout has ended, or whose refusal was written down by
// another call, makes no payment.
func TestAnAskIsAdmittedInTheCommitThatMakesIt(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ref := w.open(key1, "")
		hold := make(chan struct{})
		slow := w.make(func(c *checkout.Config) {
			c.Limit = func(_ context.Context, tx *store.Tx, _ *till.Checkout, a *till.Ask) error {
				tx.AfterCommit(func() { close(hold) })
				return nil
			}
		})
		done := make(chan error, 1)
		go func() {
			<-hold
			// The refusal of another call of the same ask, before this one's payment.
			done <- w.store.Update(context.Background(), func(tx *store.Tx) error {
				if _, err := tx.LockHeads(context.Background(), []till.ID{w.client.ID}); err != nil {
					return err
				}
				p, err := tx.PaymentByKey(context.Background(), w.client.ID, slow.Keys().Ask(w.client.ID, key1, 1))
				if err != nil || p != nil {
					return err
				}
				return checkouts.Refuse(context.Background(), tx, &till.Ask{ClientID: ref.Client, CheckoutID: ref.ID, N: 1}, till.CodeMethodUnavailable)
			})
		}()
		a, err := slow.Ask(t.Context(), w.who(), ref, typed(1, "4567"))
		if wrong := <-done; wrong != nil {
			t.Fatal(wrong)
		}
		v := w.view(ref)
		refused, made := v.Last.Refused != "", v.Payment != nil
		if refused == made || refused != (err != nil) || a == nil {
			t.Errorf("refused %t, and a payment %t; the call returned %+v, %v", refused, made, a, err)
		}
	})
}

// Nobody could open the page of a client whose name pages may not show, so no checkout is made.
func TestANameThatNoPageShows(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.client.Name = "MTN MoMo"
		_, err := w.checkouts.Create(t.Context(), w.who(), request(t, body("00000000-0000-4000-8000-0000000000aa", "")))
		if till.ErrorCode(err) != till.CodePagesNotAvailable {
			t.Errorf("%v", err)
		}
	})
}

// A form that was made for another ask than the next asks nothing: one from the future, and none.
func TestAFormOfAnotherAskAsksNothing(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ref := w.open(key1, "")
		nobody := func(n int) {
			t.Helper()
			if a, err := w.checkouts.Ask(t.Context(), w.who(), ref, typed(n, "4567")); !errors.Is(err, checkout.ErrForm) || a != nil {
				t.Errorf("form %d: %+v %v", n, a, err)
			}
		}
		for _, n := range []int{0, 2, -1, 21} {
			nobody(n)
		}
		w.ask(ref, 1, "0002")
		time.Sleep(window)
		for _, n := range []int{0, 3} {
			nobody(n)
		}
		if a := w.ask(ref, 1, "4567"); a.N != 1 || w.way.submits.Load() != 1 { // the first form again, with another number
			t.Errorf("%+v after %d prompts", a, w.way.submits.Load())
		}
	})
}

// What may have happened between the commit that wrote an ask down and the one that makes its
// payment: each, one at a time.
func TestWhatIsAdmitted(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		insert := func(ref store.Ref, key string, n int) *till.Ask {
			t.Helper()
			a := &till.Ask{ClientID: ref.Client, CheckoutID: ref.ID, N: n, Key: w.checkouts.Keys().Ask(ref.Client, key, n), Method: "mtn_momo", Country: "CG",
				Amount: w.row(ref).Amount, Phone: "242061234567", AskedAt: till.TimeOf(time.Now())}
			w.change(ref.Client, func(tx *store.Tx) error { return checkouts.InsertAsk(ctx, tx, a) })
			return a
		}
		admits := func(what string, a *till.Ask, want bool) {
			t.Helper()
			var err error
			storetest.View(t, w.store, func(ctx context.Context, tx *store.Tx) error {
				err = w.checkouts.Admit(ctx, tx, a)
				return nil
			})
			if want && err != nil || !want && till.ErrorCode(err) != till.AskNotSent {
				t.Errorf("%s: %v", what, err)
			}
		}
		ref := w.open(key1, `,"expires_in_seconds":300`)
		first := insert(ref, key1, 1)
		admits("as it was written down", first, true)
		second := insert(ref, key1, 2)
		admits("one that another follows", first, false)
		admits("one that follows another, whose payment is not made", second, false)
		w.change(ref.Client, func(tx *store.Tx) error { return checkouts.Refuse(ctx, tx, first, till.CodeMethodUnavailable) })
		admits("one that was refused", first, false)
		admits("one that follows a refused one", second, true)

		alone := w.open("0b8b5a1c-9f39-4a7e-8f5f-3f3a6d1c1a03", "")
		refused := insert(alone, "0b8b5a1c-9f39-4a7e-8f5f-3f3a6d1c1a03", 1)
		w.change(ref.Client, func(tx *store.Tx) error { return checkouts.Refuse(ctx, tx, refused, till.CodeMethodUnavailable) })
		admits("the only one, refused", refused, false)

		other := w.open(key2, `,"expires_in_seconds":300`)
		late := insert(other, key2, 1)
		time.Sleep(299 * time.Second)
		admits("in the last second", late, true)
		time.Sleep(2 * time.Second)
		admits("when the time is over", late, false)
	})
}
