package books_test

import (
	"errors"
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
		pulse(till.NewID(start+1), "v1.1.0", store.Level)
		var older *books.ErrOlderInstances
		if _, err := books.RaiseLevel(t.Context(), s, "person:Anne"); !errors.As(err, &older) || len(older.Instances) != 1 || older.Instances[0].Version != "v1.0.0" {
			t.Fatalf("beside an older instance: %v", err)
		}
		clock.Set(start.Add(store.InstanceGone))
		for i, want := range []bool{true, false} {
			if raised, err := books.RaiseLevel(t.Context(), s, "person:Anne"); err != nil || raised != want {
				t.Errorf("call %d: %v, %v", i, raised, err)
			}
		}
		l, err := books.ReadLevels(t.Context(), s)
		if err != nil || l.Level != store.Level || l.Program != store.Level {
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
		// This program knows the level, so it runs on.
		if err := s.CheckSchema(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := s.Migrate(t.Context()); err != nil {
			t.Error(err)
		}
		if v, err := s.SchemaVersion(t.Context()); err != nil || v >= "a" {
			t.Errorf("the newest migration is %q, %v", v, err)
		}
	})
}
