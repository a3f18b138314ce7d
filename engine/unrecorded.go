package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"till/internal/batch"
	"till/store"
)

// How an answer is recorded while the database is unavailable. The answer is a
// fact, and may hold the only handle to check by. So it waits here until it is
// recorded, or until Close gives up.
//
// A waiting answer keeps its slot, and no call begins without a slot. So at most
// Config.Slots answers wait, and none is dropped. provider.Result.Clean bounds the
// text of each to some 2 KiB, and the cached row is released.
const (
	firstRetry = 100 * time.Millisecond // doubles up to
	lastRetry  = 2 * time.Second
	// maxRefusals is how often an answer is tried that the database refuses also
	// alone, before its row is quarantined.
	maxRefusals = 3
	// maxStuck is the same for one that finds the database away each time while
	// others are recorded.
	maxStuck = 10
)

// isUnavailable answers whether an error says nothing about what was to be written,
// only that it could not be written now.
func isUnavailable(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknownCommit) || errors.Is(err, batch.ErrFull)
}

// unrecorded are the subjects of the answers that wait to be recorded.
type unrecorded struct {
	mu       sync.Mutex
	refs     map[store.Ref]int
	recorded atomic.Int64 // answers, ever: that it moves shows that the database is there
	stopped  chan struct{}
	once     sync.Once
}

func (h *unrecorded) add(ref store.Ref, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refs == nil {
		h.refs = make(map[store.Ref]int)
	}
	if h.refs[ref] += n; h.refs[ref] == 0 {
		delete(h.refs, ref)
	}
}

// has reports whether an answer about a subject waits here: to ask again before
// it is recorded would be to ask without what it says.
func (h *unrecorded) has(ref store.Ref) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.refs[ref] > 0
}

// stop ends the waiting.
func (h *unrecorded) stop() { h.once.Do(func() { close(h.stopped) }) }

// record records an answer, however long the database is away. One that cannot
// be recorded though the database is there is quarantined with its row.
func (w *Worker) record(ctx context.Context, a *Answer) {
	err := w.answers.Do(ctx, a)
	if w.finished(a, err) {
		return
	}
	w.unrecorded.add(a.Ref, 1)
	defer w.unrecorded.add(a.Ref, -1)
	a.onlyFirstSend, a.cachedRow = false, nil // what was known then need not hold when it is recorded
	refusals, stuck, suspect := 0, 0, false
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		fault := recordFault(a, err)
		if !isUnavailable(fault) {
			refusals++
		}
		if refusals == maxRefusals || stuck == maxStuck {
			if w.quarantine(ctx, a, fault) {
				return
			}
			refusals, stuck = 0, 0
		}
		if pause == firstRetry {
			w.c.Log.Warn("an answer waits to be recorded", w.kindName(), a.Ref.ID, "action", a.Action, "error", fault)
		}
		seen := w.unrecorded.recorded.Load()
		select {
		case <-time.After(pause + rand.N(pause/4)):
		case <-w.unrecorded.stopped:
			w.logLost(a, fault)
			return
		}
		there := w.unrecorded.recorded.Load() != seen // others were recorded meanwhile
		if suspect {
			w.subjects.Apply(ctx, []*Answer{a}) // alone: it, or one beside it, may be what is at fault
			err = nil
		} else {
			err = w.answers.Do(ctx, a)
		}
		if w.finished(a, err) {
			return
		}
		if there && isUnavailable(recordFault(a, err)) {
			if suspect {
				stuck++
			}
			suspect = true
		}
	}
}

// recordFault returns why an answer was not recorded.
func recordFault(a *Answer, err error) error {
	if err != nil {
		return err
	}
	return a.storeErr
}

// finished reports whether nothing is left to do for an answer.
func (w *Worker) finished(a *Answer, err error) bool {
	switch {
	case errors.Is(err, batch.ErrClosed):
		w.logLost(a, err)
	case recordFault(a, err) != nil:
		return false
	case a.RecordErr != nil:
		w.c.Log.Error("record an answer", w.kindName(), a.Ref.ID, "action", a.Action, "error", a.RecordErr)
	default:
		w.unrecorded.recorded.Add(1)
	}
	return true
}

// logLost tells of an answer that is lost, with all that a person needs to go on
// from there.
func (w *Worker) logLost(a *Answer, err error) {
	w.c.Log.Error("an operator's answer is lost: it could not be recorded before the end", w.kindName(), a.Ref.ID, "client", a.Ref.Client,
		"action", a.Action, "connection", a.Connection, "outcome", a.Result.Outcome, "receipt", a.Result.Receipt, "handle", a.Result.Handle, "error", err)
}

// recordUnactionable records that nothing could be done about steps of ours. They are tried
// again later, out of the way of the others, and once their time is over a
// person is told.
func (w *Worker) recordUnactionable(ctx context.Context, steps []*store.Step, why error) {
	now := w.c.Store.Now()
	for _, s := range steps {
		w.c.Log.Warn("cannot act on a step", w.kindName(), s.SubjectID, "error", why)
		a := &Answer{Ref: store.Ref{Client: s.ClientID, ID: s.SubjectID}, Action: Check, LeaseVersion: s.LeaseVersion, WakeSeq: s.WakeSeq,
			Started: now, Ended: now, Err: why}
		err := w.answers.Do(ctx, a)
		if err == nil {
			err = a.RecordErr // with an error the batch may still be writing it
		}
		if err != nil {
			w.c.Log.Error("record that a step cannot be acted on", w.kindName(), s.SubjectID, "error", err)
		}
		if a.storeErr != nil && !isUnavailable(a.storeErr) {
			w.quarantine(ctx, a, a.storeErr)
		}
	}
	if len(steps) > 0 {
		w.waker.Wake() // to see when they are due again
	}
}
