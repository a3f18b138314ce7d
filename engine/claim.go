package engine

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"till"
	"till/store"
)

// slotPause is how long a lane rests at least whose connection has as many
// calls under way as it may: a claim for each single slot that comes free would
// be waste. It rests until one is free: an operator that does not answer holds
// its slots for long, and to look at what is due there, again and again, would
// keep the others' steps waiting.
const slotPause = 5 * time.Millisecond

// wait says until when a lane is not looked at, because what is due in it
// must wait: for tokens, for its operator to answer again, or for a slot.
type laneWait struct {
	until   time.Time
	changes int64 // of health: any change ends the wait

	// Set where it waits for a slot: when one of the connection's has been given
	// back since, it waits no longer than rest.
	slot *slotWait
	rest time.Time
}

// fullness is that a connection had no slot left, after so many had been given
// back.
type slotWait struct {
	connection string
	returned   int64
}

// nextDue returns when the next step of each of our lanes can be taken. What waits
// in the lanes of connections that are not configured here is others'.
func (w *Worker) nextDue(ctx context.Context) (times []till.Time, err error) {
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
	return times, err
}

// splitDue sorts lanes into those to claim from now and when to look at the next;
// zero if at none.
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

// remaining returns how long a lane still waits.
func (w *Worker) remaining(wait *laneWait) time.Duration {
	switch {
	case wait.changes != w.health.changes.Load():
		return 0
	case wait.slot != nil && w.slots.returned(wait.slot.connection) != wait.slot.returned:
		return time.Until(wait.rest)
	}
	return time.Until(wait.until)
}

// poll claims what is due, as far as there are free slots, and starts it. It
// returns when to look again; a negative number if it could not find that out:
// then after Look, or when a call ends.
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
	w.reportStranded(ctx)
	now := w.c.Store.Now()
	times, err := w.nextDue(ctx)
	if err == nil && w.clockSetBack {
		if err = w.repairFuture(ctx); err == nil {
			w.clockSetBack = false
			return 0
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
			// Nothing could be taken. Lanes that must wait say for how long.
			if lanes, next = w.splitDue(times, now); len(lanes) == 0 && next > 0 {
				return next
			}
		}
	}
	if err != nil && ctx.Err() == nil {
		w.c.Log.Error("look for due steps", "error", err)
	}
	return -1
}

