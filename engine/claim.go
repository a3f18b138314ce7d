package engine

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"time"

	"till"
	"till/provider"
	"till/store"
)

// slotPause is the shortest pause of a lane whose connection has no free slot: a claim for
// each single slot would be waste. The lane waits until a slot is free. An operator that
// does not answer keeps its slots for long, and polling its due steps meanwhile would delay
// other lanes.
const slotPause = 5 * time.Millisecond

// laneWait says until when a lane is not polled, because its due steps must wait for
// tokens, for the operator to recover, or for a slot.
type laneWait struct {
	until   time.Time
	changes int64 // of health when the wait began; any change ends it

	// slot is set if the lane waits for a slot. A slot that was released since shortens the
	// wait to rest.
	slot *slotWait
	rest time.Time
}

// slotWait records that a connection had no free slot, and the release count at
// that time. A higher count ends the wait.
type slotWait struct {
	connection string
	returned   int64
}

// nextDue returns when the next step of each of our lanes can be claimed. Lanes of
// connections that are not configured here belong to other instances.
func (w *Worker) nextDue(ctx context.Context) (times []till.Time, err error) {
	if w.c.Store.Distributed() {
		return w.nextDueTogether(ctx)
	}
	var now till.Time
	err = w.c.Store.View(ctx, func(tx *store.Tx) (err error) {
		if err = w.refreshFloors(ctx, tx); err != nil {
			return err
		}
		times, err = tx.NextDue(ctx, w.laneViews(w.lanes))
		now = tx.Now()
		return err
	})
	if err == nil && w.clock.setBack(now) {
		w.clockSetBack = true
	}
	if err == nil {
		w.counts.noteDue(w.lanes, times)
	}
	return times, err
}

// splitDue returns the lanes to claim from now, and how long until the next is due; zero if
// none is.
func (w *Worker) splitDue(times []till.Time, now till.Time) (lanes []string, next time.Duration) {
	for i, lane := range w.lanes {
		var left time.Duration
		if wait, waits := w.waits[lane]; waits {
			if left = w.remaining(&wait); left <= 0 {
				delete(w.waits, lane)
			}
		}
		if times[i].IsZero() {
			continue
		}
		in := times[i].Sub(now)
		if left > 0 {
			in = max(in, left)
		}
		if in <= 0 {
			lanes = append(lanes, lane)
		} else if next == 0 || in < next {
			next = in
		}
	}
	return lanes, next
}

// remaining returns how much longer a lane waits.
func (w *Worker) remaining(wait *laneWait) time.Duration {
	switch {
	case wait.changes != w.health.changes.Load():
		return 0
	case wait.slot != nil && w.slots.returned(wait.slot.connection) != wait.slot.returned:
		return time.Until(wait.rest)
	}
	return time.Until(wait.until)
}

// poll claims due steps for which there are slots and starts them. It returns when to poll
// again, or a negative number if it could not find out: then after PollInterval, or when a
// call ends.
func (w *Worker) poll(ctx context.Context) time.Duration {
	free := w.slots.free()
	if free == 0 {
		return -1
	}
	if !w.health.ready() {
		if w.syncHealth(ctx); !w.health.ready() {
			return -1
		}
	}
	if d := w.resting(); d > 0 {
		return d
	}
	w.reportStranded(ctx)
	now := w.c.Store.Now()
	times, err := w.nextDue(ctx)
	if err == nil && w.clockSetBack {
		if err = w.repairFuture(ctx); err == nil {
			w.clockSetBack = false
			return 0
		}
		if w.c.Store.Distributed() && isUnavailable(err) {
			err = nil // a node is unreachable; the clients of the others go on, and the next poll tries again
		}
	}
	if err == nil {
		lanes, next := w.splitDue(times, now)
		if len(lanes) == 0 {
			if next == 0 {
				return w.c.PollInterval
			}
			return max(next, time.Millisecond)
		}
		var tasks []*Task
		shared := len(w.sharedLanes)
		tasks, err = w.claim(ctx, lanes, min(free, maxBatch))
		if err != nil && !isUnavailable(err) {
			tasks, err = w.claimOneByOne(ctx, lanes, min(free, maxBatch))
		}
		for _, t := range tasks {
			w.start(ctx, t)
		}
		if err == nil && (len(tasks) > 0 || len(w.sharedLanes) > shared) {
			return 0
		}
		if err == nil {
			// Nothing could be claimed. Lanes that must wait say for how long.
			if lanes, next = w.splitDue(times, now); len(lanes) == 0 && next > 0 {
				return next
			}
		}
	}
	if err != nil && ctx.Err() == nil {
		w.c.Log.Error("due steps not read", "error", err)
	}
	return -1
}

