package collect_test

import (
	"context"
	"testing"
	"time"

	"till"
	"till/engine"
	"till/provider"
	"till/provider/sandbox"
	"till/store"
	"till/store/storetest"
)

// asksFirst makes the operator note whether it is asked about what it was not
// sent.
func (w *world) asksFirst() (asked *bool) {
	asked = new(bool)
	w.way.set(nil, func(ctx context.Context, q provider.Query, _ int) (provider.Result, error) {
		r, err := w.operator.Check(ctx, q)
		*asked = *asked || r.Outcome == provider.NotFound
		return r, err
	})
	return asked
}

// A create that waits for the database longer than its lease lasts has sent
// nothing. It is sent like any other, not asked about as if it had been.
func TestACreateThatWaitedLongerThanItsLeaseIsUnsent(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		asked := w.asksFirst()
		storetest.HoldWriters(w.store, engine.Lease+5*time.Second)
		id := w.create("0017").ID
		if s := w.step(id); s.SendStartedAt == 0 {
			t.Fatalf("the step is %+v; want one that was made to be sent at once", s)
		}
		time.Sleep(3 * time.Second)
		submits, _ := w.way.counts()
		if p := w.payment(id); p.Status != till.Success || submits != 1 || *asked {
			t.Errorf("%s after %d sends, asked about before: %v; want success, one, false", p.Status, submits, *asked)
		}
	})
}

// The same of a claim, with an operator that may be sent to once: what was not sent
// is sent, and does not end unsent.
func TestAClaimThatWaitedLongerThanItsLeaseIsUnsent(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{NoDedup: true, PollInterval: time.Second}, func(t *testing.T, w *world) {
		asked := w.asksFirst()
		w.stop()
		w.start(func(c *engine.Config) { c.AcceptOnly = true })
		id := w.create("0017").ID
		if err := w.store.Update(context.Background(), func(tx *store.Tx) error {
			return tx.ExtendPayment(context.Background(), store.Ref{Client: w.client.ID, ID: id}, tx.Now().Add(3*engine.Lease))
		}); err != nil {
			t.Fatal(err)
		}
		w.stop()
		storetest.HoldWriters(w.store, engine.Lease+5*time.Second)
		w.start()
		time.Sleep(engine.Lease + 10*time.Second)
		submits, _ := w.way.counts()
		if p := w.payment(id); p.Status != till.Success || submits != 1 || *asked {
			t.Errorf("%s after %d sends, asked about before: %v; want success, one, false", p.Status, submits, *asked)
		}
	})
}
