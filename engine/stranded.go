package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	"till"
	"till/store"
)

// Instances of one database need not be configured alike: while a connection is
// added or taken away they are not. What an instance has no connection for it
// leaves as it is, due, for one that has it. If nobody has, a person must be
// told; that changes nothing of when it is due and who may take it.

const (
	// sharedFor is how long a lane is taken for one in which also steps of another
	// account wait, after one was met there.
	sharedFor = time.Minute

	// noticePause is how often an instance looks for what nobody takes.
	noticePause = time.Minute
	// strandedAfter is how long a step must have been due, and its subject's time
	// must have been over, before a person is told that nobody takes it: much
	// longer than anybody who can needs to.
	strandedAfter = time.Minute
	// maxNotices is how many of a lane are told of at once.
	maxNotices = 100
)

// Notice is the action of whoever sees that nobody takes a step.
const Notice Action = "notice"

// connectionOf returns the connection whose lane it is.
func connectionOf(lane string) string {
	name, _, _ := strings.Cut(lane, " ")
	return name
}

// noteShared notes that steps of another account wait in some of our lanes: from now
// on we pass over them. Else those that are longest due would hide ours.
func (w *Worker) noteShared(lanes []string) {
	for _, lane := range lanes {
		if w.sharedLanes[lane].IsZero() {
			w.c.Log.Warn("steps of another account wait in a lane", "lane", lane)
		}
		w.sharedLanes[lane] = time.Now()
	}
}

// laneViews returns which steps of some of our lanes we look at.
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

// reportStranded looks, now and then, for what is not ours and nobody takes, and has a
// person look at it.
func (w *Worker) reportStranded(ctx context.Context) {
	if !w.strandedCheckedAt.IsZero() && time.Since(w.strandedCheckedAt) < noticePause {
		return
	}
	w.strandedCheckedAt = time.Now()
	var answers []*Answer
	err := w.c.Store.View(ctx, func(tx *store.Tx) error {
		lanes, err := tx.Lanes(ctx)
		if err != nil {
			return err
		}
		var views []store.LaneView
		for _, v := range w.laneViews(w.lanes) {
			if v.Account != "" {
				views = append(views, v)
			}
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
		w.c.Log.Warn("nobody takes a step", w.kindName(), a.Ref.ID, "error", a.RecordErr)
	}
	if err != nil && ctx.Err() == nil {
		w.c.Log.Error("look for steps that nobody takes", "error", err)
	}
}

// noVersion is the lease of whoever has none.
const noVersion = -1

// openStrandedCase has a person look at a row that nobody takes. Nothing else changes.
func (b *Recording[R]) openStrandedCase(row R, now till.Time) {
	if p := row.Subject(); !p.Final && now >= p.ExpiresAt.Add(strandedAfter) {
		b.ReopenCase(row, CaseOverdue, "its time is over, and no instance takes it: is the connection "+p.Connection+", with the account it was made with, configured anywhere?", *p.Attention)
		b.NeedAttention(row)
	}
}
