package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"till"
	"till/ledger"
	"till/provider"
	"till/store"
)

// A row that makes the program fail each time must not delay the others, and must not be
// tried for ever without anybody's knowledge. It is quarantined: a case is opened, and the
// row is tried ever more rarely, like an overdue one. The first answer that can be recorded
// ends the quarantine.

// maxFaults is how many faults of ours in a row quarantine their row.
const maxFaults = 3

var (
	errPanicked  = errors.New("engine: it panicked")
	errUnclaimed = errors.New("engine: the step could not be claimed")
)

// unrecordable is the error of the answer that is recorded instead of one that cannot be.
type unrecordable struct{ why string }

func (u *unrecordable) Error() string { return "engine: an answer cannot be recorded: " + u.why }

// recoverToError turns a panic into an error, for a function whose transaction an error
// rolls back.
func recoverToError(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("%w: %v\n%s", errPanicked, v, debug.Stack())
	}
}

// faultOf returns the recorded text of a fault of ours; "" if the error is none.
func faultOf(err error) string {
	var u *unrecordable
	switch {
	case err == nil:
	case errors.As(err, &u):
		return "the answer could not be recorded"
	case errors.Is(err, errUnclaimed):
		return "the step could not be claimed"
	case errors.Is(err, errPanicked):
		return "the call panicked"
	}
	return ""
}

// claimOneByOne claims due steps one by one, because one of them cannot be claimed and must
// not block the others.
func (w *Worker) claimOneByOne(ctx context.Context, lanes []string, limit int) ([]*Task, error) {
	var due []*store.Step
	err := w.c.Store.UpdateBackground(ctx, func(tx *store.Tx) (err error) {
		due, err = tx.DueSteps(ctx, w.laneViews(lanes), w.limits(lanes, limit))
		return err
	})
	tasks, failed := w.claimEach(ctx, lanes, due[:min(len(due), limit)])
	return tasks, errors.Join(err, failed)
}

// claimEach claims steps one by one.
func (w *Worker) claimEach(ctx context.Context, lanes []string, due []*store.Step) ([]*Task, error) {
	var tasks []*Task
	failures := make(map[*store.Step]error)
	for _, s := range due {
		one, failed := w.claimOf(ctx, lanes, func(*store.Tx) ([]*store.Step, error) { c := *s; return []*store.Step{&c}, nil })
		switch {
		case failed != nil && isUnavailable(failed):
			return tasks, failed
		case failed != nil:
			failures[s] = failed
		}
		tasks = append(tasks, one...)
	}
	if len(failures) > 1 && len(failures) == len(due) {
		return tasks, failures[due[0]] // the steps are not at fault
	}
	for s, failed := range failures {
		w.recordUnactionable(ctx, []*store.Step{s}, fmt.Errorf("%w: %w", errUnclaimed, failed))
	}
	return tasks, nil
}

// quarantine records that an answer cannot be recorded, with the answer's handle unless the
// handle is at fault. It reports whether that succeeded.
func (w *Worker) quarantine(ctx context.Context, a *Answer, fault error) bool {
	why := fault.Error()
	if errors.Is(fault, errPanicked) {
		why = "recording it panics; the log says where"
	}
	if errors.Is(fault, ledger.ErrBroken) { // a person needs to know what waits
		why = fmt.Sprintf("the operator says %s, receipt %q: %s", a.Result.Outcome, a.Result.Receipt, ledger.ErrBroken.Detail)
	}
	w.c.Log.Error("answer not recordable", w.kindName(), a.Ref.ID, "client", a.Ref.Client, "action", a.Action, "connection", a.Connection,
		"outcome", a.Result.Outcome, "receipt", a.Result.Receipt, "handle", a.Result.Handle, "error", fault.Error()) // as text: see logLost
	instead := Answer{
		Ref: a.Ref, Action: a.Action, Connection: a.Connection, Reference: a.Reference, LeaseVersion: a.LeaseVersion, WakeSeq: a.WakeSeq,
		Started: a.Started, Ended: a.Ended, Err: &unrecordable{provider.CleanText(why, provider.MaxMessage)},
	}
	if a.Action == Abandon {
		instead.Action = Check
	}
	handles := slices.Compact([]string{a.Result.Handle, ""})
	for _, handle := range handles {
		q := instead
		q.Result.Handle = handle
		w.subjects.Apply(ctx, []*Answer{&q})
		if q.storeErr == nil {
			return true
		}
		if isUnavailable(q.storeErr) {
			return false
		}
	}
	for _, handle := range handles {
		if w.setStepAside(ctx, &instead, handle) {
			return true
		}
	}
	return false
}

// setStepAside is the last resort if not even that can be recorded. It does not read the
// row, gives its step the longest pause, keeps its handle, and opens a case.
func (w *Worker) setStepAside(ctx context.Context, a *Answer, handle string) bool {
	err := w.c.Store.UpdateBackground(ctx, func(tx *store.Tx) error {
		wait := time.Hour
		if t, known := w.traits(a.Connection); known {
			wait = t.PollMax
		}
		return tx.SetAside(ctx, a.LeaseVersion, tx.Now().Add(wait), handle, &store.Case{
			ClientID: a.Ref.Client, ID: till.NewID(tx.Now()), SubjectID: a.Ref.ID, Kind: CaseQuarantined,
			Why: till.Because(till.ReasonFault, "nothing can be recorded about it: "+a.Err.(*unrecordable).why), OpenedAt: tx.Now(),
		})
	})
	if err != nil {
		w.c.Log.Error("step not set aside", w.kindName(), a.Ref.ID, "error", err)
	}
	return err == nil
}

// updateQuarantine quarantines a row because of a fault of ours, or ends its quarantine
// because an answer could be recorded.
func (b *Recording[R]) updateQuarantine(row R, a *Answer, t provider.Traits) {
	p, s := row.Subject(), b.Steps[a.Ref]
	if why := b.quarantineReason(a); why != "" {
		b.OpenCase(row, CaseQuarantined, till.Because(till.ReasonFault, why))
		b.NeedAttention(row)
		if s != nil && !p.Final && a.LeaseVersion == s.LeaseVersion && a.WakeSeq == s.WakeSeq {
			s.DueAt = b.Tx.Now().Add(backoff(s, t))
		}
		return
	}
	if called := a.Action == Submit || a.Action == Check; called && a.Err == nil && (*p.Attention || p.Final) {
		b.closed = append(b.closed, store.CaseClosure{Ref: p.Ref, By: "engine", At: b.Heads[p.Ref.Client].NextTime(),
			Kinds: []string{CaseQuarantined}, Why: till.Because(till.ReasonRecorded)})
		if s != nil && !p.Final && !Overdue(p.ExpiresAt, t, b.Tx.Now()) {
			s.BackoffSteps = 0
		}
	}
}

// quarantineReason returns why an answer quarantines its row; "" if it does not.
func (b *Recording[R]) quarantineReason(a *Answer) string {
	fault := faultOf(a.Err)
	if fault == "" {
		return ""
	}
	var u *unrecordable
	if errors.As(a.Err, &u) {
		return fault + ": " + u.why
	}
	times := 1
	if l := b.lastAttempts[a.Ref]; l != nil && l.Detail == fault {
		times += l.Repeats
	}
	if times < maxFaults {
		return ""
	}
	return fmt.Sprintf("%s, %d times in a row; the log says where", fault, times)
}
