package engine

import (
	"context"
	"time"

	"till"
	"till/provider"
	"till/store"
)

// maxRepaired is how many steps are brought back from the future in one commit.
const maxRepaired = 500

// clock notices that the database's clock was set back: it has gone on by less
// than the clock that nobody sets. If it was a transaction that took long, nothing
// is lost but a look.
type clock struct {
	seen time.Time // zero: never
	at   till.Time
}

// setBack takes note of what the database's clock shows, and reports whether it was set
// back since the last time. Whoever has just started cannot know, and
// takes it that it was.
func (c *clock) setBack(now till.Time) bool {
	back := c.seen.IsZero() || now.Sub(c.at) < time.Since(c.seen)-store.ClockSlack
	c.seen, c.at = time.Now(), now
	return back
}

// boundsOf returns how far off the steps of an operator can be due.
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

// clampToNow brings the times of a step that are further off than they can be
// back to what they can be: what is due too late is due now, a lease is over when
// one that is taken now would be, and what was proven then is proven again.
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

// repairFuture brings back what a clock that was set back has left in the future, of our
// lanes. All instances see it and do it: what one has mended the others find in
// order.
func (w *Worker) repairFuture(ctx context.Context) error {
	for _, lane := range w.lanes {
		bounds, ahead := w.bounds[lane], false
		if err := w.c.Store.View(ctx, func(tx *store.Tx) (err error) {
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
			w.c.Log.Warn("the clock was set back; times in the future were brought back", "lane", lane, "steps", len(steps), "windows", windows)
			ahead = len(steps) == maxRepaired || windows == maxRepaired
		}
	}
	return nil
}

// leaseHolds answers whether a task's lease still runs: by the clock that nobody
// sets, which may have stood still while the machine was suspended, and by the
// database's.
func (w *Worker) leaseHolds(t *Task) bool {
	return time.Now().Before(t.leaseEnd) && w.c.Store.Now() < t.Step.LeaseUntil
}

// WindowFrom returns from when the window of a new row counts: from its own
// time, but not from one that runs ahead, as a client's does after the clock was
// set back.
func WindowFrom(at, now till.Time) till.Time {
	if at > now.Add(store.ClockSlack) {
		return now
	}
	return at
}
