package engine

import (
	"context"
	"time"

	"till"
	"till/provider"
	"till/store"
)

// maxRepaired is how many steps are repaired in one commit.
const maxRepaired = 500

// clock notices that the database's clock was set back: it has advanced by less than the
// monotonic clock. After a slow transaction that may be wrong, which costs one needless
// read.
type clock struct {
	seen time.Time // zero: never
	at   till.Time
}

// setBack records the database's time and reports whether the clock was set back since the
// last call. The first call reports true.
func (c *clock) setBack(now till.Time) bool {
	back := c.seen.IsZero() || now.Sub(c.at) < time.Since(c.seen)-store.ClockSlack
	c.seen, c.at = time.Now(), now
	return back
}

// boundsOf returns how far ahead an operator's steps can be due.
func boundsOf(t provider.Traits) store.Bounds {
	b := store.Bounds{
		Lease: Lease + store.ClockSlack, First: max(t.ApprovalWindow, t.Poll, time.Minute),
		Open: max(t.Poll, store.MinCallbackInterval) + store.ClockSlack, Slow: max(t.PollMax, t.Poll) + store.ClockSlack,
	}
	b.Late = b.Slow
	for _, d := range t.LateReads {
		b.Late = max(b.Late, d+store.ClockSlack)
	}
	return b
}

// clampToNow moves those times of a step that are too far ahead. A step that is due too
// late is due now. A lease ends when one that is taken now would. A proof is made again.
func clampToNow(s *store.Step, b store.Bounds, now till.Time) {
	soon, lease := now.Add(store.ClockSlack), now.Add(b.Lease)
	far := b.Open
	switch {
	case s.LateFrom > 0 || s.LateReads > 0:
		far = b.Late
	case s.BackoffSteps > 0:
		far = b.Slow
	case s.Sends == 0:
		far = b.First
	}
	if s.DueAt > now.Add(far) || s.LateFrom > soon {
		s.DueAt = now
	}
	s.LeaseUntil, s.SendDeadline = min(s.LeaseUntil, lease), min(s.SendDeadline, lease)
	if s.CheckedAt > soon {
		s.CheckedAt = now
	}
	if s.NotFoundAt > soon {
		s.NotFoundReads, s.NotFoundAt = 0, 0
	}
	if s.LateFrom > soon {
		s.LateFrom = now
	}
}

// repairFuture repairs the times in our lanes that are in the future after the clock was
// set back. All instances do it; the second finds nothing to repair.
func (w *Worker) repairFuture(ctx context.Context) error {
	for _, lane := range w.lanes {
		bounds, ahead := w.bounds[lane], false
		if err := w.c.Store.ViewAll(ctx, func(tx *store.Tx) (err error) {
			ahead, err = tx.AnyAhead(ctx, w.kind, lane, bounds)
			return err
		}); err != nil {
			return err
		}
		for ahead {
			var steps []*store.Step
			var windows int
			err := w.c.Store.UpdateBackground(ctx, func(tx *store.Tx) (err error) {
				if steps, err = tx.StepsAhead(ctx, lane, bounds, maxRepaired); err != nil {
					return err
				}
				for _, s := range steps {
					clampToNow(s, bounds, tx.Now())
				}
				if err = tx.SaveSteps(ctx, steps); err != nil {
					return err
				}
				if err = tx.RepairCallbackTimes(ctx, steps); err != nil {
					return err
				}
				windows, err = tx.RepairWindows(ctx, w.kind, lane, maxRepaired)
				return err
			})
			if err != nil {
				return err
			}
			w.c.Log.Warn("future times repaired after the clock was set back", "lane", lane, "steps", len(steps), "windows", windows)
			ahead = len(steps) == maxRepaired || windows == maxRepaired
		}
	}
	return nil
}

// leaseHolds reports whether a task's lease still runs: by the monotonic clock, which may
// have stopped while the machine was suspended, and by the database's.
func (w *Worker) leaseHolds(t *Task) bool {
	return time.Now().Before(t.leaseEnd) && w.c.Store.Now() < t.Step.LeaseUntil
}

// WindowFrom returns when the window of a new row starts: at its own time, but not at one
// that runs ahead, as a client's time does after the clock was set back.
func WindowFrom(at, now till.Time) till.Time {
	if at > now.Add(store.ClockSlack) {
		return now
	}
	return at
}
