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
