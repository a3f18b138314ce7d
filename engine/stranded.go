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

// share notes that steps of another account wait in some of our lanes: from now
// on we pass over them. Else those that are longest due would hide ours.
func (e *Worker) share(lanes []string) {
	for _, lane := range lanes {
		if e.shared[lane].IsZero() {
			e.c.Log.Warn("steps of another account wait in a lane", "lane", lane)
		}
		e.shared[lane] = time.Now()
	}
}

// views returns which steps of some of our lanes we look at.
func (e *Worker) views(lanes []string) []store.LaneView {
	out := make([]store.LaneView, len(lanes))
	for i, lane := range lanes {
		out[i].Lane, out[i].From = lane, e.floors.from[lane]
		if at, shared := e.shared[lane]; !shared {
			continue
		} else if time.Since(at) > sharedFor {
			delete(e.shared, lane)
			continue
		}
		out[i].Account = e.c.Connections[connectionOf(lane)].Fingerprint()
	}
	return out
}

// notice looks, now and then, for what is not ours and nobody takes, and has a
// person look at it.
func (e *Worker) notice(ctx context.Context) {
	if !e.noticed.IsZero() && time.Since(e.noticed) < noticePause {
		return
	}
	e.noticed = time.Now()
	var answers []*Answer
	err := e.c.Store.View(ctx, func(tx *store.Tx) error {
		lanes, err := tx.Lanes(ctx)
		if err != nil {
			return err
		}
		var views []store.LaneView
		for _, v := range e.views(e.known) {
			if v.Account != "" {
				views = append(views, v)
			}
		}
		for _, lane := range lanes {
			if kindOf(lane) == e.kind && !slices.Contains(e.known, lane) {
				views = append(views, store.LaneView{Lane: lane})
			}
		}
		before := tx.Now().Add(-strandedAfter)
		for _, v := range views {
			refs, err := tx.Stranded(ctx, e.kind, v, before, before, maxNotices)
			if err != nil {
				return err
			}
			for _, ref := range refs {
				answers = append(answers, &Answer{Ref: ref, Action: Notice, Started: tx.Now(), Ended: tx.Now(), Version: noVersion})
			}
		}
		return nil
	})
	if err == nil && len(answers) > 0 {
		e.subjects.Apply(ctx, answers)
	}
	for _, a := range answers {
		e.c.Log.Warn("nobody takes a step", e.kind, a.Ref.ID, "error", a.Refused)
	}
	if err != nil && ctx.Err() == nil {
		e.c.Log.Error("look for steps that nobody takes", "error", err)
	}
}

// noVersion is the lease of whoever has none.
const noVersion = -1

// stranded has a person look at a row that nobody takes. Nothing else changes.
func (b *Change[R]) stranded(row R, now till.Time) {
	if p := row.Subject(); !p.Final && now >= p.ExpiresAt.Add(strandedAfter) {
		b.Again(row, CaseOverdue, "its time is over, and no instance takes it: is the connection "+p.Connection+", with the account it was made with, configured anywhere?", *p.Attention)
		b.Attend(row)
	}
}
