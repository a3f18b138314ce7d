package store_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"till/internal/db"
	"till/internal/db/dbfault"
	"till/store"
	"till/store/storetest"
)

// F9: a migration stops at any of its statements, by an error, by a lost answer to its commit
// or because the process ends. Each migration is there whole or not at all, and the next start
// goes on where it stopped. At the end the schema is that of a migration without troubles.
func TestMigrationsStopAnywhere(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make quick leaves it out: each statement of all migrations fails")
	}
	for _, e := range storetest.Engines() {
		if e.Name != "sqlite" {
			continue // each try would be seconds on a server, by the same runner
		}
		faults := []dbfault.Fault{dbfault.Crash}
		if os.Getenv("TILL_EFFECTS") == "all" {
			faults = append(faults, dbfault.Error)
		}
		for _, f := range faults {
			t.Run(e.Name+" "+f.String(), func(t *testing.T) {
				t.Parallel()
				ctx := t.Context()
				plan := &dbfault.Plan{}
				c := e.Empty(t)
				c.Wrap = func(e db.Engine) db.Engine { return dbfault.New(e, dbfault.Config{Next: plan.Next}) }
				stopped := 0
				for n := 1; ; n++ {
					s, err := store.Open(ctx, c)
					if err != nil {
						t.Fatal(err)
					}
					plan.Start(f, n, false)
					applied, err := s.Migrate(ctx)
					plan.Stop()
					s.Close()
					if err == nil {
						break
					}
					failed := plan.Failed()
					if !errors.Is(err, store.ErrUnavailable) || len(failed) != 1 {
						t.Fatalf("effect %d, %q, failed: %v", n, failed, err)
					}
					stopped++
					// A commit whose answer was lost has happened. Statements are counted
					// anew behind it.
					if len(applied) > 0 || strings.HasPrefix(failed[0], "answer") {
						n = 0
					}
				}
				if stopped < 500 {
					t.Errorf("it was stopped at %d places only", stopped)
				}
				t.Logf("stopped at %d places", stopped)
				c.Wrap = nil
				got, want := tables(t, storetest.Open(t, c)), tables(t, storetest.Open(t, e.Config(t)))
				if !slices.Equal(got, want) {
					t.Errorf("the schema is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			})
		}
	}
}

var selectSchema = db.Define(db.SQL{Name: "test.selectSchema", SQLite: `SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1`})

// tables returns everything that a SQLite file consists of.
func tables(t *testing.T, s *store.Store) (out []string) {
	t.Helper()
	if err := s.View(t.Context(), func(tx *store.Tx) error {
		return tx.DB().Query(t.Context(), selectSchema, nil, func(r db.Row) error {
			var text string
			err := r.Scan(&text)
			out = append(out, text)
			return err
		})
	}); err != nil {
		t.Fatal(err)
	}
	return out
}
