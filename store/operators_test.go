package store_test

import (
	"path/filepath"
	"testing"
	"time"

	"till"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
)

func update(t *testing.T, s *store.Store, f func(tx *store.Tx) error) {
	t.Helper()
	if err := s.Update(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

func TestABreakerIsChangedByOneOfTwo(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		swap := func(b admin.Breaker) (won bool) {
			update(t, s, func(tx *store.Tx) (err error) { won, err = admin.SwapBreaker(t.Context(), tx, &b); return err })
			return won
		}
		b := admin.Breaker{Connection: "a", State: admin.Stopped, Tries: 1, RetryAt: 5}
		if !swap(b) || swap(b) {
			t.Fatal("the first write is one instance's")
		}
		b.Version, b.State, b.Round, b.Owner, b.ProbesLeft = 1, admin.Probing, 3, till.NewID(1), 2
		if !swap(b) || swap(b) {
			t.Fatal("a version was used twice")
		}
		update(t, s, func(tx *store.Tx) error {
			all, err := admin.Breakers(t.Context(), tx)
			if err != nil {
				return err
			}
			locked, err := admin.LockBreakers(t.Context(), tx, []string{"b", "a"})
			b.Version = 2
			if len(all) != 1 || *all["a"] != b || len(locked) != 1 || *locked["a"] != b {
				t.Errorf("got %+v and %+v, want %+v", all["a"], locked["a"], b)
			}
			return err
		})
	})
}

func TestHealthIsSummedAndCleared(t *testing.T) {
	t.Parallel()
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		a := admin.Operation{Connection: "a", Name: store.OpSubmit}
		add := func() {
			update(t, s, func(tx *store.Tx) error {
				return admin.AddHealth(t.Context(), tx, map[admin.Operation]admin.CallStats{a: {Answered: 1, Unanswered: 2, AuthRefused: 1, TotalLatency: 7 * time.Microsecond},
					{Connection: "a", Name: store.OpCheck}: {Answered: 1}})
			})
		}
		sum := func() (sum admin.CallStats, rows int) {
			update(t, s, func(tx *store.Tx) error {
				sum, rows = admin.CallStats{}, 0
				all, err := admin.Health(t.Context(), tx, time.Minute)
				for _, r := range all {
					if rows++; r.Operation == a {
						sum.Add(r.CallStats)
					}
				}
				return err
			})
			return sum, rows
		}
		add()
		add()
		clock.Advance(30 * time.Second)
		add()
		if got, rows := sum(); got != (admin.CallStats{Answered: 3, Unanswered: 6, AuthRefused: 3, TotalLatency: 21 * time.Microsecond}) || rows != 4 {
			t.Errorf("got %+v in %d rows", got, rows)
		}
		clock.Advance(40 * time.Second)
		if got, _ := sum(); got.Answered != 1 {
			t.Errorf("what is older than a minute counts: %+v", got)
		}
		clock.Advance(-time.Hour)
		if got, _ := sum(); got.Answered != 0 {
			t.Errorf("what lies in the future counts: %+v", got)
		}
		var slices []int64
		for {
			var n int64
			update(t, s, func(tx *store.Tx) (err error) {
				n, err = admin.DeleteHealth(t.Context(), tx, 10*time.Minute, 3)
				return err
			})
			if n == 0 {
				break
			}
			slices = append(slices, n)
		}
		if len(slices) != 2 || slices[0] != 3 || slices[1] != 1 {
			t.Errorf("deleted in slices of %v, want 3 and 1", slices)
		}
	})
}

func TestBudgetsAreKept(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		both := []admin.Operation{{Connection: "b", Name: store.OpCheck}, {Connection: "a", Name: store.OpSubmit}}
		update(t, s, func(tx *store.Tx) error {
			got, err := admin.LockBudgets(t.Context(), tx, both)
			if err != nil {
				return err
			}
			if len(got) != 2 || got[both[0]].Tokens >= 0 || got[both[1]].FilledAt != tx.Now() {
				t.Errorf("new budgets: %+v %+v", got[both[0]], got[both[1]])
			}
			got[both[0]].Tokens, got[both[0]].Prefetched, got[both[0]].PrefetchedBefore, got[both[0]].PrefetchPeriod = 5, 6, 7, 8
			return admin.SaveBudgets(t.Context(), tx, got)
		})
		update(t, s, func(tx *store.Tx) error {
			got, err := admin.LockBudgets(t.Context(), tx, both[:1])
			if b := got[both[0]]; err == nil && (b.Tokens != 5 || b.Prefetched != 6 || b.PrefetchedBefore != 7 || b.PrefetchPeriod != 8) {
				t.Errorf("got %+v", b)
			}
			return err
		})
	})
}

// Steps that a database held before there were lanes get theirs; and the
// migration is applied though a later one was applied before it.
func TestStepsOfAnOlderDatabaseGetTheirLanes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "till.db")
	s := storetest.Open(t, store.Config{Path: path})
	c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
	waiting := storetest.NewPayment(t, c, client, storetest.Body{})
	ended := storetest.NewPayment(t, c, client, storetest.Body{})
	storetest.Apply(t, c, s, ended, storetest.Declined)
	raw := storetest.OpenRaw(t, path)
	for _, q := range []string{`DROP INDEX steps_lane`, `ALTER TABLE steps DROP COLUMN lane`, `CREATE INDEX steps_due ON steps (due_at)`,
		`DROP TABLE operator_health`, `DROP TABLE operator_breakers`, `DROP TABLE operator_budgets`,
		`DELETE FROM schema_migrations WHERE version = '0003_health'`} {
		storetest.Exec(t, raw, q)
	}
	again := openUnmigrated(t, path)
	if applied, err := again.Migrate(t.Context()); err != nil || len(applied) != 1 {
		t.Fatalf("applied %v, %v", applied, err)
	}
	for p, want := range map[*till.Payment]string{waiting: "silent submit", ended: "silent check"} {
		err := again.View(t.Context(), func(tx *store.Tx) error {
			st, err := tx.Step(t.Context(), store.Ref{Client: p.ClientID, ID: p.ID})
			if err == nil && st.Lane != want {
				t.Errorf("got %q, want %q", st.Lane, want)
			}
			lanes, _ := tx.Lanes(t.Context())
			if len(lanes) != 2 {
				t.Errorf("the lanes are %q", lanes)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
