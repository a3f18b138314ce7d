package upkeep

import (
	"context"
	"fmt"
	"strings"

	"till"
	"till/store"
	"till/store/admin"
)

// Levels has the level of an installation, and who runs on it.
type Levels struct {
	Level     int    // what may be written
	Program   int    // the highest that this program knows
	Since     string // the newest migration that is not rolling: programs that know it can run until the level is raised
	Instances []*admin.Instance
	At        till.Time // when it was read
}

// ReadLevels returns the level, and the instances that were seen within the last hour.
func ReadLevels(ctx context.Context, s *store.Store) (l Levels, err error) {
	err = s.View(ctx, func(tx *store.Tx) error {
		l, err = readLevels(ctx, tx)
		return err
	})
	return l, err
}

func readLevels(ctx context.Context, tx *store.Tx) (Levels, error) {
	l := Levels{Program: admin.Level}
	var err error
	if l.Level, err = tx.InstallationLevel(ctx); err != nil {
		return l, err
	}
	if l.Since, err = admin.NewestStop(ctx, tx); err != nil {
		return l, err
	}
	l.Instances, err = admin.Instances(ctx, tx)
	l.At = tx.Now()
	return l, err
}

// WayBack says, after "until then", which release can be started again. Whether it is the
// one before depends on what that one knows.
func (l *Levels) WayBack() string {
	return "a release that knows the migration " + l.Since + " can be started again, and an older one cannot"
}

// Older returns the instances that run and do not know a level.
func (l *Levels) Older(level int) (older []*admin.Instance) {
	for _, i := range l.Instances {
		if i.Running(l.At) && i.Level < int64(level) {
			older = append(older, i)
		}
	}
	return older
}

// ErrOlderInstances says that the level cannot be raised yet.
type ErrOlderInstances struct{ Instances []*admin.Instance }

func (e *ErrOlderInstances) Error() string {
	var names []string
	for _, i := range e.Instances {
		names = append(names, fmt.Sprintf("%s (%s)", i.ID, i.Version))
	}
	return "instances of an older release run, and they cannot read what the new level writes: replace them first: " + strings.Join(names, ", ")
}

// RaiseLevel raises the level, which is store.Level but in tests. After it no program that
// does not know the level can run on the database. It returns ErrOlderInstances while one
// does, and false if there is nothing to raise. It may be run twice.
func RaiseLevel(ctx context.Context, s *store.Store, level int, by string) (raised bool, err error) {
	_, err = store.RetryUnknown(ctx, s.Update, func(tx *store.Tx, again bool) error {
		raised = again
		if err := admin.LockInstallation(ctx, tx); err != nil {
			return err
		}
		l, err := readLevels(ctx, tx)
		if err != nil || l.Level >= level {
			return err
		}
		if older := l.Older(level); len(older) > 0 {
			return &ErrOlderInstances{older}
		}
		if err := store.AuditClients(ctx, tx, []till.ID{till.House}, by, "level.raise", fmt.Sprintf("from level %d to %d", l.Level, level)); err != nil {
			return err
		}
		raised, err = admin.RaiseLevel(ctx, tx, level)
		return err
	})
	return raised && err == nil, err
}
