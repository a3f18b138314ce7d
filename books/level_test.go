package books_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"till"
	"till/books"
	"till/store"
	"till/store/storetest"
)

// The level is raised when no instance runs that does not know it, once, with a row in the
// house's audit log.
func TestTheLevelWaitsForOlderInstances(t *testing.T) {
	t.Parallel()
	const next = store.Level + 1 // as a later release does it
	start := till.Time(1_900_000_000_000_000)
	storetest.RunAt(t, &start, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		err := s.Update(t.Context(), func(tx *store.Tx) error {
			return tx.InsertInstallation(t.Context(), &store.Installation{LogID: till.NewID(start), SecretCheck: []byte("x"), CreatedAt: start})
		})
		if err != nil {
			t.Fatal(err)
		}
		pulse := func(id till.ID, version string, level int64) {
			t.Helper()
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				return tx.PulseInstance(t.Context(), &store.Instance{ID: id, Version: version, Level: level, Role: "all", StartedAt: start})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		pulse(till.NewID(start), "v1.0.0", 0)
		pulse(till.NewID(start+1), "v1.1.0", next)
		var older *books.ErrOlderInstances
		if _, err := books.RaiseLevel(t.Context(), s, next, "person:Anne"); !errors.As(err, &older) || len(older.Instances) != 1 || older.Instances[0].Version != "v1.0.0" {
			t.Fatalf("beside an older instance: %v", err)
		}
		clock.Set(start.Add(store.InstanceGone))
		for i, want := range []bool{true, false} {
			if raised, err := books.RaiseLevel(t.Context(), s, next, "person:Anne"); err != nil || raised != want {
				t.Errorf("call %d: %v, %v", i, raised, err)
			}
		}
		l, err := books.ReadLevels(t.Context(), s)
		if err != nil || l.Level != next || l.Program != store.Level {
			t.Errorf("got %+v, %v", l, err)
		}
		var rows []*store.AuditRow
		err = s.View(t.Context(), func(tx *store.Tx) (err error) {
			rows, err = tx.Audit(t.Context(), till.House, 0, 10)
			return err
		})
		if err != nil || len(rows) != 1 || rows[0].Action != "level.raise" || rows[0].Actor != "person:Anne" {
			t.Errorf("the audit log has %+v, %v", rows, err)
		}
		// This program does not know the level, so it stops, and does not start.
		var refused *store.SchemaError
		if err := s.CheckSchema(t.Context()); !errors.As(err, &refused) || !strings.Contains(err.Error(), "raised to level "+strconv.Itoa(next)) {
			t.Errorf("on a higher level: %v", err)
		}
		if _, err := s.Migrate(t.Context()); !errors.As(err, &refused) {
			t.Errorf("a start on a higher level: %v", err)
		}
		if v, err := s.SchemaVersion(t.Context()); err != nil || v >= "a" {
			t.Errorf("the newest migration is %q, %v", v, err)
		}
	})
}
