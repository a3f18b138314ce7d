package collect_test

import (
	"context"
	"testing"
	"time"

	"till"
	"till/provider"
)

// What was sent again is proven absent anew before it is sent once more: what
// was read before the second send says nothing about it.
func TestAResendIsProvenAbsentAnew(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.way.set(func(ctx context.Context, r provider.Request, n int) (provider.Result, error) {
			if n > 1 { // the first never arrives; the second does, and its answer is lost
				w.operator.Submit(ctx, r)
			}
			return provider.Result{}, errAway
		}, nil)
		id := w.create("0017").ID
		time.Sleep(window)
		submits, _ := w.way.counts()
		if p := w.payment(id); p.Status != till.Success || w.debits(id) != 1 || submits != 2 {
			t.Errorf("%s with %d debits after %d sends; want success, one, two", p.Status, w.debits(id), submits)
		}
	})
}

// A replica of the operator's that lags behind says "not found" at every read of
// it: two reads one poll apart are one word. The second must begin the settle
// time after the first, and be over soon after that.
func TestOneStaleReplicaProvesNothing(t *testing.T) {
	t.Parallel()
	traits := habits()
	traits.Settle, traits.Poll = 15*time.Second, time.Second
	for _, c := range []struct {
		blind time.Duration // counted from the send, whose answer is lost
		sends int
	}{
		{25 * time.Second, 1}, // one settle time, and ten polls
		{5 * time.Minute, 2},  // it never arrived, as far as anybody can tell
	} {
		inFleet(t, traits, func(t *testing.T, f *fleet) {
			f.operator.set(func(o *post) { o.lost, o.blind = true, c.blind })
			p := f.create(f.start())
			time.Sleep(2*traits.Settle + 2*traits.Poll)
			if sends, _ := f.operator.calls(); sends != c.sends {
				t.Errorf("blind for %s, it was sent %d times; want %d", c.blind, sends, c.sends)
			}
			f.operator.set(func(o *post) { o.lost, o.blind = false, 0 })
			time.Sleep(10 * time.Second)
			if n := f.count(); n[till.Success] != 1 {
				t.Errorf("blind for %s: %v, step %+v", c.blind, n, f.step(p.ID))
			}
		})
	}
}
