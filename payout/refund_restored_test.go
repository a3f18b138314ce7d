package payout_test

import (
	"context"
	"testing"
	"time"

	"till"
	"till/provider"
	"till/provider/sandbox"
	"till/recovery"
	"till/store/storetest"
)

// A backup is put back that was made at each moment of a refund's life. Its customer is paid
// once, or not at all where nothing was sent; the sums are what the refund came to; and the
// payment cannot be given back again before that is known.
func TestARefundIsRestoredAtEachMomentOfItsLife(t *testing.T) {
	t.Parallel()
	ask := func(w *world, p *till.Payout) error {
		_, err := w.master.Refund(context.Background(), w.who(), storetest.RefundBody{PaymentID: p.PaymentID.String()}.Request(w.t, w.store))
		return err
	}
	failed := till.RefundSums{Amount: 1000}
	done := till.RefundSums{Amount: 1000, Refunded: 1000}
	for _, c := range []struct {
		name    string
		life    func(w *world) *till.Payout // until the backup, and then in the lost time
		status  till.PayoutStatus
		credits int
		submits int // after the restore
		sums    till.RefundSums
	}{
		{"created, and cancelled in the lost time", func(w *world) *till.Payout {
			return w.unsentRefund("4567")
		}, till.PayoutFailed, 0, 0, failed},
		{"created, and sent in the lost time", func(w *world) *till.Payout {
			p := w.unsentRefund("4567")
			w.sendElsewhere(p)
			return p
		}, till.PayoutSuccess, 1, 0, done},
		{"sent, whose answer was lost", func(w *world) *till.Payout {
			w.way.set(func(ctx context.Context, r provider.Request, n int) (provider.Result, error) {
				w.operator.Payouts().Submit(ctx, r)
				return provider.Result{}, errAway
			}, nil)
			p := w.refund("4567", 1000)
			for submits, _ := w.way.counts(); submits == 0; submits, _ = w.way.counts() {
				time.Sleep(time.Millisecond)
			}
			w.stop()
			w.way.set(nil, nil)
			w.restart(refundsOf, onlyAccepts)
			return p
		}, till.PayoutSuccess, 1, 0, done},
		{"succeeded", func(w *world) *till.Payout {
			p := w.refund("4567", 1000)
			time.Sleep(5 * time.Second)
			return p
		}, till.PayoutSuccess, 1, 0, done},
		{"failed", func(w *world) *till.Payout {
			p := w.refund("0031", 1000)
			time.Sleep(5 * time.Second)
			return p
		}, till.PayoutFailed, 0, 0, failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inRefundWorld(t, sandbox.Config{Window: time.Minute}, func(t *testing.T, w *world) {
				p := c.life(w)
				before, _ := w.way.counts()
				w.restored(w.store.Now())
				if err := ask(w, p); till.ErrorCode(err) != till.CodePayoutsHeld && till.ErrorCode(err) != till.CodeRefundInProgress && till.ErrorCode(err) != till.CodeRefundExceeds {
					t.Errorf("another refund before the release: %v", err)
				}
				w.stop()
				w.restart(refundsOf)
				time.Sleep(10 * time.Minute)
				after, _ := w.way.counts()
				if got := w.payout(p.ID); got.Status != c.status || w.credits(p.ID) != c.credits || after-before != c.submits {
					t.Errorf("it is %s, was paid %d times and sent %d times more; want %s, %d and %d", got.Status, w.credits(p.ID), after-before, c.status, c.credits, c.submits)
				}
				if got := storetest.RefundSums(t, w.store, &till.Payment{ClientID: p.ClientID, ID: p.PaymentID}); got != c.sums {
					t.Errorf("the sums are %+v, want %+v", got, c.sums)
				}
				w.wantWallet(t, int64(1000*c.credits), 0, 0)
				if _, err := recovery.Release(t.Context(), w.store, "Awa"); err != nil {
					t.Fatal(err)
				}
				want := map[bool]till.Code{false: "", true: till.CodeRefundExceeds}[c.credits > 0]
				if err := ask(w, p); till.ErrorCode(err) != want {
					t.Errorf("another refund after the release: %v, want %q", err, want)
				}
			})
		})
	}
}

// A refund that is lost with the database, and that its client asks for again with its key, goes
// the same road under the same reference: the operator has it already, and pays once.
func TestALostRefundThatIsAskedForAgainIsPaidOnce(t *testing.T) {
	t.Parallel()
	inRefundWorld(t, sandbox.Config{Window: time.Minute}, func(t *testing.T, w *world) {
		paid := w.pay("4567", 1000)
		body := storetest.RefundBody{PaymentID: paid.ID.String(), Key: till.NewID(7).String()}
		lost := &till.Payout{ClientID: paid.ClientID, ID: till.NewID(w.store.Now()), PaymentID: paid.ID, IdempotencyKey: body.Key,
			Method: paid.Method, Country: paid.Country, Phone: paid.Phone, Amount: paid.Amount, ExpiresAt: w.store.Now().Add(time.Minute)}
		w.sendElsewhere(lost)
		w.restored(w.store.Now())
		if _, err := w.master.Refund(t.Context(), w.who(), body.Request(t, w.store)); till.ErrorCode(err) != till.CodePayoutsHeld {
			t.Errorf("before the release: %v", err)
		}
		if _, err := recovery.Release(t.Context(), w.store, "Awa"); err != nil {
			t.Fatal(err)
		}
		again, err := w.master.Refund(t.Context(), w.who(), body.Request(t, w.store))
		if err != nil || again.Replayed || again.Payout.Phone != lost.Phone || w.master.ReferenceOf(again.Payout) != w.master.ReferenceOf(lost) {
			t.Fatalf("it is %+v, %v", again, err)
		}
		time.Sleep(time.Minute)
		if n := w.credits(lost.ID) + w.credits(again.Payout.ID); n != 1 || w.payout(again.Payout.ID).Status != till.PayoutSuccess {
			t.Errorf("it was paid %d times and is %s", n, w.payout(again.Payout.ID).Status)
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}

// unsentRefund is unsent for a refund.
func (w *world) unsentRefund(story string) *till.Payout {
	w.t.Helper()
	w.stop()
	w.restart(refundsOf, onlyAccepts)
	return w.refund(story, 1000)
}
