package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"till"
	"till/provider"
	"till/store"
)

// Task is a claimed step, ready to be acted on.
type Task struct {
	Step        store.Step
	Instruction *Instruction
	Action      Action
	seen        store.Step // as it was before the claim
	claimed     till.Time  // by the database's clock
	// leaseEnd is when the lease ends on this process's own monotonic clock;
	// it was read before the claim, so it is never too late.
	leaseEnd   time.Time
	fromCreate bool
	round      int64 // of probes that it belongs to; 0: none
}

// onlyFirstSend reports whether the first send is all that is on record: it is just
// being made, or one lease was ever given, and the one call that ended under it
// was the send.
func (t *Task) onlyFirstSend() bool {
	s := &t.seen
	return t.Step.Sends == 1 && s.Calls == s.Sends && s.LeaseVersion == int64(s.Calls)
}

// errLeaseOver says that the right to send ran out before it was used: whoever
// waited longer than a lease for the database, or stood still, has sent nothing
// and sends nothing any more.
var errLeaseOver = fmt.Errorf("%w: the lease ended before the call began", provider.ErrNotSent)

// start acts on a claimed step in the background. A slot is held for it.
func (w *Worker) start(ctx context.Context, t *Task) {
	ctx = context.WithoutCancel(ctx) // a stop lets the calls under way finish
	if t.Action == Submit {
		w.recent.keep(t.Instruction)
	}
	w.tasks.Add(1)
	go func() {
		defer w.tasks.Done()
		defer w.release(t)
		defer func() {
			if v := recover(); v != nil {
				// The step's lease ends by itself and it is tried again.
				w.c.Log.Error("a step panicked", w.kindName(), t.Instruction.Ref.ID, "panic", v, "stack", string(debug.Stack()))
			}
		}()
		w.record(ctx, w.act(ctx, t))
	}()
}

// release gives back the slot of a task that has ended, and wakes the loop: its
// step may be due soon, or another may wait for the slot.
func (w *Worker) release(t *Task) {
	w.slots.put(t.Instruction.Connection)
	if t.fromCreate {
		<-w.createPermits
	}
	w.waker.Wake()
}

// act makes the call. If the lease was over before it could begin, nothing is
// done, and whoever holds the step now goes on.
func (w *Worker) act(ctx context.Context, t *Task) *Answer {
	j := t.Instruction
	a := &Answer{
		Ref: j.Ref, Action: t.Action, Connection: j.Connection, Reference: j.Request.Reference,
		LeaseVersion: t.Step.LeaseVersion, WakeSeq: t.Step.WakeSeq, Started: t.claimed, // never too late
		onlyFirstSend: t.onlyFirstSend(), cachedRow: j.Row,
	}
	if !t.Action.calls() {
		a.Ended = a.Started
		return a
	}
	p := w.c.Connections[j.Connection]
	timeout := p.Traits().CheckTimeout
	if t.Action == Submit {
		timeout = p.Traits().SubmitTimeout
		a.Started = t.Step.SendStartedAt // the row that was written before
	}
	ctx, cancel := context.WithDeadline(ctx, t.leaseEnd)
	defer cancel()
	if t.Action == Submit && w.kind == till.SubjectPayout {
		a.Err = w.checkHolds(ctx, j.Ref.Client)
	}
	if !w.leaseHolds(t) {
		a.Err = errLeaseOver
	}
	if a.Err != nil {
		a.Ended = w.c.Store.Now()
		w.c.Log.Warn("gave up a step", w.kindName(), j.Ref.ID, "error", a.Err)
		return a
	}
	began := time.Now() // what the database took is not the operator's time
	ctx, over := context.WithDeadline(ctx, began.Add(timeout))
	defer over()
	a.Result, a.Err = w.call(ctx, p, t)
	w.health.record(j.Connection, t.Action, a.Err, time.Since(began), t.round)
	a.Ended = w.c.Store.Now()
	w.c.Log.Debug("called an operator", w.kindName(), j.Ref.ID, "action", t.Action, "connection", j.Connection,
		"outcome", a.Result.Outcome, "error", a.Err, "took", a.Ended.Sub(a.Started))
	return a
}

// call calls the operator. What it says is cleaned here, where every answer
// passes, and a panic of an adapter is an answer that we do not know.
func (w *Worker) call(ctx context.Context, p provider.Provider, t *Task) (r provider.Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			w.c.Log.Error("a call to an operator panicked", w.kindName(), t.Instruction.Ref.ID, "action", t.Action, "connection", t.Instruction.Connection,
				"panic", v, "stack", string(debug.Stack()))
			r, err = provider.Result{}, errPanicked
		}
	}()
	if q := &t.Instruction.Request; t.Action == Submit {
		r, err = p.Submit(ctx, *q)
	} else {
		r, err = p.Check(ctx, provider.Query{Client: q.Client, ID: q.ID, Reference: q.Reference, Method: q.Method, Country: q.Country,
			Phone: q.Phone, Amount: q.Amount, CallbackURL: q.CallbackURL, Handle: t.Step.Handle, CallbackBody: t.Step.CallbackBody})
	}
	if err == nil && !r.Outcome.Known() {
		err = fmt.Errorf("engine: the adapter answers with the outcome %q, which is none", provider.CleanText(string(r.Outcome), provider.MaxCode))
	}
	if err != nil {
		return provider.Result{}, err
	}
	r, changed := r.Clean()
	if len(changed) > 0 {
		w.c.Log.Warn("an operator's answer holds text that cannot be kept as it is", w.kindName(), t.Instruction.Ref.ID, "action", t.Action,
			"connection", t.Instruction.Connection, "changed", changed)
	}
	return r, nil
}
