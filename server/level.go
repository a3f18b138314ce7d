package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"till"
	"till/store"
	"till/store/admin"
	"till/upkeep"
)

// The level is raised by itself after raiseAfter in which only instances were seen that
// know it. Until then, a release that knows all migrations that are not rolling can be
// started again.
const (
	levelTurn  = "level"
	levelEvery = time.Minute
	levelLease = time.Minute
	raiseAfter = 24 * time.Hour
)

// levelSeen is the result of the turn.
type levelSeen struct {
	// Since is from when on only instances were seen that know the level; zero: an older one
	// runs, or there is nothing to raise.
	Since till.Time `json:"since"`
	Level int       `json:"level"` // the level that is waited for
}

// levelWatch raises the level when no older program was seen for a day.
type levelWatch struct {
	store *store.Store
	level int // store.Level, but in tests
}

func (w *levelWatch) turn() upkeep.Turn {
	return upkeep.Turn{Name: levelTurn, Every: levelEvery, Lease: levelLease, Run: w.look}
}

// look raises the level, or returns since when it waits.
func (w *levelWatch) look(ctx context.Context) (string, error) {
	l, err := upkeep.ReadLevels(ctx, w.store)
	if err != nil {
		return "", err
	}
	l.Program = w.level
	before, err := w.last(ctx)
	if err != nil {
		return "", err
	}
	now := nextLevelSeen(before, &l)
	if !now.Since.IsZero() && l.At.Sub(now.Since) >= raiseAfter {
		_, err := upkeep.RaiseLevel(ctx, w.store, w.level, "engine")
		var older *upkeep.ErrOlderInstances
		if err != nil && !errors.As(err, &older) {
			return "", err
		}
		now = levelSeen{}
	}
	b, err := json.Marshal(now)
	return string(b), err
}

// nextLevelSeen moves the wait for the level on by what is seen now.
func nextLevelSeen(before levelSeen, l *upkeep.Levels) levelSeen {
	if l.Level >= l.Program || len(l.Older(l.Program)) > 0 {
		return levelSeen{}
	}
	// A time in the future is from before the clock was set back.
	if before.Level != l.Program || before.Since.IsZero() || before.Since > l.At {
		return levelSeen{Since: l.At, Level: l.Program}
	}
	return before
}

func (w *levelWatch) last(ctx context.Context) (seen levelSeen, err error) {
	err = w.store.View(ctx, func(tx *store.Tx) error {
		turns, err := admin.Turns(ctx, tx)
		if t := turns[levelTurn]; err == nil && t != nil {
			if json.Unmarshal([]byte(t.Result), &seen) != nil {
				seen = levelSeen{} // another release's
			}
		}
		return err
	})
	return seen, err
}

// refuseStop refuses to migrate a database that other instances use, if they could not go
// on with it. On one file the lock has shown that there is no other.
func (s *Server) refuseStop(ctx context.Context) error {
	if !store.IsPostgres(s.c.Database) {
		return nil
	}
	stops, err := s.store.PendingStop(ctx)
	if err != nil || len(stops) == 0 {
		return err
	}
	running, err := admin.RunningInstances(ctx, s.store)
	if err != nil || len(running) == 0 {
		return err
	}
	return fmt.Errorf("other instances run on the database and cannot go on after the migrations %s: stop them and start again after %s, "+
		"or run 'till migrate', at which they stop by themselves; they are %s",
		strings.Join(stops, ", "), admin.InstanceGone, admin.InstanceNames(running))
}
