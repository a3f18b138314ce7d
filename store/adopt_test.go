package store_test

import (
	"testing"
	"time"

	"till"
	"till/books"
	"till/engine"
	"till/internal/db/pgtest"
	"till/payout"
	"till/store"
	"till/store/auditlog"
	"till/store/storetest"
)

// F30: the commit of a create happened, and its answer was lost. The second try
// finds its own row under the key. It is no replay: the client is told of
// a new payment, and the instance that wrote it with the right to send in hand sends it at
// once, under the step that was committed, instead of leaving it until its lease ends.
func TestACreateAdoptsItsOwnPaymentAfterAnUnknownCommit(t *testing.T) {
	t.Parallel()
	l := newLink(t)
	client := storetest.NewClient(t, l.straight, till.Test)
	sv := newCreator(t, l.through, newOperator(t, l.now), client, true) // which looks for no due steps
	key := newKey()
	l.proxy.CutNext(pgtest.AfterCommit)
	made, err := sv.create(key)
	if err != nil || made.Replayed {
		t.Fatalf("replayed: %t, error %v; want a payment of its own", made.Replayed, err)
	}
	ref := store.Ref{Client: client.ID, ID: made.Payment.ID}
	var attempts []*store.Attempt
	var step *store.Step
	for end := time.Now().Add(time.Minute); step == nil || step.Calls == 0; time.Sleep(5 * time.Millisecond) {
		err := l.straight.View(t.Context(), func(tx *store.Tx) (err error) {
			if step, err = tx.Step(t.Context(), ref); err != nil {
				return err
			}
			attempts, err = tx.Attempts(t.Context(), ref)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			t.Fatalf("it was not sent: %+v", step)
		}
	}
	// The answer belongs to the send that was committed.
	if len(attempts) != 1 || attempts[0].Outcome == "" || attempts[0].StartedAt != step.SendStartedAt || step.LeaseVersion != 1 || !step.Acked {
		t.Errorf("the step is %+v with %d attempts, the first %+v", step, len(attempts), attempts[0])
	}
	if again, err := sv.create(key); err != nil || !again.Replayed || again.Payment.ID != made.Payment.ID {
		t.Errorf("the same key again: %+v, %v; want a replay", again, err)
	}
}

// The same of a payout: its money is reserved once, and it is no replay.
func TestACreateAdoptsItsOwnPayoutAfterAnUnknownCommit(t *testing.T) {
	t.Parallel()
	l := newLink(t)
	client := storetest.NewClient(t, l.straight, till.Test)
	c := storetest.NewCollector(t, l.straight)
	storetest.Apply(t, c, l.straight, storetest.NewPayment(t, c, client, storetest.Body{}), storetest.Succeeded)
	m := storetest.NewDisburser(t, l.through)
	key := newKey()
	var made payout.Created
	for _, replayed := range []bool{false, true} {
		if !replayed {
			l.proxy.CutNext(pgtest.AfterCommit)
		}
		created, err := storetest.CreatePayout(t, m, client, storetest.Body{Key: key, Value: "3000"}, 0)
		if err != nil || created.Replayed != replayed {
			t.Fatalf("replayed: %t, error %v; want %t", created.Replayed, err, replayed)
		}
		if replayed && created.Payout.ID != made.Payout.ID {
			t.Errorf("payouts %s and %s under one key", made.Payout.ID, created.Payout.ID)
		}
		made = created
	}
	l.proxy.CutNext(pgtest.AfterCommit)
	p, err := m.Cancel(t.Context(), store.Ref{Client: client.ID, ID: made.Payout.ID}, "api:test")
	if err != nil || p.Status != till.PayoutCancelled {
		t.Errorf("a cancel whose commit's answer is lost: %v, %v", p, err)
	}
	err = l.straight.View(t.Context(), func(tx *store.Tx) error {
		w, err := tx.Wallet(t.Context(), client.ID, "XAF")
		if err == nil && (w.Balance != 5000 || w.Reserved != 0) {
			t.Errorf("the wallet is %+v, want what it was", w)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The same of an adjustment: it was made now, not before.
func TestAnAdjustmentAdoptsItsOwnAfterAnUnknownCommit(t *testing.T) {
	t.Parallel()
	l := newLink(t)
	client := storetest.NewClient(t, l.straight, till.Test)
	c := storetest.NewCollector(t, l.straight)
	storetest.Apply(t, c, l.straight, storetest.NewPayment(t, c, client, storetest.Body{}), storetest.Succeeded)
	a := books.Adjustment{ID: till.NewID(l.now()), Client: client.ID, Amount: till.Money{Minor: -1000, Currency: "XAF"}, Reason: "a test", By: "Awa"}
	for _, before := range []bool{false, true} {
		if !before {
			l.proxy.CutNext(pgtest.AfterCommit)
		}
		if done, err := books.Adjust(t.Context(), l.through, a); err != nil || done.Before != before {
			t.Errorf("made before: %t, error %v; want %t", done.Before, err, before)
		}
	}
}

// The same of a person's resolution, as success and as failure: it is in the audit
// log and among the attempts once.
func TestAResolutionIsRecordedOnceAfterAnUnknownCommit(t *testing.T) {
	t.Parallel()
	l := newLink(t)
	client := storetest.NewClient(t, l.straight, till.Test)
	c := storetest.NewCollector(t, l.through)
	for _, success := range []bool{true, false} {
		p := storetest.NewPayment(t, storetest.NewCollector(t, l.straight), client, storetest.Body{})
		ref := store.Ref{Client: client.ID, ID: p.ID}
		l.proxy.CutNext(pgtest.AfterCommit)
		if err := c.Resolve(t.Context(), ref, engine.Resolution{Success: success, By: "Awa", Evidence: "a statement"}); err != nil {
			t.Fatal(err)
		}
		resolved, audited := 0, 0
		err := l.straight.View(t.Context(), func(tx *store.Tx) error {
			attempts, err := tx.Attempts(t.Context(), ref)
			if err != nil {
				return err
			}
			for _, a := range attempts {
				if a.Kind == store.AttemptResolve {
					resolved++
				}
			}
			acts, err := auditlog.ActsOn(t.Context(), tx, ref, 10)
			for _, row := range acts {
				if row.Action == "resolve" {
					audited++
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if resolved != 1 || audited != 1 {
			t.Errorf("success %t: %d resolutions among the attempts and %d in the audit log, want 1 and 1", success, resolved, audited)
		}
	}
}