// claim takes up to limit due steps in one commit. For each step it decides what to do and
// takes the lease. For a send, it records that the send may have begun.
func (w *Worker) claim(ctx context.Context, lanes []string, limit int) ([]*Task, error) {
	if w.c.Store.Distributed() {
		return w.claimByNode(ctx, lanes, limit)
	}
	beside, err := w.dueBesideCrowd(ctx, lanes, limit)
	if err != nil {
		return nil, err
	}
	return w.claimOf(ctx, lanes, func(tx *store.Tx) ([]*store.Step, error) {
		limits := w.limits(lanes, limit)
		steps, err := tx.DueSteps(ctx, w.laneViews(lanes), limits)
		if err != nil {
			return nil, err
		}
		if w.noteCrowds(lanes, limits, steps); len(w.crowds) == 0 {
			return steps, nil
		}
		return inTurns(append(steps, beside...)), nil
	})
}

// limits returns how many steps of each lane to read. Thousands may be due at an operator
// that does not answer, for one free slot. Of a lane without a free slot one step is read,
// to find out.
func (w *Worker) limits(lanes []string, limit int) []int {
	out := make([]int, len(lanes))
	for i, lane := range lanes {
		out[i] = min(limit, max(1, w.slots.room(connectionOf(lane))))
	}
	return out
}

func (w *Worker) claimOf(ctx context.Context, lanes []string, find func(tx *store.Tx) ([]*store.Step, error)) ([]*Task, error) {
	var tasks []*Task
	var others []string
	var p *claimPermits
	changes := w.health.changes.Load()
	leaseEnd := time.Now().Add(w.c.Lease)
	err := w.update(ctx, func(tx *store.Tx) (err error) {
		defer recoverToError(&err)
		tasks, others = nil, nil
		p.returnUnused(nil) // of an earlier run of this transaction
		if p, err = w.claimPermits(ctx, tx, lanes); err != nil {
			return err
		}
		steps, err := find(tx)
		if err != nil {
			return err
		}
		jobs, err := w.load(ctx, tx, steps)
		if err != nil {
			return err
		}
		held, err := w.readHolds(ctx, tx, steps, jobs)
		if err != nil {
			return err
		}
		for _, s := range steps {
			ref := store.Ref{Client: s.ClientID, ID: s.SubjectID}
			if w.unrecorded.has(ref) {
				continue // its answer is about to be recorded
			}
			t := w.plan(s, jobs[ref], tx.Now(), held)
			if t == nil {
				others = append(others, s.Lane)
				continue
			}
			t.leaseEnd = leaseEnd
			if p.allow(t) {
				tasks = append(tasks, t)
			}
		}
		if tasks, err = w.claimSteps(ctx, tx, tasks); err != nil {
			return err
		}
		return p.save(ctx, tx, tasks)
	})
	if errors.Is(err, store.ErrUnknownCommit) {
		p.returnUnused(tasks)
		w.findClaims(tasks)
		return nil, err
	}
	if err != nil {
		p.returnUnused(nil)
		return nil, err
	}
	p.returnUnused(tasks)
	for lane, d := range p.waits {
		w.noteWaiting(lane)
		// Instances that ran short together must not come back together.
		w.waits[lane] = laneWait{until: time.Now().Add(d + rand.N(d/4+1)), changes: changes}
	}
	for lane, f := range p.slotWaits {
		w.noteWaiting(lane)
		w.waits[lane] = laneWait{until: time.Now().Add(w.c.PollInterval), changes: changes, slot: f, rest: time.Now().Add(slotPause)}
	}
	w.noteShared(others)
	for _, t := range tasks {
		w.countBegun(t)
	}
	return tasks, nil
}

