package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"till"
	"till/store"
	"till/store/storetest"
)

// Steps move on, and PostgreSQL keeps where they were in the index until it
// vacuums. A look that begins at a floor does not go through all of that, so it
// costs the same after an hour of work as after a second.
func TestALookCostsTheSameAsStepsMoveOn(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		if e.Name != "postgres" {
			continue // SQLite removes index entries at once
		}
		config := e.Config(t)
		s := storetest.Open(t, config)
		client := storetest.NewClient(t, s, till.Test)
		c := storetest.NewCollector(t, s)
		for range 20 {
			storetest.NewPayment(t, c, client, storetest.Body{})
		}
		conn, err := pgx.Connect(t.Context(), config.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		exec := func(query string, args ...any) {
			t.Helper()
			if _, err := conn.Exec(t.Context(), query, args...); err != nil {
				t.Fatal(err)
			}
		}
		exec(`ALTER TABLE steps SET (autovacuum_enabled = false)`)
		// However long the payments took to make, their steps are due together.
		exec(`UPDATE steps SET due_at = (SELECT min(due_at) FROM steps)`)
		var lane string
		var first int64
		if err := conn.QueryRow(t.Context(), `SELECT lane, min(due_at) FROM steps GROUP BY lane`).Scan(&lane, &first); err != nil {
			t.Fatal(err)
		}
		// A reader that has been at it for a while: nothing that it may still see is cleared away.
		reader, err := pgx.Connect(t.Context(), config.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close(t.Context())
		if _, err := reader.Exec(t.Context(), `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM steps`); err != nil {
			t.Fatal(err)
		}
		cost := func(from till.Time) (n int64) {
			t.Helper()
			err := s.View(t.Context(), func(tx *store.Tx) (err error) {
				before, err := store.Fetched(t.Context(), tx, "steps_lane")
				if err != nil {
					return err
				}
				if _, err := tx.NextDue(t.Context(), []store.LaneView{{Lane: lane, From: from}}); err != nil {
					return err
				}
				n, err = store.Fetched(t.Context(), tx, "steps_lane")
				n -= before
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		fresh := cost(0)
		const rounds = 600
		for range rounds {
			exec(`UPDATE steps SET due_at = due_at + 1000`)
		}
		all, floored := cost(0), cost(till.Time(first+1000*rounds))
		t.Logf("blocks of the index for a look: %d at first; after %d moves %d, from a floor %d", fresh, 20*rounds, all, floored)
		if all < 4*fresh {
			t.Errorf("a look without a floor costs %d blocks after %d at first: the test does not see what it must", all, fresh)
		}
		if floored > 2*fresh {
			t.Errorf("a look from a floor costs %d blocks, at first %d", floored, fresh)
		}
	}
}
