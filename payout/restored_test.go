package payout_test

import (
	"context"
	"testing"
	"time"

	"till"
	"till/engine"
	"till/payout"
	"till/provider"
	"till/provider/sandbox"
	"till/recovery"
	"till/store"
	"till/store/admin"
)

// restored says that an old database was put back. A test that was never started
// by a server has no installation yet.
func (w *world) restored(lostFrom till.Time) *recovery.RestoreResult {
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
	r, err := recovery.MarkRestored(ctx, w.store, recovery.RestoreRequest{Secret: []byte("a secret for tests"), LostFrom: lostFrom, KeysReviewed: true, By: "Awa"})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// unsent makes a payout that nobody sends until the world is started again.
func (w *world) unsent(story string) *till.Payout {
	w.t.Helper()
	w.stop()
	w.restart(onlyAccepts)
	return w.create(story)
}

// again starts an instance that works.
func (w *world) again() {
	w.t.Helper()
	w.stop()
	w.restart()
}

// sendElsewhere sends a payout as the database that is lost had it sent.
func (w *world) sendElsewhere(p *till.Payout) {
	w.t.Helper()
	_, err := w.operator.Payouts().Submit(context.Background(), provider.Request{Client: p.ClientID, ID: p.ID, Reference: w.master.ReferenceOf(p),
		Method: p.Method, Country: p.Country, Phone: p.Phone, Amount: p.Amount, ExpiresAt: p.ExpiresAt})
	if err != nil {
		w.t.Fatal(err)
	}
}

// F36: pending in the backup, sent and paid in the lost time, and the backup is
// put back after its window: it is asked about, and its reserve is not given back.
func TestAPayoutThatWasPaidInTheLostTimeIsNotAbandoned(t *testing.T) {
	t.Parallel()
	for _, over := range []bool{false, true} {
		name := map[bool]string{false: "its window is open", true: "its window is over"}[over]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorldWith(t, sandbox.Config{Window: time.Minute}, func(t *testing.T, w *world) {
				p := w.unsent("4567")
				backup := w.store.Now()
				w.sendElsewhere(p)
				if over {
					time.Sleep(2 * time.Minute)
				}
				if r := w.restored(backup); r.Payouts != 1 || r.Again {
					t.Errorf("%+v", r)
				}
				w.again()
				time.Sleep(5 * time.Second)
				if got := w.payout(p.ID); got.Status != till.PayoutSuccess || w.credits(p.ID) != 1 {
					t.Errorf("it is %s with %d credits at the operator", got.Status, w.credits(p.ID))
				}
				if submits, _ := w.way.counts(); submits != 0 {
					t.Errorf("it was sent %d times more", submits)
				}
				w.wantWallet(t, 1000, 0, 0)
			})
		})
	}
}

// The reverse: pending in the backup, cancelled in the lost time. Its client was
// notified that it is not paid, so it is not sent, also not once it is proven absent.
func TestAPayoutThatWasCancelledInTheLostTimeIsNotSent(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{Window: 2 * time.Minute}, func(t *testing.T, w *world) {
		p := w.unsent("4567")
		w.restored(w.store.Now())
		w.again()
		time.Sleep(100 * time.Second)
		submits, checks := w.way.counts()
		if got := w.payout(p.ID); submits != 0 || checks < 3 || got.Status != till.PayoutPending {
			t.Errorf("in its window it is %s after %d sends and %d checks; want only checks", got.Status, submits, checks)
		}
		w.wantWallet(t, 0, 1000, 0)
		if _, err := w.master.Cancel(context.Background(), w.ref(p.ID), "api:test"); till.ErrorCode(err) != till.CodeNotCancellable {
			t.Errorf("cancel what may have been sent: %v", err)
		}
		time.Sleep(time.Minute)
		got := w.payout(p.ID)
		if submits, _ = w.way.counts(); submits != 0 || w.credits(p.ID) != 0 || got.Status != till.PayoutFailed || got.FailureReason != till.ProviderUnavailable {
			t.Errorf("after its window it is %s %s after %d sends", got.Status, got.FailureReason, submits)
		}
		w.wantWallet(t, 0, 0, 0)
	})
}

