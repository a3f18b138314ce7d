package collect_test

import (
	"context"
	"testing"
	"time"

	"till"
	"till/engine"
	"till/provider"
	"till/provider/sandbox"
	"till/recovery"
	"till/store"
	"till/store/admin"
)

// restored says that an old database was put back. A test that was never started
// by a server has no installation yet.
func (w *world) restored(lostFrom till.Time) {
	w.t.Helper()
	ctx := context.Background()
	err := w.store.Update(ctx, func(tx *store.Tx) error {
		i, err := admin.ReadInstallation(ctx, tx)
		if err != nil || i != nil {
			return err
		}
		return admin.InsertInstallation(ctx, tx, &admin.Installation{LogID: till.NewID(tx.Now()), SecretCheck: []byte("check"), CreatedAt: tx.Now()})
	})
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = recovery.MarkRestored(ctx, w.store, recovery.RestoreRequest{Secret: []byte("a secret for tests"), LostFrom: lostFrom, KeysReviewed: true, By: "Awa"})
	if err != nil {
		w.t.Fatal(err)
	}
}

// unsent makes a payment that nobody sends until the world is started again.
func (w *world) unsent(story string) *till.Payment {
	w.t.Helper()
	w.stop()
	w.start(func(c *engine.Config) { c.AcceptOnly = true })
	return w.create(story)
}

// sendElsewhere sends a payment as the database that is lost had it sent.
func (w *world) sendElsewhere(p *till.Payment) {
	w.t.Helper()
	_, err := w.operator.Submit(context.Background(), provider.Request{Client: p.ClientID, ID: p.ID, Reference: w.collector.ReferenceOf(p),
		Method: p.Method, Country: p.Country, Phone: p.Phone, Amount: p.Amount, ExpiresAt: p.ExpiresAt})
	if err != nil {
		w.t.Fatal(err)
	}
}

// F36: open in the backup, sent and paid in the lost time. It is asked about, never
// sent a second time, and its money is credited in time.
func TestAPaymentThatWasPaidInTheLostTimeIsAskedAboutAndNotSent(t *testing.T) {
	t.Parallel()
	for _, over := range []bool{false, true} {
		name := map[bool]string{false: "its window is open", true: "its window is over"}[over]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				p := w.unsent("4567")
				w.sendElsewhere(p)
				time.Sleep(2 * time.Second)
				if over {
					time.Sleep(time.Minute)
				}
				w.restored(w.store.Now())
				w.stop()
				w.start()
				time.Sleep(5 * time.Second)
				submits, _ := w.way.counts()
				if got := w.payment(p.ID); got.Status != till.Success || w.debits(p.ID) != 1 || submits != 0 || w.credits(p.ID) != "collection" {
					t.Errorf("it is %s, debited %d times, sent %d times more, with the lines %q", got.Status, w.debits(p.ID), submits, w.credits(p.ID))
				}
			})
		})
	}
}

// The same on an operator that knows no reference of ours, such as M-Pesa's push:
// it would not notice a second one, and cannot be asked, so a person checks.
func TestAnOpenPaymentWithoutReferencesIsACaseAfterARestore(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{NoDedup: true}, func(t *testing.T, w *world) {
		// Nobody said what to ask about.
		w.way.set(nil, func(context.Context, provider.Query, int) (provider.Result, error) { return provider.Result{}, errAway })
		p := w.unsent("4567")
		w.sendElsewhere(p)
		w.restored(w.store.Now())
		w.stop()
		w.start()
		time.Sleep(time.Hour)
		submits, _ := w.way.counts()
		if got := w.payment(p.ID); submits != 0 || got.Status.Final() || w.debits(p.ID) != 1 || w.cases(p.ID) != engine.CaseOverdue {
			t.Errorf("it is %s, debited %d times, sent %d times more, with the cases %q", got.Status, w.debits(p.ID), submits, w.cases(p.ID))
		}
		r := engine.Resolution{Success: true, Receipt: "SBX1", By: "Awa", Evidence: "a statement", Digest: make([]byte, 32)}
		if err := w.collector.Resolve(context.Background(), store.Ref{Client: w.client.ID, ID: p.ID}, r); err != nil || w.credits(p.ID) != "collection" {
			t.Errorf("%v; the lines are %q", err, w.credits(p.ID))
		}
	})
}

// A payment that is new after a restore may be the retry of one that was lost. An
// operator that knows our references notices; one that does not would ask the
// customer twice, so it waits: for a person who has found its money, or for the
// release.
func TestANewPaymentWithoutReferencesWaitsForTheReleaseOfARestore(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{NoDedup: true}, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.restored(w.store.Now())
		found, late := w.create("4567"), w.create("4567")
		time.Sleep(10 * time.Minute) // far beyond the window
		for _, p := range []*till.Payment{found, late} {
			got := w.payment(p.ID)
			if got.Status != till.Pending || got.Resolution.State != till.NeedsAttention || w.cases(p.ID) != engine.CaseHeld {
				t.Errorf("held: %s, %s, the cases %q", got.Status, got.Resolution.State, w.cases(p.ID))
			}
		}
		// The statement shows the money of the one: a person says so.
		r := engine.Resolution{Success: true, Receipt: "SBX1", By: "Awa", Evidence: "a statement", Digest: make([]byte, 32)}
		if err := w.collector.Resolve(ctx, store.Ref{Client: w.client.ID, ID: found.ID}, r); err != nil {
			t.Fatal(err)
		}
		soon := w.create("4567")
		time.Sleep(time.Second)
		if submits, checks := w.way.counts(); submits != 0 || checks != 0 {
			t.Errorf("while it is held: %d sends, %d checks", submits, checks)
		}
		if _, err := recovery.Release(ctx, w.store, "Awa"); err != nil {
			t.Fatal(err)
		}
		w.collector.RecordCallback(ctx, "", store.Ref{Client: w.client.ID, ID: soon.ID}, nil) // a check: nobody else notifies this process
		time.Sleep(5 * time.Second)
		if got := w.payment(found.ID); got.Status != till.Success || w.debits(found.ID) != 0 || w.credits(found.ID) != "collection" {
			t.Errorf("found on the statement: %s, debited %d times more, the lines %q", got.Status, w.debits(found.ID), w.credits(found.ID))
		}
		if got := w.payment(late.ID); got.Status != till.Failed || got.FailureReason != till.ProviderUnavailable || w.debits(late.ID) != 0 {
			t.Errorf("its window was over: %s %s", got.Status, got.FailureReason)
		}
		if got := w.payment(soon.ID); got.Status != till.Success || w.debits(soon.ID) != 1 || w.cases(soon.ID) != "" {
			t.Errorf("its window was open: %s, debited %d times, the cases %q", got.Status, w.debits(soon.ID), w.cases(soon.ID))
		}
	})
}

// Where the operator knows our references nothing waits.
func TestANewPaymentWithReferencesIsSentRightAfterARestore(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.restored(w.store.Now())
		p := w.create("4567")
		time.Sleep(5 * time.Second)
		if got := w.payment(p.ID); got.Status != till.Success || w.debits(p.ID) != 1 {
			t.Errorf("it is %s, debited %d times", got.Status, w.debits(p.ID))
		}
	})
}
