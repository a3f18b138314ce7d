package store_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"till/store"
	"till/store/storetest"
)

// A start on a schema that is up to date reads it and locks nothing. On Citus a lock of the
// table goes to every node, so while one is away no instance could start.
func TestAStartOnASchemaOfTodayTakesNoLock(t *testing.T) {
	t.Parallel()
	c := storetest.Shared(t).Config(t)
	storetest.Open(t, c)
	holder, err := pgx.Connect(t.Context(), c.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(t.Context())
	for _, query := range []string{"BEGIN", "LOCK TABLE schema_migrations IN SHARE MODE"} { // readers go on
		if _, err := holder.Exec(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	impatient := c
	impatient.Path += "?"
	if strings.Contains(c.Path, "?") {
		impatient.Path = c.Path + "&"
	}
	impatient.Path += "lock_timeout=20ms"
	s, err := store.Open(t.Context(), impatient)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if applied, err := s.Migrate(t.Context()); err != nil || len(applied) > 0 {
		t.Errorf("applied %v, %v", applied, err)
	}
}