// countBegun counts a call that is about to begin.
func (w *Worker) countBegun(t *Task) {
	if t.Action.calls() {
		w.counted(t.Instruction.Connection, t.Action).Begun(t.claimed.Sub(t.seen.DueAt))
	}
}

// load returns the instructions of steps, from the cache or the database.
func (w *Worker) load(ctx context.Context, tx *store.Tx, steps []*store.Step) (map[store.Ref]*Instruction, error) {
	jobs, others := w.recent.find(steps)
	if len(others) == 0 {
		return jobs, nil
	}
	read, err := w.subjects.load(ctx, tx, others)
	maps.Copy(jobs, read)
	return jobs, err
}

// plan decides what to do about one step. It returns nil if this instance cannot act on it.
func (w *Worker) plan(s *store.Step, j *Instruction, now till.Time, h heldClients) *Task {
	if j == nil {
		return nil
	}
	p := w.c.Connections[j.Connection]
	if p == nil || p.Fingerprint() != j.Fingerprint {
		return nil // its connection is not configured here
	}
	t := &Task{Instruction: j, Action: w.replaceIfHeld(Next(s, j, p.Traits(), now), s, j, h), Step: *s, seen: *s, claimed: now}
	t.Step.LeaseVersion++
	t.Step.LeaseUntil = now.Add(w.c.Lease)
	if t.Action == Submit {
		if !unsent(s) {
			t.Step.Sends = max(t.Step.Sends, 1) // also after a send that seemed to leave nothing
		}
		t.Step.Sends++
		t.Step.SendStartedAt, t.Step.SendDeadline, t.Step.NotFoundReads, t.Step.SentSeq = now, t.Step.LeaseUntil, 0, s.WakeSeq
	}
	return t
}

// claimSteps takes the leases of tasks and records the sends that may begin. A re-send gets
// a new window. It returns the tasks that no other instance claimed first.
func (w *Worker) claimSteps(ctx context.Context, tx *store.Tx, tasks []*Task) ([]*Task, error) {
	claims := make([]*store.Claim, len(tasks))
	for i, t := range tasks {
		claims[i] = &store.Claim{Step: t.Step, Seen: t.seen}
	}
	won, err := tx.ClaimSteps(ctx, claims)
	if err != nil {
		return nil, err
	}
	var mine []*Task
	var sends []*store.Attempt
	for i, t := range tasks {
		if !won[i] {
			continue
		}
		mine = append(mine, t)
		if t.Action != Submit {
			continue
		}
		sends = append(sends, w.sendAttempt(&t.Step, t.Instruction.Connection, t.Instruction.Request.Reference, t.seen.SendStartedAt == 0))
		if j := t.Instruction; t.Step.Sends > 1 {
			j.ExpiresAt = tx.Now().Add(j.Window)
			j.Request.ExpiresAt = j.ExpiresAt
			if err := w.subjects.extend(ctx, tx, j.Ref, j.ExpiresAt); err != nil {
				return nil, err
			}
		}
	}
	return mine, tx.InsertSends(ctx, sends)
}

// sendAttempt returns the attempt of a send that is about to begin. The first send takes
// the reference for its subject, even if it turns out not to have begun.
func (w *Worker) sendAttempt(s *store.Step, connection string, reference till.ID, first bool) *store.Attempt {
	a := &store.Attempt{ClientID: s.ClientID, SubjectID: s.SubjectID, Connection: connection,
		Reference: reference, StartedAt: s.SendStartedAt, First: first}
	// Where all callbacks come to one address, they must find their subject from the moment
	// that the operator can know of it.
	if _, called := w.c.Connections[connection].(provider.CallbackReader); called {
		a.LookupKind = s.Kind
	}
	return a
}
