package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
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
	// leaseEnd is when the lease ends on this process's monotonic clock. It is read before
	// the claim, so it is never too late.
	leaseEnd   time.Time
	fromCreate bool
	round      int64 // the round of probes that it belongs to; 0: none
}

// onlyFirstSend reports whether the first send is all that is recorded: it is being made
// now, or there was one lease, and the one call under it was the send.
func (t *Task) onlyFirstSend() bool {
	s := &t.seen
	return t.Step.Sends == 1 && s.Calls == s.Sends && s.LeaseVersion == int64(s.Calls)
}

// errLeaseOver says that the lease ended before the call began, because the database or
// this process was slow. Nothing was sent, and nothing is sent any more.
var errLeaseOver = fmt.Errorf("%w: the lease ended before the call began", provider.ErrNotSent)

// start acts on a claimed step in the background. A slot is held for it.
func (w *Worker) start(ctx context.Context, t *Task) {
	ctx = context.WithoutCancel(ctx) // calls under way finish when the worker stops
	if t.Action == Submit {
		w.recent.keep(t.Instruction.withoutCode())
	}
	w.tasks.Add(1)
	go func() {
		defer w.tasks.Done()
		defer w.release(t)
		defer func() {
			if v := recover(); v != nil {
				// The step's lease ends by itself; then the step is claimed again.
				w.c.Meter.Panicked("step")
				w.c.Log.Error("step panicked", w.kindName(), t.Instruction.Ref.ID, "panic", v, "stack", string(debug.Stack()))
			}
		}()
		w.record(ctx, w.act(ctx, t))
	}()
}

// release gives back the slot of a task that has ended and wakes the loop. Its step may be
// due soon, or another step may wait for the slot.
func (w *Worker) release(t *Task) {
	w.slots.put(t.Instruction.Connection)
	if t.fromCreate {
		<-w.createPermits
	}
	w.waker.Wake()
}

// act makes the call. If the lease ended before the call could begin, it does nothing: the
// step's new holder goes on.
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
		a.Started = t.Step.SendStartedAt // as the claim recorded it
	}
	ctx, cancel := context.WithDeadline(ctx, t.leaseEnd)
	defer cancel()
	if t.Action == Submit && w.kind == till.SubjectPayout {
		a.Err = w.checkHolds(ctx, j.Ref.Client)
	}
	if a.Err == nil {
		a.Err = mayCall(p, j, t.Action)
	}
	if !w.leaseHolds(t) {
		a.Err = errLeaseOver
	}
	if a.Err != nil {
		w.counted(j.Connection, t.Action).LeaseOver()
		a.Ended = w.c.Store.Now()
		w.c.Log.Warn("step not acted on", w.kindName(), j.Ref.ID, "error", a.Err)
		return a
	}
	began := time.Now() // without the database's time
	ctx, over := context.WithDeadline(ctx, began.Add(timeout))
	defer over()
	a.Result, a.Err = w.call(ctx, p, t)
	took := time.Since(began)
	w.health.record(j.Connection, t.Action, a.Err, took, t.round)
	a.Ended = w.c.Store.Now()
	w.called(t, a, took)
	return a
}

// errNoRefunds says that a refund that names its payment cannot be sent or asked about here.
// Sent like a payout, it could be paid twice.
var errNoRefunds = fmt.Errorf("%w: the connection cannot give back a payment by naming it", provider.ErrNotSent)

// mayCall returns nil if an instruction can be carried out as it was meant.
func mayCall(p provider.Provider, j *Instruction, action Action) error {
	if q := &j.Request; action == Submit && q.Code == "" && j.Noun == till.NounPayment && till.FlowOf(q.Method, q.Country, q.Amount.Currency) == till.FlowCode {
		return errNoCode
	}
	if _, can := p.(provider.Refunder); j.Road == till.RoadRefund && (!can || j.Request.Refund == nil) {
		return errNoRefunds
	}
	return nil
}

// call calls the operator. It cleans the answer, because every answer passes here. A panic
// of an adapter is an unknown answer.
func (w *Worker) call(ctx context.Context, p provider.Provider, t *Task) (r provider.Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			w.c.Meter.Panicked("call")
			w.c.Log.Error("operator call panicked", w.kindName(), t.Instruction.Ref.ID, "action", t.Action, "connection", t.Instruction.Connection,
				"panic", v, "stack", string(debug.Stack()))
			r, err = provider.Result{}, errPanicked
		}
	}()
	if q := &t.Instruction.Request; t.Action == Submit {
		r, err = p.Submit(ctx, *q)
	} else {
		r, err = p.Check(ctx, provider.Query{Client: q.Client, ID: q.ID, Reference: q.Reference, Method: q.Method, Country: q.Country,
			Phone: knownPhone(q.Phone), Amount: q.Amount, CallbackURL: q.CallbackURL, Refund: q.Refund, Handle: t.Step.Handle, CallbackBody: t.Step.CallbackBody})
	}
	if err == nil && !r.Outcome.Known() {
		err = fmt.Errorf("engine: the adapter returned the unknown outcome %q", provider.CleanText(string(r.Outcome), provider.MaxCode))
	}
	if err != nil {
		return provider.Result{}, err
	}
	r, changed := r.Clean()
	if len(changed) > 0 {
		w.c.Log.Warn("operator answer cleaned", w.kindName(), t.Instruction.Ref.ID, "action", t.Action,
			"connection", t.Instruction.Connection, "changed", changed)
	}
	if code := string(t.Instruction.Request.Code); code != "" { // an operator that repeats it
		r.Code, r.Message = strings.ReplaceAll(r.Code, code, "***"), strings.ReplaceAll(r.Message, code, "***")
	}
	return r, nil
}
