package store_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

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