// claim takes up to limit due steps in one commit: for each, what to do is
// decided, the lease is taken and, if it is to be sent, that a send may have
// begun is written down.
func (w *Worker) claim(ctx context.Context, lanes []string, limit int) ([]*Task, error) {
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

// limits returns how many steps of each lane are worth reading: what is due at
// an operator that does not answer may be thousands, for one slot that came
// free. Of a lane that is full one is read, to find out.
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
	leaseEnd := time.Now().Add(Lease)
	err := w.c.Store.UpdateBackground(ctx, func(tx *store.Tx) (err error) {
		defer recoverToError(&err)
		tasks, others = nil, nil
		p.returnUnused(nil) // of a run before this one
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
				continue // an answer about it is about to be recorded
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
	if err != nil {
		p.returnUnused(nil)
		return nil, err
	}
	p.returnUnused(tasks)
	for lane, d := range p.waits {
		// Instances that came short together must not come back together.
		w.waits[lane] = laneWait{until: time.Now().Add(d + rand.N(d/4+1)), changes: changes}
	}
	for lane, f := range p.slotWaits {
		w.waits[lane] = laneWait{until: time.Now().Add(w.c.PollInterval), changes: changes, slot: f, rest: time.Now().Add(slotPause)}
	}
	w.noteShared(others)
	return tasks, nil
}

// load returns the jobs of steps, read where they are not remembered.
func (w *Worker) load(ctx context.Context, tx *store.Tx, steps []*store.Step) (map[store.Ref]*Instruction, error) {
	jobs, others := w.recent.find(steps)
	if len(others) == 0 {
		return jobs, nil
	}
	read, err := w.subjects.load(ctx, tx, others)
	maps.Copy(jobs, read)
	return jobs, err
}

// permits is what one claim may do, read under the locks of the rows that all
// instances share. They are the first locks of the transaction: breakers,
// then budgets, then steps.
type claimPermits struct {
	worker     *Worker
	now        till.Time
	takenSlots []string                  // slots, by connection
	breakers   map[string]*store.Breaker // of the connections that are not passing
	budgets    map[store.Operation]*store.Budget
	tokensLeft map[store.Operation]int64 // tokens
	probesLeft map[string]int            // sends that are left to probe with
	waits      map[string]time.Duration
	slotWaits  map[string]*slotWait // lanes in which something could not be taken for want of a slot
}

// claimPermits locks what the claim of some lanes may need: nothing, where no
// operator has a limit and all are well.
func (w *Worker) claimPermits(ctx context.Context, tx *store.Tx, lanes []string) (*claimPermits, error) {
	p := &claimPermits{
		worker: w, now: tx.Now(),
		tokensLeft: map[store.Operation]int64{}, probesLeft: map[string]int{}, waits: map[string]time.Duration{}, slotWaits: map[string]*slotWait{},
	}
	var ill []string
	var limited []store.Operation
	for _, name := range w.concerned(lanes) {
		if v := w.health.view(name); v != nil && v.state == store.Probing {
			ill = append(ill, name)
		}
		for _, action := range []Action{Check, Submit} {
			if o := w.operation(name, action); w.rates[o].PerSecond > 0 {
				limited = append(limited, o)
			}
		}
	}
	var err error
	if len(ill) > 0 {
		if p.breakers, err = w.lockBreakers(ctx, tx, ill); err != nil {
			return nil, err
		}
	}
	for name, b := range p.breakers {
		if b.State == store.Probing && leaseLive(b, p.now) {
			p.probesLeft[name] = b.ProbesLeft
		}
	}
	if len(limited) > 0 {
		if p.budgets, err = tx.LockBudgets(ctx, limited); err != nil {
			return nil, err
		}
	}
	for o, b := range p.budgets {
		refill(b, w.rates[o], p.now)
		p.tokensLeft[o] = b.Tokens / token
	}
	return p, nil
}

// concerned returns the connections that steps of some lanes are about.
func (w *Worker) concerned(lanes []string) []string {
	var out []string
	for name := range w.c.Connections {
		if slices.ContainsFunc(lanes, func(lane string) bool {
			return lane == w.lane(name, Submit) || lane == w.lane(name, Check)
		}) {
			out = append(out, name)
		}
	}
	return out
}

// allow answers whether a step may be acted on now. If not it is left as it
// is, due, and its lane says how long it is of no use to look at it.
func (p *claimPermits) allow(t *Task) bool {
	w, name := p.worker, t.Instruction.Connection
	returned := w.slots.returned(name)
	if !w.slots.take(name) {
		p.slotWaits[t.seen.Lane] = &slotWait{name, returned}
		return false // a task that ends wakes us
	}
	if !p.within(t) {
		w.slots.put(name)
		return false
	}
	p.takenSlots = append(p.takenSlots, name)
	return true
}

// returnUnused returns the slots that no task has come to use.
func (p *claimPermits) returnUnused(tasks []*Task) {
	if p == nil {
		return
	}
	for _, t := range tasks {
		i := slices.Index(p.takenSlots, t.Instruction.Connection)
		p.takenSlots = slices.Delete(p.takenSlots, i, i+1)
	}
	for _, name := range p.takenSlots {
		p.worker.slots.put(name)
	}
	p.takenSlots = nil
}

// within answers whether the operator's health and budget allow it.
func (p *claimPermits) within(t *Task) bool {
	w, name := p.worker, t.Instruction.Connection
	probe := t.Action == Submit && !w.health.passing(name)
	if probe && p.probesLeft[name] == 0 {
		w.health.requestProbe(name)
		p.delay(t, w.c.HealthInterval)
		return false
	}
	o := w.operation(name, t.Action)
	if rate := w.rates[o]; rate.PerSecond > 0 && t.Action.calls() {
		if p.tokensLeft[o] == 0 {
			p.delay(t, timeToToken(p.budgets[o], rate))
			return false
		}
		p.tokensLeft[o]--
	}
	if probe {
		p.probesLeft[name]--
		t.round = p.breakers[name].Round
	}
	return true
}

func (p *claimPermits) delay(t *Task, d time.Duration) {
	if old, ok := p.waits[t.seen.Lane]; !ok || d < old {
		p.waits[t.seen.Lane] = d
	}
}

// save writes down what the steps that were really taken have used.
func (p *claimPermits) save(ctx context.Context, tx *store.Tx, tasks []*Task) error {
	used := map[string]int{}
	for _, t := range tasks {
		if b := p.budgets[p.worker.operation(t.Instruction.Connection, t.Action)]; b != nil && t.Action.calls() {
			b.Tokens -= token
		}
		if t.round != 0 {
			used[t.Instruction.Connection]++
		}
	}
	for name, n := range used {
		b := *p.breakers[name]
		b.ProbesLeft -= n
		if _, err := tx.SwapBreaker(ctx, &b); err != nil { // it is locked
			return err
		}
	}
	return tx.SaveBudgets(ctx, p.budgets)
}
