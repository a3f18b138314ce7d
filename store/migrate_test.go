package store_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"till/store"
	"till/store/storetest"
)

// refusal returns the detail of a SchemaError, and fails on any other outcome.
func refusal(t *testing.T, err error) string {
	t.Helper()
	var e *store.SchemaError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a SchemaError", err)
	}
	return e.Detail
}

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "till.db") }

func openUnmigrated(t *testing.T, path string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	t.Run("an empty database is refused, and told what to do", func(t *testing.T) {
		t.Parallel()
		if d := refusal(t, openUnmigrated(t, newPath(t)).CheckSchema(t.Context())); !strings.Contains(d, "till migrate") {
			t.Errorf("got %q", d)
		}
	})
	t.Run("a second run applies nothing", func(t *testing.T) {
		t.Parallel()
		s := openUnmigrated(t, newPath(t))
		first, err := s.Migrate(t.Context())
		if err != nil || len(first) == 0 || first[0] != "0001_init" {
			t.Fatalf("applied %v, %v", first, err)
		}
		second, err := s.Migrate(t.Context())
		if err != nil || len(second) != 0 {
			t.Errorf("applied %v again, %v", second, err)
		}
		if err := s.CheckSchema(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("two who migrate at once apply everything once", func(t *testing.T) {
		t.Parallel()
		path := newPath(t)
		stores := []*store.Store{openUnmigrated(t, path), openUnmigrated(t, path)}
		var all sync.WaitGroup
		applied := make([][]string, len(stores))
		for i, s := range stores {
			all.Go(func() {
				var err error
				if applied[i], err = s.Migrate(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		versions := slices.Concat(applied...)
		slices.Sort(versions)
		once := slices.Compact(slices.Clone(versions))
		if len(once) != len(versions) || len(once) < 2 || once[0] != "0001_init" {
			t.Errorf("applied %v, want each once", applied)
		}
	})

	for _, c := range []struct{ name, query, want string }{
		{"a migration with another text is refused", `UPDATE schema_migrations SET checksum = 'other' WHERE version = '0001_init'`, "another text"},
		{"a migration that this program does not know is refused", `INSERT INTO schema_migrations (version, checksum, applied_at) VALUES ('9999_later', 'sum', 1)`, "older than the database"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			s := storetest.Open(t, store.Config{Path: path})
			storetest.Exec(t, storetest.OpenRaw(t, path), c.query)
			if d := refusal(t, s.CheckSchema(t.Context())); !strings.Contains(d, c.want) {
				t.Errorf("checked: got %q, want %q", d, c.want)
			}
			applied, err := s.Migrate(t.Context())
			if d := refusal(t, err); !strings.Contains(d, c.want) || len(applied) > 0 {
				t.Errorf("migrated: got %q and applied %v, want %q", d, applied, c.want)
			}
		})
	}
	t.Run("a migration that the database lacks is refused until it is applied", func(t *testing.T) {
		t.Parallel()
		path := newPath(t)
		s := storetest.Open(t, store.Config{Path: path})
		storetest.Exec(t, storetest.OpenRaw(t, path), `DELETE FROM schema_migrations WHERE version = '0001_init'`)
		if d := refusal(t, s.CheckSchema(t.Context())); !strings.Contains(d, "0001_init") {
			t.Errorf("got %q", d)
		}
	})
	t.Run("a migration is applied after one with a higher number", func(t *testing.T) {
		t.Parallel()
		path := newPath(t)
		s := storetest.Open(t, store.Config{Path: path})
		raw := storetest.OpenRaw(t, path)
		for _, query := range []string{`DROP TABLE seal_generations`, `ALTER TABLE instances DROP COLUMN generations`, `ALTER TABLE instances DROP COLUMN sealing`,
			`DELETE FROM schema_migrations WHERE version = '0064_generations'`} {
			storetest.Exec(t, raw, query)
		}
		if applied, err := s.Migrate(t.Context()); err != nil || !slices.Equal(applied, []string{"0064_generations"}) {
			t.Errorf("applied %v, %v", applied, err)
		}
	})
	t.Run("a migration that fails half way leaves nothing behind", func(t *testing.T) {
		t.Parallel()
		path := newPath(t)
		raw := storetest.OpenRaw(t, path)
		storetest.Exec(t, raw, `CREATE TABLE audit_chain (wrong INTEGER)`) // the last table of the first migration
		s := openUnmigrated(t, path)
		if _, err := s.Migrate(t.Context()); err == nil {
			t.Fatal("it was applied over a table that was there")
		}
		var n int
		if err := raw.QueryRowContext(t.Context(), `SELECT count(*) FROM sqlite_master WHERE type = 'table'`).Scan(&n); err != nil || n != 1 {
			t.Errorf("%d tables are there, %v; want only the one in the way", n, err)
		}
		storetest.Exec(t, raw, `DROP TABLE audit_chain`)
		if _, err := s.Migrate(t.Context()); err != nil {
			t.Errorf("the next run: %v", err)
		}
	})
}

// A program that took a database for one server must not go on when Citus has distributed
// it: its writes of many rows are refused there, or go to all nodes. That the extension is
// there, or that other tables are distributed, does not matter.
func TestADatabaseThatWasDistributedMeanwhileIsRefused(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		if e.Name == "citus" { // it has a catalogue of its own
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			c := e.Config(t)
			s := storetest.Open(t, c)
			word := "regclass"
			if !s.Shared() {
				word = "TEXT"
			}
			storetest.Raw(t, c.Path, `CREATE TABLE pg_dist_partition (logicalrelid `+word+`, partmethod TEXT, repmodel TEXT)`)
			storetest.Raw(t, c.Path, `CREATE TABLE pg_dist_placement (shardid INTEGER, groupid INTEGER)`) // a start counts the nodes in it
			storetest.Raw(t, c.Path, `CREATE TABLE pg_dist_shard (shardid INTEGER, logicalrelid `+word+`)`)
			storetest.Raw(t, c.Path, `INSERT INTO pg_dist_partition (logicalrelid) VALUES ('wallets')`)
			if err := s.CheckSchema(t.Context()); err != nil {
				t.Fatalf("another table is distributed: %v", err)
			}
			storetest.Raw(t, c.Path, `INSERT INTO pg_dist_partition (logicalrelid) VALUES ('payments')`)
			_, err := s.Migrate(t.Context())
			for _, err := range []error{err, s.CheckSchema(t.Context())} {
				if !s.Shared() {
					if err != nil {
						t.Errorf("a file is refused: %v", err)
					}
				} else if d := refusal(t, err); !strings.Contains(d, "Citus") {
					t.Errorf("refused with %q", d)
				}
			}
			if !s.Shared() {
				return
			}
			// The next start sees that it is distributed, and that not all of it is.
			again, err := store.Open(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			if d := refusal(t, again.CheckSchema(t.Context())); !strings.Contains(d, "till migrate --citus") {
				t.Errorf("refused with %q", d)
			}
		})
	}
}
