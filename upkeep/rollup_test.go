package upkeep_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"till"
	"till/books"
	"till/store"
	"till/store/storetest"
	"till/upkeep"
)

// total returns how many payments of a status a list says there are.
func total(t *testing.T, s *store.Store, client till.ID, status till.Status) (n int64) {
	t.Helper()
	err := s.View(t.Context(), func(tx *store.Tx) (err error) {
		_, n, err = tx.ListPayments(t.Context(), client, store.PaymentFilter{Status: status}, store.Page{Limit: 1})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// What is counted stays the same, whenever tallies are folded; also what moves
// after its hour was.
func TestRollUpChangesNothingThatIsCounted(t *testing.T) {
	t.Parallel()
	start := till.TimeOf(time.Date(2026, 1, 31, 23, 59, 0, 0, time.UTC))
	storetest.RunAt(t, &start, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
		rollUp := func(want int) {
			t.Helper()
			if n, err := upkeep.RollUp(t.Context(), s, s.Now()); err != nil || n != want {
				t.Errorf("folded %d, %v; want %d", n, err, want)
			}
		}
		counted := func(pending, success int64) {
			t.Helper()
			if p, n := total(t, s, client.ID, till.Pending), total(t, s, client.ID, till.Success); p != pending || n != success {
				t.Errorf("%d pending and %d succeeded, want %d and %d", p, n, pending, success)
			}
			if r := verify(t, s, books.Options{}); len(r.Problems) > 0 {
				t.Errorf("got %+v", r.Problems)
			}
		}
		first, second := storetest.NewPayment(t, c, client, storetest.Body{}), storetest.NewPayment(t, c, client, storetest.Body{})
		rollUp(0) // the hour is not over
		counted(2, 0)
		clock.Advance(time.Hour)
		storetest.NewPayment(t, c, client, storetest.Body{})
		rollUp(2) // the pending, and the bytes that the client has stored
		counted(3, 0)
		storetest.Apply(t, c, s, first, storetest.Succeeded)
		counted(2, 1)
		rollUp(2) // one kind less, another more
		counted(2, 1)
		clock.Advance(24 * time.Hour)
		storetest.Apply(t, c, s, second, storetest.Succeeded)
		counted(1, 2)
		rollUp(7) // the pending and the bytes of the second hour, a line of that hour with its two sums, and the move
		rollUp(0)
		counted(1, 2)
	})
}

// More than one commit takes is folded all the same.
func TestRollUpTakesAsManyCommitsAsItNeeds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("adds up many hours")
	}
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		client := storetest.NewClient(t, s, till.Test)
		begin := s.Now().Add(-500 * time.Hour)
		// What is counted here is not there, and in the end it is counted out.
		for _, c := range []struct{ n, total int64 }{{1, 400}, {2, 1200}, {-3, 0}} {
			var counts store.CounterDelta
			for hour := range time.Duration(400) {
				counts.AddPayment(&till.Payment{ClientID: client.ID, CreatedAt: begin.Add(hour * time.Hour), Method: "mtn_momo"}, till.Pending, c.n)
				counts.AddPayout(&till.Payout{ClientID: client.ID, CreatedAt: begin.Add(hour * time.Hour), Method: "mtn_momo"}, till.PayoutPending, c.n)
			}
			if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.AddCounts(t.Context(), &counts) }); err != nil {
				t.Fatal(err)
			}
			for _, rolledUp := range []int{800, 0} {
				if n := total(t, s, client.ID, till.Pending); n != c.total {
					t.Errorf("%d are counted, want %d", n, c.total)
				}
				if n, err := upkeep.RollUp(t.Context(), s, s.Now()); err != nil || n != rolledUp {
					t.Fatalf("folded %d, %v; want %d", n, err, rolledUp)
				}
			}
		}
	})
}

// A client whose counters are damaged does not keep others from being folded.
func TestRollUpGoesOnBehindOneThatCannotBe(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		clients := []till.ID{storetest.NewClient(t, s, till.Test).ID, storetest.NewClient(t, s, till.Test).ID, storetest.NewClient(t, s, till.Test).ID}
		count := func(n ...int64) {
			t.Helper()
			var counts store.CounterDelta
			for i, client := range clients {
				counts.AddPayment(&till.Payment{ClientID: client, CreatedAt: s.Now().Add(-time.Hour), Method: "mtn_momo"}, till.Pending, n[i])
			}
			if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.AddCounts(t.Context(), &counts) }); err != nil {
				t.Fatal(err)
			}
		}
		count(1, -1, 1) // more left than ever came
		for _, want := range []int{2, 0} {
			if n, err := upkeep.RollUp(t.Context(), s, s.Now()); err == nil || n != want {
				t.Errorf("folded %d, %v; want %d and what could not be", n, err, want)
			}
		}
		count(-1, 1, -1)
		if n, err := upkeep.RollUp(t.Context(), s, s.Now()); err != nil || n != 3 {
			t.Errorf("folded %d, %v; want 3", n, err)
		}
	})
}

func TestRollUpRunsByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{Path: t.TempDir() + "/till.db"})
		storetest.NewPayment(t, storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test), storetest.Body{})
		go upkeep.RunRollUp(t.Context(), s, slog.New(slog.DiscardHandler))
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if n, err := upkeep.RollUp(t.Context(), s, s.Now()); err != nil || n != 0 {
			t.Errorf("%d were left, %v", n, err)
		}
	})
}
