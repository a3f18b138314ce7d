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
type wait struct {
	until   time.Time
	changes int64 // of health: any change ends the wait

	// Set where it waits for a slot: when one of the connection's has been given
	// back since, it waits no longer than rest.
	slot *fullness
	rest time.Time
}

// fullness is that a connection had no slot left, after so many had been given
// back.
type fullness struct {
	connection string
	returned   int64
}

// look returns when the next step of each of our lanes can be taken. What waits
// in the lanes of connections that are not configured here is others'.
func (e *Worker) look(ctx context.Context) (times []till.Time, err error) {
	var now till.Time
	err = e.c.Store.View(ctx, func(tx *store.Tx) (err error) {
		if err = e.lookFrom(ctx, tx); err != nil {
			return err
		}
		times, err = tx.NextDue(ctx, e.views(e.known))
		now = tx.Now()
		return err
	})
	if err == nil && e.clock.setBack(now) {
		e.ahead = true
	}
	return times, err
}

// due sorts lanes into those to claim from now and when to look at the next;
// zero if at none.
func (e *Worker) due(times []till.Time, now till.Time) (lanes []string, next time.Duration) {
	for i, lane := range e.known {
		var left time.Duration
		if w, waits := e.waits[lane]; waits {
			if left = e.left(&w); left <= 0 {
				delete(e.waits, lane)
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

// left returns how long a lane still waits.
func (e *Worker) left(w *wait) time.Duration {
	switch {
	case w.changes != e.health.changes.Load():
		return 0
	case w.slot != nil && e.slots.returned(w.slot.connection) != w.slot.returned:
		return time.Until(w.rest)
	}
	return time.Until(w.until)
}

// step claims what is due, as far as there are free slots, and starts it. It
// returns when to look again; a negative number if it could not find that out:
// then after Look, or when a call ends.
func (e *Worker) step(ctx context.Context) time.Duration {
	free := e.slots.free()
	if free == 0 {
		return -1
	}
	if !e.health.ready() {
		if e.pulse(ctx); !e.health.ready() {
			return -1
		}
	}
	e.notice(ctx)
	now := e.c.Store.Now()
	times, err := e.look(ctx)
	if err == nil && e.ahead {
		if err = e.mend(ctx); err == nil {
			e.ahead = false
			return 0
		}
	}
	if err == nil {
		lanes, next := e.due(times, now)
		if len(lanes) == 0 {
			if next == 0 {
				return e.c.Look
			}
			return max(next, time.Millisecond)
		}
		var tasks []*Task
		shared := len(e.shared)
		tasks, err = e.claim(ctx, lanes, min(free, maxBatch))
		if err != nil && !isAway(err) {
			tasks, err = e.claimSingly(ctx, lanes, min(free, maxBatch))
		}
		for _, t := range tasks {
			e.start(ctx, t)
		}
		if err == nil && (len(tasks) > 0 || len(e.shared) > shared) {
			return 0
		}
		if err == nil {
			// Nothing could be taken. Lanes that must wait say for how long.
			if lanes, next = e.due(times, now); len(lanes) == 0 && next > 0 {
				return next
			}
		}
	}
	if err != nil && ctx.Err() == nil {
		e.c.Log.Error("look for due steps", "error", err)
	}
	return -1
}

// claim takes up to limit due steps in one commit: for each, what to do is
// decided, the lease is taken and, if it is to be sent, that a send may have
// begun is written down.
func (e *Worker) claim(ctx context.Context, lanes []string, limit int) ([]*Task, error) {
	beside, err := e.besides(ctx, lanes, limit)
	if err != nil {
		return nil, err
	}
	return e.claimOf(ctx, lanes, func(tx *store.Tx) ([]*store.Step, error) {
		limits := e.limits(lanes, limit)
		steps, err := tx.DueSteps(ctx, e.views(lanes), limits)
		if err != nil {
			return nil, err
		}
		if e.noteCrowds(lanes, limits, steps); len(e.crowds) == 0 {
			return steps, nil
		}
		return inTurns(append(steps, beside...)), nil
	})
}

// limits returns how many steps of each lane are worth reading: what is due at
// an operator that does not answer may be thousands, for one slot that came
// free. Of a lane that is full one is read, to find out.
func (e *Worker) limits(lanes []string, limit int) []int {
	out := make([]int, len(lanes))
	for i, lane := range lanes {
		out[i] = min(limit, max(1, e.slots.room(connectionOf(lane))))
	}
	return out
}

func (e *Worker) claimOf(ctx context.Context, lanes []string, find func(tx *store.Tx) ([]*store.Step, error)) ([]*Task, error) {
	var tasks []*Task
	var others []string
	var p *permits
	changes := e.health.changes.Load()
	leaseEnd := time.Now().Add(Lease)
	err := e.c.Store.UpdateBehind(ctx, func(tx *store.Tx) (err error) {
		defer caught(&err)
		tasks, others = nil, nil
		p.giveBack(nil) // of a run before this one
		if p, err = e.permits(ctx, tx, lanes); err != nil {
			return err
		}
		steps, err := find(tx)
		if err != nil {
			return err
		}
		jobs, err := e.load(ctx, tx, steps)
		if err != nil {
			return err
		}
		held, err := e.holding(ctx, tx, steps, jobs)
		if err != nil {
			return err
		}
		for _, s := range steps {
			ref := store.Ref{Client: s.ClientID, ID: s.SubjectID}
			if e.held.has(ref) {
				continue // an answer about it is about to be recorded
			}
			t := e.plan(s, jobs[ref], tx.Now(), held)
			if t == nil {
				others = append(others, s.Lane)
				continue
			}
			t.leaseEnd = leaseEnd
			if p.allow(t) {
				tasks = append(tasks, t)
			}
		}
		if tasks, err = e.take(ctx, tx, tasks); err != nil {
			return err
		}
		return p.save(ctx, tx, tasks)
	})
	if err != nil {
		p.giveBack(nil)
		return nil, err
	}
	p.giveBack(tasks)
	for lane, d := range p.waits {
		// Instances that came short together must not come back together.
		e.waits[lane] = wait{until: time.Now().Add(d + rand.N(d/4+1)), changes: changes}
	}
	for lane, f := range p.full {
		e.waits[lane] = wait{until: time.Now().Add(e.c.Look), changes: changes, slot: f, rest: time.Now().Add(slotPause)}
	}
	e.share(others)
	return tasks, nil
}

// load returns the jobs of steps, read where they are not remembered.
func (e *Worker) load(ctx context.Context, tx *store.Tx, steps []*store.Step) (map[store.Ref]*Job, error) {
	jobs, others := e.jobs.find(steps)
	if len(others) == 0 {
		return jobs, nil
	}
	read, err := e.subjects.load(ctx, tx, others)
	maps.Copy(jobs, read)
	return jobs, err
}

// permits is what one claim may do, read under the locks of the rows that all
// instances share. They are the first locks of the transaction: breakers,
// then budgets, then steps.
type permits struct {
	e        *Worker
	now      till.Time
	taken    []string                  // slots, by connection
	breakers map[string]*store.Breaker // of the connections that are not passing
	budgets  map[store.Operation]*store.Budget
	left     map[store.Operation]int64 // tokens
	probes   map[string]int            // sends that are left to probe with
	waits    map[string]time.Duration
	full     map[string]*fullness // lanes in which something could not be taken for want of a slot
}

// permits locks what the claim of some lanes may need: nothing, where no
// operator has a limit and all are well.
func (e *Worker) permits(ctx context.Context, tx *store.Tx, lanes []string) (*permits, error) {
	p := &permits{
		e: e, now: tx.Now(),
		left: map[store.Operation]int64{}, probes: map[string]int{}, waits: map[string]time.Duration{}, full: map[string]*fullness{},
	}
	var ill []string
	var limited []store.Operation
	for _, name := range e.concerned(lanes) {
		if v := e.health.view(name); v != nil && v.state == store.Probing {
			ill = append(ill, name)
		}
		for _, action := range []Action{Check, Submit} {
			if o := e.operation(name, action); e.rates[o].PerSecond > 0 {
				limited = append(limited, o)
			}
		}
	}
	var err error
	if len(ill) > 0 {
		if p.breakers, err = e.lockBreakers(ctx, tx, ill); err != nil {
			return nil, err
		}
	}
	for name, b := range p.breakers {
		if b.State == store.Probing && leaseLive(b, p.now) {
			p.probes[name] = b.ProbesLeft
		}
	}
	if len(limited) > 0 {
		if p.budgets, err = tx.LockBudgets(ctx, limited); err != nil {
			return nil, err
		}
	}
	for o, b := range p.budgets {
		refill(b, e.rates[o], p.now)
		p.left[o] = b.Tokens / token
	}
	return p, nil
}

// concerned returns the connections that steps of some lanes are about.
func (e *Worker) concerned(lanes []string) []string {
	var out []string
	for name := range e.c.Connections {
		if slices.ContainsFunc(lanes, func(lane string) bool {
			return lane == e.lane(name, Submit) || lane == e.lane(name, Check)
		}) {
			out = append(out, name)
		}
	}
	return out
}

// allow answers whether a step may be acted on now. If not it is left as it
// is, due, and its lane says how long it is of no use to look at it.
func (p *permits) allow(t *Task) bool {
	e, name := p.e, t.Job.Connection
	returned := e.slots.returned(name)
	if !e.slots.take(name) {
		p.full[t.seen.Lane] = &fullness{name, returned}
		return false // a task that ends wakes us
	}
	if !p.within(t) {
		e.slots.put(name)
		return false
	}
	p.taken = append(p.taken, name)
	return true
}

// giveBack returns the slots that no task has come to use.
func (p *permits) giveBack(tasks []*Task) {
	if p == nil {
		return
	}
	for _, t := range tasks {
		i := slices.Index(p.taken, t.Job.Connection)
		p.taken = slices.Delete(p.taken, i, i+1)
	}
	for _, name := range p.taken {
		p.e.slots.put(name)
	}
	p.taken = nil
}

// within answers whether the operator's health and budget allow it.
func (p *permits) within(t *Task) bool {
	e, name := p.e, t.Job.Connection
	probe := t.Action == Submit && !e.health.passing(name)
	if probe && p.probes[name] == 0 {
		e.health.want(name)
		p.delay(t, e.c.Pulse)
		return false
	}
	o := e.operation(name, t.Action)
	if rate := e.rates[o]; rate.PerSecond > 0 && t.Action.calls() {
		if p.left[o] == 0 {
			p.delay(t, shortfall(p.budgets[o], rate))
			return false
		}
		p.left[o]--
	}
	if probe {
		p.probes[name]--
		t.round = p.breakers[name].Round
	}
	return true
}

func (p *permits) delay(t *Task, d time.Duration) {
	if old, ok := p.waits[t.seen.Lane]; !ok || d < old {
		p.waits[t.seen.Lane] = d
	}
}

// save writes down what the steps that were really taken have used.
func (p *permits) save(ctx context.Context, tx *store.Tx, tasks []*Task) error {
	used := map[string]int{}
	for _, t := range tasks {
		if b := p.budgets[p.e.operation(t.Job.Connection, t.Action)]; b != nil && t.Action.calls() {
			b.Tokens -= token
		}
		if t.round != 0 {
			used[t.Job.Connection]++
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
