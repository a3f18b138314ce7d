package upkeep

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"till"
	"till/internal/loop"
	"till/store"
	"till/store/admin"
)

// Turn is work that one instance at a time does, at intervals: gauges, verify, backups.
type Turn struct {
	Name  string
	Every time.Duration // from the end of one run to the beginning of the next
	// Lease is how long a run may take. Then another instance may begin, and what the
	// first one finds is dropped.
	Lease time.Duration
	// NotBefore is when this instance may first do it; zero means at once.
	NotBefore time.Time
	// Run does the work. Its result is a small JSON document, which every instance reads.
	Run func(ctx context.Context) (result string, err error)
}

// Limits of turns: how often an instance checks whose turn it is, how soon a run that
// failed is tried again, and how long a result may be.
const (
	turnInterval = 5 * time.Second
	turnRetry    = time.Minute
	maxResult    = 256 << 10
)

// Turns shares work among the instances of one database.
type Turns struct {
	Store *store.Store
	Self  till.ID // this instance
	All   []Turn
	// Seen, if not nil, gets each turn as it is in the database, also those of others.
	Seen func(t *admin.Turn)
	// Changed, if not nil, is notified that this instance took a turn over from one that did
	// not end it, that a turn has failed here, and that it works again.
	Changed func(turn, from, to, why string)
	Log     *slog.Logger

	failing map[string]bool // the turns whose last run here failed
}

// Run takes turns until ctx ends.
func (ts *Turns) Run(ctx context.Context) {
	loop.Run(ctx, loop.Options{
		Interval: turnInterval, Jitter: 0.1, Step: ts.look, MaxStep: ts.longest(),
		OnPanic: func(v any) { ts.Log.Error("turn panicked", "panic", v, "stack", string(debug.Stack())) },
	})
}

// longest returns how long all turns in a row may take.
func (ts *Turns) longest() (d time.Duration) {
	for _, t := range ts.All {
		d += t.Lease
	}
	return d
}

// look runs what is due and free.
func (ts *Turns) look(ctx context.Context) time.Duration {
	if err := ts.Once(ctx); err != nil && ctx.Err() == nil {
		ts.Log.Warn("turns not read", "error", err)
	}
	return -1
}

// Once reads all turns and takes those that are due and free, one after the other.
func (ts *Turns) Once(ctx context.Context) error {
	rows, now, err := ts.read(ctx)
	if err != nil {
		return err
	}
	for i := range ts.All {
		t := &ts.All[i]
		row := rows[t.Name]
		if row == nil {
			row = &admin.Turn{Name: t.Name}
		}
		if time.Now().Before(t.NotBefore) || !t.free(row, now) || ctx.Err() != nil {
			continue
		}
		rows[t.Name], err = ts.take(ctx, t, row)
		if err != nil {
			ts.Log.Warn("turn not done", "turn", t.Name, "error", err)
		}
		if err != nil || rows[t.Name] != nil {
			ts.noteRun(t, err)
		}
	}
	for _, row := range rows {
		if ts.Seen != nil && row != nil {
			ts.Seen(row)
		}
	}
	return nil
}

// noteRun reports a run that ended otherwise than the one before.
func (ts *Turns) noteRun(t *Turn, err error) {
	if ts.failing == nil {
		ts.failing = map[string]bool{}
	}
	failed := err != nil
	if ts.failing[t.Name] == failed {
		return
	}
	ts.failing[t.Name] = failed
	if failed {
		ts.changed(t.Name, "done", "failed", err.Error())
		return
	}
	ts.changed(t.Name, "failed", "done", "")
}

func (ts *Turns) changed(turn, from, to, why string) {
	if ts.Changed != nil {
		ts.Changed(turn, from, to, why)
	}
}

func (ts *Turns) read(ctx context.Context) (rows map[string]*admin.Turn, now till.Time, err error) {
	err = ts.Store.View(ctx, func(tx *store.Tx) (err error) {
		rows, err = admin.Turns(ctx, tx)
		now = tx.Now()
		return err
	})
	return rows, now, err
}

// free reports whether a turn is due and nobody has it. Times that lie too far in the
// future are from before the clock was set back.
func (t *Turn) free(row *admin.Turn, now till.Time) bool {
	leased := row.LeaseUntil > now && row.LeaseUntil <= now.Add(max(t.Lease, turnRetry))
	done := row.RanAt > 0 && row.RanAt <= now && now.Sub(row.RanAt) < t.Every
	return !leased && !done
}

// take takes the lease of a turn, does the work and writes what it found. It returns the
// row as it is then, nil if another instance was first.
func (ts *Turns) take(ctx context.Context, t *Turn, seen *admin.Turn) (*admin.Turn, error) {
	row := *seen
	row.Owner = ts.Self
	if won, err := ts.swap(ctx, &row, func(now till.Time) { row.LeaseUntil = now.Add(t.Lease) }); err != nil || !won {
		return nil, err
	}
	if seen.LeaseUntil > 0 && seen.Owner != ts.Self { // one that ended it has set no lease
		ts.changed(t.Name, seen.Owner.String(), ts.Self.String(), "its last run did not end, or failed")
	}
	limited, cancel := context.WithTimeout(ctx, t.Lease)
	defer cancel()
	result, failed := t.run(limited)
	if failed == nil && len(result) > maxResult {
		failed = fmt.Errorf("a result of %d bytes is too long", len(result))
	}
	won, err := ts.swap(context.WithoutCancel(ctx), &row, func(now till.Time) {
		if failed != nil {
			row.LeaseUntil = now.Add(turnRetry)
			return
		}
		row.LeaseUntil, row.RanAt, row.Result = 0, now, result
	})
	switch {
	case failed != nil:
		return nil, failed
	case err != nil:
		return nil, err
	case !won:
		return nil, fmt.Errorf("it took longer than its lease of %s", t.Lease)
	}
	return &row, nil
}

// swap changes a row by the database's clock, and writes it if nobody else has.
func (ts *Turns) swap(ctx context.Context, row *admin.Turn, change func(now till.Time)) (won bool, err error) {
	before := row.Version
	err = ts.Store.UpdateBackground(ctx, func(tx *store.Tx) (err error) {
		row.Version = before // of an earlier run of this transaction
		change(tx.Now())
		won, err = admin.SwapTurn(ctx, tx, row)
		return err
	})
	return won, err
}

// run does the work. A panic is an error: the turn is free again later.
func (t *Turn) run(ctx context.Context) (result string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panicked: %v", v)
		}
	}()
	return t.Run(ctx)
}
