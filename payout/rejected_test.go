package payout_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"till"
	"till/provider"
)

// A rejection of a send that the operator has called back about is not believed but
// checked: the operator has shown that it has the request.
func TestARejectionAfterACallbackIsChecked(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.deaf = true
		w.way.set(func(ctx context.Context, r provider.Request, n int) (provider.Result, error) {
			w.lost(ctx, r, n)
			w.calledBack(t, r.ID)
			return provider.Result{Outcome: provider.Rejected, Reason: till.ProviderRejected}, nil
		}, nil)
		id := w.create("4567").ID
		time.Sleep(5 * time.Second)
		if p := w.payout(id); p.Status != till.PayoutSuccess || w.credits(id) != 1 || w.cases(id) != "" {
			t.Errorf("it is %s %s with %d credits, with the cases %q; want success, one, none", p.Status, p.FailureReason, w.credits(id), w.cases(id))
		}
		if kinds := w.kinds(id); strings.Contains(kinds, "failed") {
			t.Errorf("the client is told %q", kinds)
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}
