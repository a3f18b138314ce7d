package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"till"
	"till/internal/db"
	"till/store"
)

var pulseInstance = db.Define(db.SQL{Name: "instances.pulse",
	SQLite: `INSERT INTO instances (id, version, level, role, started_at, seen_at, generations, sealing, troubles) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (id) DO UPDATE SET version = excluded.version, level = excluded.level, role = excluded.role, seen_at = excluded.seen_at,
		generations = excluded.generations, sealing = excluded.sealing, troubles = excluded.troubles`})

var selectInstances = db.Define(db.SQL{Name: "instances.select",
	SQLite: `SELECT id, version, level, role, started_at, seen_at FROM instances ORDER BY id LIMIT $1`})

var selectInstanceStates = db.Define(db.SQL{Name: "instances.selectStates",
	SQLite: `SELECT id, generations, sealing, troubles FROM instances ORDER BY id LIMIT $1`})

var deleteInstance = db.Define(db.SQL{Name: "instances.delete",
	SQLite: `DELETE FROM instances WHERE id = $1`})

var deleteOldInstances = db.Define(db.SQL{Name: "instances.deleteOld",
	SQLite: `DELETE FROM instances WHERE seen_at < $1`})

// How many instances are read, and how long one without a pulse is kept.
const (
	maxInstances = 1000
	keepInstance = time.Hour
)

// InstanceGone is how long after its last pulse an instance counts as running. It misses
// two pulses before.
const InstanceGone = 30 * time.Second

// Instance is one running program on this database.
type Instance struct {
	ID        till.ID
	Version   string
	Level     int64 // the highest that it reads; 0: of a release from before the level
	Role      string
	StartedAt till.Time
	SeenAt    till.Time // its last pulse

	Generations string // of the installation's secret, that it holds: "1,2"; "" means the first
	Sealing     int    // the one that it seals with; 0 means the first
	Troubles    string // what it alone knows to be wrong, as codes with commas between
}

// Running reports whether an instance was seen a short time before now.
func (i *Instance) Running(now till.Time) bool { return now.Sub(i.SeenAt) < InstanceGone }

// Holds reports whether an instance holds a generation of the installation's secret.
func (i *Instance) Holds(generation int) bool {
	return slices.Contains(strings.Split(i.Generations, ","), strconv.Itoa(generation))
}

// Tells reports whether an instance has reported a code of what is wrong with it.
func (i *Instance) Tells(code string) bool {
	return slices.Contains(strings.Split(i.Troubles, ","), code)
}

// PulseInstance records that an instance is alive, at the time of the transaction, and
// forgets those that have not been seen for an hour.
func PulseInstance(ctx context.Context, tx *store.Tx, i *Instance) error {
	i.SeenAt = tx.Now()
	if err := tx.DB().Defer(deleteOldInstances, [][]any{{int64(tx.Now().Add(-keepInstance))}}); err != nil {
		return err
	}
	return tx.DB().Defer(pulseInstance, [][]any{{i.ID[:], i.Version, i.Level, i.Role, int64(i.StartedAt), int64(i.SeenAt), cmp.Or(i.Generations, "1"), cmp.Or(i.Sealing, 1), i.Troubles}})
}

// Instances returns the instances with a pulse within the last hour.
func Instances(ctx context.Context, tx *store.Tx) ([]*Instance, error) {
	return db.ReadAll(ctx, tx.DB(), selectInstances, []any{maxInstances}, func(r db.Row) (*Instance, error) {
		i := &Instance{}
		err := r.Scan(db.ID(&i.ID), &i.Version, &i.Level, &i.Role, &i.StartedAt, &i.SeenAt)
		return i, err
	})
}

// ReadInstanceStates completes instances by the generations that they hold and seal with, and
// by what is wrong with them. It is apart from Instances, which a start reads before it
// migrates: an older database does not have these columns.
func ReadInstanceStates(ctx context.Context, tx *store.Tx, all []*Instance) error {
	by := make(map[till.ID]*Instance, len(all))
	for _, i := range all {
		by[i.ID] = i
	}
	return tx.DB().Query(ctx, selectInstanceStates, []any{maxInstances}, func(r db.Row) error {
		var id till.ID
		var state Instance
		err := r.Scan(db.ID(&id), &state.Generations, &state.Sealing, &state.Troubles)
		if i := by[id]; i != nil {
			i.Generations, i.Sealing, i.Troubles = state.Generations, state.Sealing, state.Troubles
		}
		return err
	})
}

// RunningInstances returns the instances that use the database now. A database from before
// instances were recorded has none.
func RunningInstances(ctx context.Context, s *store.Store) (running []*Instance, err error) {
	if known, err := s.KnowsInstances(ctx); err != nil || !known {
		return nil, err
	}
	err = s.View(ctx, func(tx *store.Tx) error {
		running = nil
		all, err := Instances(ctx, tx)
		for _, i := range all {
			if i.Running(tx.Now()) {
				running = append(running, i)
			}
		}
		return err
	})
	return running, err
}

// InstanceNames lists instances for a person, with their releases.
func InstanceNames(all []*Instance) string {
	var names []string
	for _, i := range all {
		names = append(names, fmt.Sprintf("%s (%s)", i.ID, i.Version))
	}
	return strings.Join(names, ", ")
}

// DeleteInstance forgets an instance that stops.
func DeleteInstance(ctx context.Context, tx *store.Tx, id till.ID) error {
	_, err := tx.DB().Exec(ctx, deleteInstance, id[:])
	return err
}

// ReadyToDistribute returns an error if instances run on a database that is still to be
// distributed: they took it for one server. Beside a database whose tables are all in
// their places instances may run, because then Distribute only repeats settings.
func ReadyToDistribute(ctx context.Context, s *store.Store) error {
	if placed, err := s.Placed(ctx); err != nil || placed {
		return err
	}
	running, err := RunningInstances(ctx, s)
	if err != nil || len(running) == 0 {
		return err
	}
	return &store.SchemaError{Detail: fmt.Sprintf("instances run on the database and could not go on once it is distributed: stop them and try again after %s; they are %s",
		InstanceGone, InstanceNames(running))}
}
