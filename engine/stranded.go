package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	"till"
	"till/store"
)

// Instances of one database may have different connections, for example while one is added
// or removed. An instance leaves a step without a connection as it is, for an instance that
// has it. If no instance has it, a case is opened. That changes neither when the step is
// due nor who may claim it.

const (
	// sharedFor is how long a lane counts as shared with another account after a step of
	// that account was read.
	sharedFor = time.Minute

	// noticePause is how often an instance checks for steps that no instance claims.
	noticePause = time.Minute
	// strandedAfter is how long a step must have been due, and its subject's window over,
	// before a case is opened: much longer than an instance with the connection needs.
	strandedAfter = time.Minute
	// maxNotices is how many cases are opened per lane at once.
	maxNotices = 100
)

// connectionOf returns the connection of a lane.
func connectionOf(lane string) string {
	name, _, _ := strings.Cut(lane, " ")
	return name
}

// noteShared notes that some of our lanes also have steps of another account. From now on
// polls skip them, because those that are longest due would hide ours.
func (w *Worker) noteShared(lanes []string) {
	for _, lane := range lanes {
		if w.sharedLanes[lane].IsZero() {
			w.c.Log.Warn("steps of another account skipped", "lane", lane)
		}
		w.sharedLanes[lane] = time.Now()
	}
}

// laneViews returns which steps of some lanes to read.
func (w *Worker) laneViews(lanes []string) []store.LaneView {
	out := make([]store.LaneView, len(lanes))
	for i, lane := range lanes {
		out[i].Lane, out[i].From = lane, w.floors.from[lane]
		if at, shared := w.sharedLanes[lane]; !shared {
			continue
		} else if time.Since(at) > sharedFor {
			delete(w.sharedLanes, lane)
			continue
		}
		out[i].Account = w.c.Connections[connectionOf(lane)].Fingerprint()
	}
	return out
}

// reportStranded checks from time to time for steps that no instance claims, and opens
// cases.
func (w *Worker) reportStranded(ctx context.Context) {
	if !w.strandedCheckedAt.IsZero() && time.Since(w.strandedCheckedAt) < noticePause {
		return
	}
	w.strandedCheckedAt = time.Now()
	var answers []*Answer
	err := w.c.Store.ViewAll(ctx, func(tx *store.Tx) error {
		lanes, err := tx.Lanes(ctx)
		if err != nil {
			return err
		}
		var views []store.LaneView
		for _, lane := range w.lanes {
			// Also one that was last read too long ago: the next poll may find it shared again.
			if _, shared := w.sharedLanes[lane]; !shared {
				continue
			}
			views = append(views, store.LaneView{Lane: lane, Account: w.c.Connections[connectionOf(lane)].Fingerprint()})
		}
		for _, lane := range lanes {
			if kindOf(lane) == w.kind && !slices.Contains(w.lanes, lane) {
				views = append(views, store.LaneView{Lane: lane})
			}
		}
		before := tx.Now().Add(-strandedAfter)
		for _, v := range views {
			refs, err := tx.Stranded(ctx, w.kind, v, before, before, maxNotices)
			if err != nil {
				return err
			}
			for _, ref := range refs {
				answers = append(answers, &Answer{Ref: ref, Action: Notice, Started: tx.Now(), Ended: tx.Now(), LeaseVersion: noVersion})
			}
		}
		return nil
	})
	if err == nil && len(answers) > 0 {
		w.subjects.Apply(ctx, answers)
	}
	for _, a := range answers {
		w.c.Log.Warn("step claimed by no instance", w.kindName(), a.Ref.ID, "error", a.RecordErr)
	}
	if err != nil && ctx.Err() == nil {
		w.c.Log.Error("stranded steps not read", "error", err)
	}
}

// noVersion is the lease version of an instance without a lease.
const noVersion = -1

// openStrandedCase opens a case for a row that no instance claims. Nothing else changes.
func (b *Recording[R]) openStrandedCase(row R, now till.Time) {
	if p := row.Subject(); !p.Final && now >= p.ExpiresAt.Add(strandedAfter) {
		b.ReopenCase(row, CaseOverdue, till.Because(till.ReasonStranded, p.Connection), *p.Attention)
		b.NeedAttention(row)
	}
}
