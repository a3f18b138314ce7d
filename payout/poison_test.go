package payout_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"till"
	"till/engine"
	"till/provider"
	"till/provider/sandbox"
	"till/store/storetest"
)

// What no database takes is no reason to keep a reserve for ever.
func TestATextThatNoDatabaseTakesEndsAPayout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		result  provider.Result
		status  till.PayoutStatus
		receipt string
	}{
		{provider.Result{Outcome: provider.Success, Receipt: "MP\x001", Message: "\xff\x00", Code: "\x00"}, till.PayoutSuccess, `"MP\x001"`},
		{provider.Result{Outcome: provider.Failed, Reason: till.RecipientNotFound, Message: "\xff\x00", Code: "\x00"}, till.PayoutFailed, ""},
	} {
		inWorld(t, func(t *testing.T, w *world) {
			w.way.set(nil, func(context.Context, provider.Query, int) (provider.Result, error) { return c.result, nil })
			id := w.create("0014").ID
			time.Sleep(2 * time.Second)
			if p := w.payout(id); p.Status != c.status || p.ProviderReference != c.receipt || w.cases(id) != "" {
				t.Errorf("%s, receipt %q, cases %q; want %s, %q", p.Status, p.ProviderReference, w.cases(id), c.status, c.receipt)
			}
		})
	}
}

// F44: a payout whose success cannot be recorded keeps its reserve, and a person
// is notified; so is one whose calls panic. Once that is mended, each is paid once.
func TestAPoisonedPayoutKeepsItsReserveAndIsACase(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			database := e.Config(t)
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, database, sandbox.Config{}, nil)
				defer func() {
					w.stop()
					storetest.CheckInvariants(t, w.store)
					w.operator.Close()
					w.store.Close()
				}()
				var panics atomic.Value
				w.way.set(nil, func(ctx context.Context, q provider.Query, _ int) (provider.Result, error) {
					if q.ID == panics.Load() {
						panic("an answer that nobody has thought of")
					}
					return w.operator.Payouts().Check(ctx, q)
				})
				w.deaf = true
				refused, panicking, well := w.create("0017").ID, w.create("0017").ID, w.create("0017").ID
				panics.Store(panicking)
				storetest.Refuse(t, database.Path, "poison", "INSERT", "transactions", fmt.Sprintf("NEW.payout_id = x'%x'", refused[:]))
				time.Sleep(window)
				if w.payout(well).Status != till.PayoutSuccess {
					t.Errorf("a payout beside them is %s", w.payout(well).Status)
				}
				for _, id := range []till.ID{refused, panicking} {
					if p := w.payout(id); p.Status.Final() || p.Resolution.State != till.NeedsAttention || w.cases(id) != engine.CaseQuarantined {
						t.Errorf("%s, %s, cases %q; want it open, with somebody's attention", p.Status, p.Resolution.State, w.cases(id))
					}
				}
				w.wantWallet(t, 1000, 2000, 0)
				panics.Store(till.ID{})
				storetest.Allow(t, database.Path, "poison", "transactions")
				time.Sleep(3 * time.Hour)
				for _, id := range []till.ID{refused, panicking} {
					if p := w.payout(id); p.Status != till.PayoutSuccess || w.cases(id) != "" || w.credits(id) != 1 {
						t.Errorf("once it is mended: %s, cases %q, paid %d times", p.Status, w.cases(id), w.credits(id))
					}
				}
				w.wantWallet(t, 3000, 0, 0)
			})
		})
	}
}
