package upkeep_test

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"till"
	"till/store"
	"till/store/admin"
	"till/store/auditlog"
	"till/store/storetest"
	"till/upkeep"
)

// The level is raised when no instance runs that does not know it, once, with a row in the
// house's audit log.
func TestTheLevelWaitsForOlderInstances(t *testing.T) {
	t.Parallel()
	const next = admin.Level + 1 // as a later release does it
	start := till.Time(1_900_000_000_000_000)
	storetest.RunAt(t, &start, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		err := s.Update(t.Context(), func(tx *store.Tx) error {
			return admin.InsertInstallation(t.Context(), tx, &admin.Installation{LogID: till.NewID(start), SecretCheck: []byte("x"), CreatedAt: start})
		})
		if err != nil {
			t.Fatal(err)
		}
		pulse := func(id till.ID, version string, level int64) {
			t.Helper()
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				return admin.PulseInstance(t.Context(), tx, &admin.Instance{ID: id, Version: version, Level: level, Role: "all", StartedAt: start})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		pulse(till.NewID(start), "v1.0.0", 0)
		pulse(till.NewID(start+1), "v1.1.0", next)
		var older *upkeep.ErrOlderInstances
		if _, err := upkeep.RaiseLevel(t.Context(), s, next, "person:Anne"); !errors.As(err, &older) || len(older.Instances) != 1 || older.Instances[0].Version != "v1.0.0" {
			t.Fatalf("beside an older instance: %v", err)
		}
		clock.Set(start.Add(admin.InstanceGone))
		for i, want := range []bool{true, false} {
			if raised, err := upkeep.RaiseLevel(t.Context(), s, next, "person:Anne"); err != nil || raised != want {
				t.Errorf("call %d: %v, %v", i, raised, err)
			}
		}
		l, err := upkeep.ReadLevels(t.Context(), s)
		if err != nil || l.Level != next || l.Program != admin.Level {
			t.Errorf("got %+v, %v", l, err)
		}
		var rows []*store.AuditRow
		err = s.View(t.Context(), func(tx *store.Tx) (err error) {
			rows, err = auditlog.Read(t.Context(), tx, till.House, 0, 10)
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

// Who raises the level and who adds generations at the same time wait for each other in one
// order. The level is raised once, and so is said once.
func TestTheLevelIsRaisedBesideOthers(t *testing.T) {
	t.Parallel()
	const next = admin.Level + 1 // as a later release does it
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		ctx, by := t.Context(), "person:Anne"
		err := s.Update(ctx, func(tx *store.Tx) error {
			return admin.InsertInstallation(ctx, tx, &admin.Installation{LogID: till.NewID(tx.Now()), SecretCheck: []byte("x"), CreatedAt: tx.Now()})
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := upkeep.RaiseLevel(ctx, s, admin.Level, by); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		var raised, added atomic.Int64
		for n := range 4 {
			all.Go(func() {
				done, err := upkeep.RaiseLevel(ctx, s, next, by)
				if err != nil {
					t.Error(err)
				}
				if done {
					raised.Add(1)
				}
			})
			all.Go(func() {
				done, err := upkeep.AddGeneration(ctx, s, 2+n, []byte{byte(n)}, []byte("the first"), by)
				if err != nil {
					t.Error(err)
				}
				if done {
					added.Add(1)
				}
			})
		}
		all.Wait()
		said := map[string]int{}
		err = s.View(ctx, func(tx *store.Tx) error {
			rows, err := auditlog.Read(ctx, tx, till.House, 0, 20)
			for _, r := range rows {
				said[r.Action]++
			}
			return err
		})
		if err != nil || raised.Load() != 1 || added.Load() != 4 || said["level.raise"] != 2 || said["secret.add"] != 4 {
			t.Errorf("raised %d times, added %d, and the audit log has %v, %v", raised.Load(), added.Load(), said, err)
		}
	})
}

// The release before can be started again only if it knows every migration that is not
// rolling, so the newest of these is named.
func TestTheWayBackNamesTheNewestStop(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			c := e.Config(t)
			s := storetest.Open(t, c)
			said := func(want string) {
				t.Helper()
				if l, err := upkeep.ReadLevels(t.Context(), s); err != nil || !strings.Contains(l.WayBack(), "knows the migration "+want+" ") {
					t.Errorf("it says %q and not %s, error %v", l.WayBack(), want, err)
				}
			}
			said("0053_rolling")
			storetest.Raw(t, c.Path, `INSERT INTO schema_migrations (version, checksum, applied_at, rolling) VALUES ('9001_stop', 'x', 1, 0), ('9002_rolling', 'x', 1, 1), ('level_2', 'level', 1, 0)`)
			said("9001_stop")
			storetest.Raw(t, c.Path, `DELETE FROM schema_migrations WHERE version IN ('9001_stop', '9002_rolling', 'level_2')`)
		})
	}
}
