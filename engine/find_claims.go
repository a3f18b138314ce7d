package engine

import (
	"context"
	"math/rand/v2"
	"time"

	"till/store"
)

// findClaims finds out which tasks of a claim are ours when nobody knows whether the claim
// was committed, and starts those. Otherwise each send of it would count as one that may
// have begun, and an operator that cannot be asked would never say that it has not.
//
// The tasks keep their slots meanwhile, and no other claim of this process takes their
// steps. So a step that has what the task wrote was claimed by this task.
func (w *Worker) findClaims(tasks []*Task) {
	for _, t := range tasks {
		w.unrecorded.add(t.Instruction.Ref, 1)
	}
	w.tasks.Add(1)
	go func() {
		defer w.tasks.Done()
		ctx := context.Background() // not the claim's, which may allow only little time
		steps := w.stepsOf(ctx, tasks)
		for _, t := range tasks {
			if isClaimed(t, steps[t.Instruction.Ref]) {
				w.countBegun(t)
				w.start(ctx, t)
			} else {
				w.release(t)
			}
			w.unrecorded.add(t.Instruction.Ref, -1)
		}
	}()
}

// stepsOf reads the steps of tasks, however long the database is unavailable. It locks
// them, so that it does not read them before the commit that it asks about has ended. It
// returns nil if Close gives up.
func (w *Worker) stepsOf(ctx context.Context, tasks []*Task) (steps map[store.Ref]*store.Step) {
	refs := make([]store.Ref, len(tasks))
	for i, t := range tasks {
		refs[i] = t.Instruction.Ref
	}
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		err := w.update(ctx, func(tx *store.Tx) (err error) {
			defer recoverToError(&err)
			steps, err = tx.LockSteps(ctx, refs)
			return err
		})
		if err == nil {
			return steps
		}
		if pause == firstRetry {
			w.c.Log.Warn("claims with an unknown commit not looked up yet", "steps", len(tasks), "error", err)
		}
		select {
		case <-time.After(pause + rand.N(pause/4)):
		case <-w.unrecorded.stopped:
			w.c.Log.Error("claims with an unknown commit not looked up before shutdown: their sends may count as begun", "steps", len(tasks), "error", err)
			return nil
		}
	}
}

// isClaimed reports whether a step, nil if there is none, shows that a task's claim was
// committed. If another claim has taken it since, a send of the task must not begin: its
// lease is ended, so that the send is recorded as one that never left.
func isClaimed(t *Task, s *store.Step) bool {
	if s == nil || s.SendStartedAt != t.Step.SendStartedAt {
		return false
	}
	if s.LeaseVersion == t.Step.LeaseVersion && s.LeaseUntil == t.Step.LeaseUntil {
		return true
	}
	if t.Action != Submit {
		return false
	}
	t.leaseEnd = time.Now()
	return true
}
