package recovery_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"till"
	"till/recovery"
	"till/store"
	"till/store/admin"
	"till/store/auditlog"
	"till/store/matching"
	"till/store/storetest"
)

func TestRestoredGivesTheLogsANewIdentity(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		lost := s.Now().Add(-time.Minute) // no clock is that far apart
		if _, err := recovery.MarkRestored(ctx, s, recovery.RestoreRequest{LostFrom: lost, By: "Awa"}); err == nil {
			t.Error("a database that was never started was restored")
		}
		old := till.NewID(s.Now())
		clients := make([]*till.Client, 103) // more than one commit takes
		err := s.Update(ctx, func(tx *store.Tx) error {
			for i := range clients {
				clients[i] = &till.Client{ID: till.NewID(tx.Now()), Name: "one of many", Mode: till.Live, CreatedAt: tx.Now()}
				if err := tx.InsertClient(ctx, clients[i]); err != nil {
					return err
				}
			}
			return admin.InsertInstallation(ctx, tx, &admin.Installation{LogID: old, SecretCheck: []byte("check"), CreatedAt: tx.Now()})
		})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[till.ID]bool{old: true}
		for range 2 {
			lost++ // of another backup
			r, err := recovery.MarkRestored(ctx, s, recovery.RestoreRequest{LostFrom: lost, By: "Awa"})
			if err != nil || r.Again || seen[r.LogID] {
				t.Fatalf("%+v, %v; want a log that was never there", r, err)
			}
			id := r.LogID
			seen[id] = true
			err = s.View(ctx, func(tx *store.Tx) error {
				i, err := admin.ReadInstallation(ctx, tx)
				if err == nil && i.LogID != id {
					t.Errorf("the log is %s, want %s", i.LogID, id)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		err = s.View(ctx, func(tx *store.Tx) error {
			for _, c := range clients {
				rows, err := auditlog.Read(ctx, tx, c.ID, 0, 10)
				if err != nil {
					return err
				}
				if len(rows) != 2 || rows[0].Action != "restored" || rows[0].Actor != "Awa" {
					t.Errorf("the audit log of %s has %d rows: %+v", c.ID, len(rows), rows)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// It may be interrupted anywhere: run again with the same time it goes on, and what
// was made since it began is left as it is.
func TestRestoredGoesOnWhereItWasInterrupted(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		client := storetest.NewClient(t, s, till.Test)
		err := s.Update(ctx, func(tx *store.Tx) error {
			return admin.InsertInstallation(ctx, tx, &admin.Installation{LogID: till.NewID(tx.Now()), SecretCheck: []byte("check"), CreatedAt: tx.Now()})
		})
		if err != nil {
			t.Fatal(err)
		}
		c := storetest.NewCollector(t, s)
		for range 205 { // more than one commit takes
			storetest.NewPayment(t, c, client, storetest.Body{})
		}
		ended := storetest.NewPayment(t, c, client, storetest.Body{})
		storetest.Apply(t, c, s, ended, storetest.Succeeded)
		if _, err := recovery.MarkRestored(ctx, s, recovery.RestoreRequest{LostFrom: s.Now().Add(time.Hour), By: "Awa"}); till.ErrorCode(err) != till.CodeValidationFailed {
			t.Errorf("lost from a time that has not come: %v", err)
		}
		lost := s.Now().Add(-time.Minute) // no clock is that far apart
		// As it is left by a run that was stopped right after it began.
		err = s.Update(ctx, func(tx *store.Tx) error {
			return admin.InsertRestore(ctx, tx, &admin.Restore{At: tx.Now(), LostFrom: lost, By: "Awa", LogID: till.NewID(tx.Now())})
		})
		if err != nil {
			t.Fatal(err)
		}
		first, err := recovery.MarkRestored(ctx, s, recovery.RestoreRequest{LostFrom: lost, By: "Awa"})
		if err != nil || !first.Again || first.Payments != 205 || first.Payouts != 0 {
			t.Fatalf("%+v, %v; want 205 payments", first, err)
		}
		after := storetest.NewPayment(t, c, client, storetest.Body{})
		again, err := recovery.MarkRestored(ctx, s, recovery.RestoreRequest{LostFrom: lost, KeysReviewed: true, By: "Awa"})
		if err != nil || !again.Again || again.Payments != 0 || again.LogID != first.LogID {
			t.Errorf("%+v, %v; want that nothing is left to do", again, err)
		}
		err = s.View(ctx, func(tx *store.Tx) error {
			step, err := tx.Step(ctx, store.Ref{Client: client.ID, ID: after.ID})
			if err == nil && (step.Restored || step.Sends != 0) {
				t.Errorf("what was made since is marked: %+v", step)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		u, err := recovery.ReadUnexplained(ctx, s)
		if err != nil || len(u.Restores) != 1 || len(u.Payments) != 205 || len(u.Payouts) != 0 {
			t.Errorf("%d restores, %d payments, %d payouts, %v", len(u.Restores), len(u.Payments), len(u.Payouts), err)
		}
	})
}

// Somebody who was locked out in the lost time is let in again: until the keys were
// looked at, nothing is released.
func TestNothingIsReleasedBeforeTheKeysAreReviewed(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		storetest.NewClient(t, s, till.Live)
		err := s.Update(ctx, func(tx *store.Tx) error {
			return admin.InsertInstallation(ctx, tx, &admin.Installation{LogID: till.NewID(tx.Now()), SecretCheck: []byte("check"), CreatedAt: tx.Now()})
		})
		if err != nil {
			t.Fatal(err)
		}
		r := recovery.RestoreRequest{LostFrom: s.Now().Add(-time.Minute), By: "Awa"}
		if _, err := recovery.MarkRestored(ctx, s, r); err != nil {
			t.Fatal(err)
		}
		if _, err := recovery.Release(ctx, s, "Awa"); till.ErrorCode(err) != till.CodeValidationFailed {
			t.Errorf("released: %v", err)
		}
		r.KeysReviewed = true
		if _, err := recovery.MarkRestored(ctx, s, r); err != nil {
			t.Fatal(err)
		}
		if u, err := recovery.Release(ctx, s, "Awa"); err != nil || len(u.Restores) != 1 {
			t.Errorf("%+v, %v", u, err)
		}
		if u, err := recovery.Release(ctx, s, "Awa"); err != nil || len(u.Restores) != 0 {
			t.Errorf("a second time: %+v, %v", u, err)
		}
	})
}

// A person who releases sees how much money nobody has decided, beyond what is listed one by
// one, and what operators have told of the lost time.
func TestWhatARestoreLeavesIsAddedUp(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		client := storetest.NewClient(t, s, till.Live)
		c := storetest.NewCollector(t, s)
		for i, value := range []string{"5000", "700", "140"} {
			p := storetest.NewPayment(t, c, client, storetest.Body{Value: value})
			if i == 1 {
				storetest.Apply(t, c, s, p, storetest.Succeeded) // it is decided
			}
		}
		lost := s.Now().Add(-time.Minute)
		err := s.Update(ctx, func(tx *store.Tx) error {
			for i, x := range []matching.Stray{
				{Amount: till.Money{Minor: 900, Currency: "XAF"}, SeenAt: lost.Add(time.Second), ConfirmedAt: tx.Now(), Confirmed: "a statement"},
				{Amount: till.Money{Minor: 90, Currency: "XAF"}, SeenAt: lost.Add(-time.Hour), ConfirmedAt: tx.Now(), Confirmed: "a statement"},
				{SeenAt: lost.Add(time.Second)}, // nobody says how much
				{Amount: till.Money{Minor: 9, Currency: "XAF"}, SeenAt: lost.Add(time.Second), Why: matching.StrayForeign},
				{Amount: till.Money{Minor: 1, Currency: "XAF"}, SeenAt: lost.Add(-time.Hour), Why: matching.StrayForeign}, // of another time
			} {
				x.Connection, x.ID, x.Source, x.Direction, x.Claimed = storetest.Connection, till.NewID(tx.Now()), matching.StrayCallback, matching.StrayIn, "success"
				x.Receipt = fmt.Sprintf("R%d", i)
				x.ClosedAt, x.ClosedBy, x.Reason = tx.Now(), "Awa", "theirs"
				if _, err := matching.InsertStray(ctx, tx, &x); err != nil {
					return err
				}
				if x.Why != "" {
					if err := matching.CloseStrays(ctx, tx, "", []*matching.Stray{&x}); err != nil {
						return err
					}
				}
			}
			return admin.InsertInstallation(ctx, tx, &admin.Installation{LogID: till.NewID(tx.Now()), SecretCheck: []byte("check"), CreatedAt: tx.Now()})
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := recovery.MarkRestored(ctx, s, recovery.RestoreRequest{LostFrom: lost, KeysReviewed: true, By: "Awa"}); err != nil {
			t.Fatal(err)
		}
		u, err := recovery.ReadUnexplained(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		xaf := func(minor int64) till.Money { return till.Money{Minor: minor, Currency: "XAF"} }
		if want := []store.UndecidedSum{{Kind: till.SubjectPayment, Connection: storetest.Connection, Count: 2, Amount: xaf(5140)}}; !slices.Equal(u.Undecided, want) {
			t.Errorf("undecided: %+v, want %+v", u.Undecided, want)
		}
		if len(u.Payments) != 2 || u.Payments[0].Amount.Minor+u.Payments[1].Amount.Minor != 5140 || u.Payments[0].Connection != storetest.Connection {
			t.Errorf("listed: %+v", u.Payments)
		}
		want := []store.StrayMoney{
			{Connection: storetest.Connection, Direction: matching.StrayIn, Count: 1},
			{Connection: storetest.Connection, Direction: matching.StrayIn, Confirmed: true, Count: 2, Amount: xaf(990)},
			{Connection: storetest.Connection, Direction: matching.StrayIn, Why: matching.StrayForeign, Count: 1, Amount: xaf(9)},
		}
		if !slices.Equal(u.StrayMoney, want) {
			t.Errorf("strays: %+v, want %+v", u.StrayMoney, want)
		}
		if payouts, payments, strays := u.Left(); payouts != 0 || payments != 2 || strays != 3 {
			t.Errorf("%d payouts, %d payments and %d strays are left", payouts, payments, strays)
		}
	})
}
