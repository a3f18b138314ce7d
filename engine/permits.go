package engine

import (
	"context"
	"slices"
	"time"

	"till"
	"till/store"
	"till/store/admin"
)

// claimPermits is what one claim may do, read under the locks of rows that all instances
// share. They are the transaction's first locks: breakers, then budgets, then steps.
type claimPermits struct {
	worker     *Worker
	now        till.Time
	takenSlots []string                  // connections of the slots taken
	breakers   map[string]*admin.Breaker // of connections that are not passing
	budgets    map[admin.Operation]*admin.Budget
	tokensLeft map[admin.Operation]int64
	probesLeft map[string]int // sends left for probing
	waits      map[string]time.Duration
	slotWaits  map[string]*slotWait // lanes with a step that found no slot
}

// claimPermits locks what a claim of some lanes may need: nothing, if no operator has a
// limit and all are healthy.
func (w *Worker) claimPermits(ctx context.Context, tx *store.Tx, lanes []string) (*claimPermits, error) {
	p := &claimPermits{
		worker: w, now: tx.Now(),
		tokensLeft: map[admin.Operation]int64{}, probesLeft: map[string]int{}, waits: map[string]time.Duration{}, slotWaits: map[string]*slotWait{},
	}
	var ill []string
	var limited []admin.Operation
	for _, name := range w.concerned(lanes) {
		if v := w.health.view(name); v != nil && v.state == admin.Probing {
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
		if b.State == admin.Probing && leaseLive(b, p.now) {
			p.probesLeft[name] = b.ProbesLeft
		}
	}
	if len(limited) > 0 {
		if p.budgets, err = admin.LockBudgets(ctx, tx, limited); err != nil {
			return nil, err
		}
	}
	for o, b := range p.budgets {
		refill(b, w.rates[o], p.now)
		p.tokensLeft[o] = b.Tokens / token
	}
	return p, nil
}

// concerned returns the connections of some lanes.
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

// allow reports whether a step may be acted on now. Otherwise the step stays due, and its
// lane's wait says for how long polling it is useless.
func (p *claimPermits) allow(t *Task) bool {
	w, name := p.worker, t.Instruction.Connection
	returned := w.slots.returned(name)
	if !w.slots.take(name) {
		p.slotWaits[t.seen.Lane] = &slotWait{name, returned}
		return false // a task that ends wakes the loop
	}
	if !p.within(t) {
		w.slots.put(name)
		return false
	}
	p.takenSlots = append(p.takenSlots, name)
	return true
}

// returnUnused returns the slots that no task uses.
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

// within reports whether the operator's health and budget allow the task.
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
			w.counts.operations[o].Short()
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

// save records what the claimed steps have used.
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
		if _, err := admin.SwapBreaker(ctx, tx, &b); err != nil { // the breaker is locked
			return err
		}
	}
	return admin.SaveBudgets(ctx, tx, p.budgets)
}
