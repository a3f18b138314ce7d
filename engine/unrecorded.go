package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
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
	// maxRefusals is how often the database may reject an answer on its own before its row
	// is quarantined.
	maxRefusals = 3
	// maxStuck is the same for an answer that finds the database unavailable each time
	// while others are recorded.
	maxStuck = 10
)

// isUnavailable reports whether an error only says that nothing can be written now, and
// nothing about the data.
func isUnavailable(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknownCommit) || errors.Is(err, batch.ErrFull)
}

// unrecorded holds the subjects whose answers wait to be recorded.
type unrecorded struct {
	mu       sync.Mutex
	refs     map[store.Ref]int
	recorded map[int]int64 // answers recorded so far, by node; if it grows, the node is available
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

// count counts an answer that a node has recorded.
func (h *unrecorded) count(node int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.recorded == nil {
		h.recorded = make(map[int]int64)
	}
	h.recorded[node]++
}

// recordedBy returns how many answers a node has recorded.
func (h *unrecorded) recordedBy(node int) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.recorded[node]
}

// has reports whether a subject's answer waits here. A check before it is recorded would
// lack what it says.
func (h *unrecorded) has(ref store.Ref) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.refs[ref] > 0
}

// stop ends all waiting.
func (h *unrecorded) stop() { h.once.Do(func() { close(h.stopped) }) }

// record records an answer, however long the database is unavailable. If it cannot be
// recorded although the database is available, its row is quarantined.
func (w *Worker) record(ctx context.Context, a *Answer) {
	err := w.answers.Do(ctx, a)
	if w.finished(ctx, a, err) {
		return
	}
	w.unrecorded.add(a.Ref, 1)
	defer w.unrecorded.add(a.Ref, -1)
	a.onlyFirstSend, a.cachedRow = false, nil // these may no longer be true when it is recorded
	refusals, stuck, suspect := 0, 0, false
	node := w.c.Store.Node(ctx, a.Ref.Client)
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
			w.c.Log.Warn("answer not recorded yet", w.kindName(), a.Ref.ID, "action", a.Action, "error", fault)
		}
		seen := w.unrecorded.recordedBy(node)
		select {
		case <-time.After(pause + rand.N(pause/4)):
		case <-w.unrecorded.stopped:
			w.logLost(a, fault)
			return
		}
		there := w.unrecorded.recordedBy(node) != seen // others were recorded meanwhile
		if suspect {
			w.subjects.Apply(ctx, []*Answer{a}) // alone: this answer, or another of its batch, may be at fault
			err = nil
		} else {
			err = w.answers.Do(ctx, a)
		}
		if w.finished(ctx, a, err) {
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
func (w *Worker) finished(ctx context.Context, a *Answer, err error) bool {
	switch {
	case errors.Is(err, batch.ErrClosed):
		w.logLost(a, err)
	case recordFault(a, err) != nil:
		return false
	case a.RecordErr != nil:
		w.c.Log.Error("answer not recorded", w.kindName(), a.Ref.ID, "action", a.Action, "error", a.RecordErr)
	default:
		w.unrecorded.count(w.c.Store.Node(ctx, a.Ref.Client))
	}
	return true
}

// logLost logs a lost answer with all that a person needs to continue. The error is text:
// lines with an error of the database as a value are counted together.
func (w *Worker) logLost(a *Answer, err error) {
	w.c.Log.Error("operator answer lost, not recorded before shutdown", w.kindName(), a.Ref.ID, "client", a.Ref.Client,
		"action", a.Action, "connection", a.Connection, "outcome", a.Result.Outcome, "receipt", a.Result.Receipt, "handle", a.Result.Handle, "error", err.Error())
}

// recordUnactionable records that nothing could be done about steps of ours. They are tried
// again later, after the others. Once their window is over, a case is opened.
func (w *Worker) recordUnactionable(ctx context.Context, steps []*store.Step, why error) {
	now := w.c.Store.Now()
	for _, s := range steps {
		w.c.Log.Warn("step not actionable", w.kindName(), s.SubjectID, "error", why)
		a := &Answer{Ref: store.Ref{Client: s.ClientID, ID: s.SubjectID}, Action: Check, LeaseVersion: s.LeaseVersion, WakeSeq: s.WakeSeq,
			Started: now, Ended: now, Err: why}
		err := w.answers.Do(ctx, a)
		if err == nil {
			err = a.RecordErr // after an error the batch may still be writing it
		}
		if err != nil {
			w.c.Log.Error("unactionable step not recorded", w.kindName(), s.SubjectID, "error", err)
		}
		if a.storeErr != nil && !isUnavailable(a.storeErr) {
			w.quarantine(ctx, a, a.storeErr)
		}
	}
	if len(steps) > 0 {
		w.waker.Wake() // to poll when they are due again
	}
}
