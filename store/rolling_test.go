package store_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"till/store"
	"till/store/storetest"
)

// A newer release has migrated the database. This program runs on if all that it does
// not know is rolling, and refuses otherwise.
func TestAnUnknownMigration(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "till.db")
	s := storetest.Open(t, store.Config{Path: path})
	raw := storetest.OpenRaw(t, path)
	add := func(version string, rolling int) {
		t.Helper()
		if _, err := raw.ExecContext(t.Context(), `INSERT INTO schema_migrations (version, checksum, applied_at, rolling) VALUES (?, 'x', 1, ?)`, version, rolling); err != nil {
			t.Fatal(err)
		}
	}
	add("9001_new", 1)
	if err := s.CheckSchema(t.Context()); err != nil {
		t.Errorf("with a rolling migration: %v", err)
	}
	if applied, err := s.Migrate(t.Context()); err != nil || len(applied) > 0 {
		t.Errorf("a start of this release: %v, %v", applied, err)
	}
	add("9002_stop", 0)
	var refused *store.SchemaError
	if err := s.CheckSchema(t.Context()); !errors.As(err, &refused) || !strings.Contains(err.Error(), "9002_stop") {
		t.Errorf("with one that is not: %v", err)
	}
	if _, err := s.Migrate(t.Context()); !errors.As(err, &refused) {
		t.Errorf("a start of this release: %v", err)
	}
}

// Instances of a release from before the table of instances notice no migration, and would
// go on. A migration is refused while one of them keeps its session for hints.
func TestAMigrationWaitsForInstancesThatAreNotRecorded(t *testing.T) {
	t.Parallel()
	c := onPostgres(t)
	s, old := storetest.Open(t, c), storetest.Open(t, c) // the old one's sessions have the same names
	hears := old.SubscribeAll()
	for end := time.Now().Add(time.Minute); hintConnections(t, c.Path, false) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nobody listens")
		}
	}
	storetest.Raw(t, c.Path, `ALTER TABLE instances RENAME TO instances_later`)
	storetest.Raw(t, c.Path, `DELETE FROM schema_migrations WHERE version = '0049_turns'`)
	var refused *store.SchemaError
	if _, err := s.Migrate(t.Context()); !errors.As(err, &refused) || !strings.Contains(err.Error(), "stop them all") {
		t.Errorf("beside an old instance: %v", err)
	}
	hears.Close()
	storetest.Raw(t, c.Path, `ALTER TABLE instances_later RENAME TO instances`)
	storetest.Raw(t, c.Path, `INSERT INTO schema_migrations (version, checksum, applied_at) SELECT '0049_turns', 'x', 1`)
}