// A send that was under way in the backup may have been refused in the lost time,
// and its client was notified that it failed: it is not sent again either.
func TestAPayoutThatWasRefusedInTheLostTimeIsNotSentAgain(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{Window: 2 * time.Minute}, func(t *testing.T, w *world) {
		w.way.set(func(context.Context, provider.Request, int) (provider.Result, error) { panic("the process dies here") }, nil)
		p := w.create("4567")
		time.Sleep(time.Second)
		w.restored(w.store.Now())
		w.again()
		time.Sleep(5 * time.Minute)
		submits, _ := w.way.counts()
		if got := w.payout(p.ID); submits != 1 || w.credits(p.ID) != 0 || got.Status != till.PayoutFailed {
			t.Errorf("it is %s after %d sends; want failed after the one of the backup", got.Status, submits)
		}
	})
}

// What the backup knew of absence is as old as the backup: it may have been sent
// again since.
func TestAnAbsenceThatWasProvenBeforeTheRestoreProvesNothing(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		p := w.unsent("4567")
		ctx := context.Background()
		err := w.store.Update(ctx, func(tx *store.Tx) error {
			steps, err := admin.LockOpenSteps(ctx, tx, w.client.ID, till.ID{}, false, 10)
			if err != nil {
				return err
			}
			s := steps[0]
			s.Sends, s.SendStartedAt, s.SendDeadline, s.NotFoundReads, s.Calls = 1, tx.Now(), tx.Now(), 2, 3
			if err := tx.InsertSends(ctx, []*store.Attempt{{ClientID: s.ClientID, SubjectID: s.SubjectID, Connection: "sandbox",
				Reference: w.master.ReferenceOf(p), StartedAt: tx.Now(), First: true}}); err != nil {
				return err
			}
			return tx.SaveSteps(ctx, steps)
		})
		if err != nil {
			t.Fatal(err)
		}
		w.sendElsewhere(p)
		time.Sleep(time.Minute)
		w.restored(w.store.Now())
		w.again()
		time.Sleep(5 * time.Second)
		if got := w.payout(p.ID); got.Status != till.PayoutSuccess || w.credits(p.ID) != 1 {
			t.Errorf("it is %s with %d credits at the operator", got.Status, w.credits(p.ID))
		}
		w.wantWallet(t, 1000, 0, 0)
	})
}

// Where the operator would not notice a repetition, "not found" proves nothing:
// the reserve is kept, and a person is notified.
func TestAPayoutThatCannotBeAskedAboutAfterARestoreIsACase(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{NoDedup: true}, func(t *testing.T, w *world) {
		p := w.unsent("4567")
		time.Sleep(time.Minute)
		w.restored(w.store.Now())
		w.again()
		time.Sleep(time.Hour)
		submits, _ := w.way.counts()
		if got := w.payout(p.ID); submits != 0 || got.Status.Final() || w.cases(p.ID) != engine.CaseOverdue {
			t.Errorf("it is %s after %d sends, with the cases %q", got.Status, submits, w.cases(p.ID))
		}
		w.wantWallet(t, 0, 1000, 0)
		if err := w.master.Resolve(context.Background(), w.ref(p.ID), engine.Resolution{By: "Awa", Evidence: "a letter", Digest: make([]byte, 32)}); err != nil {
			t.Error(err)
		}
		w.wantWallet(t, 0, 0, 0)
	})
}

// Wallets lack the payouts that are lost, so new ones are held until somebody has
// explained them: on every instance at once, with the answer to a retry as ever.
func TestPayoutsAreHeldAfterARestoreUntilTheyAreReleased(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		other, stop := w.start(onlyAccepts)
		defer stop()
		key := till.NewID(w.store.Now()).String()
		first, err := w.master.Create(ctx, w.who(), request(t, key, "4567", "1000"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		w.restored(w.store.Now())
		for _, m := range []*payout.Disburser{w.master, other} {
			if _, err := m.Create(ctx, w.who(), request(t, till.NewID(w.store.Now()).String(), "4567", "1000")); till.ErrorCode(err) != till.CodePayoutsHeld {
				t.Errorf("a new payout: %v", err)
			}
			again, err := m.Create(ctx, w.who(), request(t, key, "4567", "1000"))
			if err != nil || !again.Replayed || again.Payout.ID != first.Payout.ID {
				t.Errorf("a retry of an old one: %+v, %v", again, err)
			}
		}
		w.wantWallet(t, 1000, 0, 0)
		u, err := recovery.Release(ctx, w.store, "Awa")
		if err != nil || len(u.Restores) != 1 || !u.Empty() {
			t.Fatalf("%+v, %v", u, err)
		}
		if c, err := w.master.Create(ctx, w.who(), request(t, till.NewID(w.store.Now()).String(), "4567", "1000")); err != nil || c.Replayed {
			t.Errorf("a new payout after the release: %v", err)
		}
		time.Sleep(5 * time.Second)
		w.wantWallet(t, 2000, 0, 0)
	})
}
