package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"till"
	"till/store"
)

// A lane's longest due step is claimed first. A client with thousands of due steps, after
// an outage or by a flood, would delay all others. So steps of clients that are not at the
// lane's front are read separately, and clients take turns.

// minCrowdInterval is the least time between two reads beside a crowd. Such a read takes
// longer the more is due, so the pause is also at least crowdRest times the read's own
// time.
const (
	minCrowdInterval = 100 * time.Millisecond
	crowdRest        = 20
)

// crowd is the clients whose steps fill the front of a lane.
type crowd struct {
	clients []till.ID
	next    time.Time     // when to read beside them
	beside  []*store.Step // what was read, for the lane's next claim
}

// besideRead is a read of the steps behind the crowds of some lanes.
type besideRead struct {
	lanes   []string
	views   []store.LaneView
	limits  []int
	clients [][]till.ID

	steps []*store.Step
	took  time.Duration
	err   error
}

// dueBesideCrowd returns due steps of the clients behind a crowd, for each lane that has
// one, as they were read last. It waits for no read: one goes through all that is due, and
// other operators' steps would be late by as much. A claim notices a step that somebody has
// claimed since. The error is that of the last read.
func (w *Worker) dueBesideCrowd(ctx context.Context, lanes []string, limit int) (out []*store.Step, err error) {
	select {
	case r := <-w.besideDone:
		w.readsBeside = false
		err = r.err
		w.noteBeside(r)
	default:
	}
	w.readBesideCrowd(ctx, lanes, limit)
	for _, lane := range lanes {
		if c := w.crowds[lane]; c != nil {
			out, c.beside = append(out, c.beside...), nil
		}
	}
	return out, err
}

// readBesideCrowd begins to read behind the crowds whose pause is over. One such read runs
// at a time. It wakes the loop if it found something.
func (w *Worker) readBesideCrowd(ctx context.Context, lanes []string, limit int) {
	if w.readsBeside {
		return
	}
	r := &besideRead{}
	for i, v := range w.laneViews(lanes) {
		if c := w.crowds[lanes[i]]; c != nil && !time.Now().Before(c.next) {
			r.lanes, r.views, r.clients = append(r.lanes, lanes[i]), append(r.views, v), append(r.clients, c.clients)
		}
	}
	if len(r.lanes) == 0 {
		return
	}
	r.limits = w.limits(r.lanes, max(1, limit/2))
	w.readsBeside = true
	w.tasks.Go(func() {
		began := time.Now()
		r.steps, r.err = w.readBeside(ctx, r)
		r.took = time.Since(began)
		w.besideDone <- r
		if len(r.steps) > 0 {
			w.waker.Wake()
		}
	})
}

func (w *Worker) dueStepsBeside(ctx context.Context, r *besideRead) (out []*store.Step, err error) {
	defer recoverToError(&err)
	err = w.c.Store.ViewAll(ctx, func(tx *store.Tx) (err error) {
		out, err = tx.DueStepsBeside(ctx, r.views, r.limits, r.clients)
		return err
	})
	return out, err
}

// noteBeside keeps what was read for the lanes that still have a crowd. The steps of the
// others are read like all.
func (w *Worker) noteBeside(r *besideRead) {
	for _, lane := range r.lanes {
		if c := w.crowds[lane]; c != nil {
			c.beside, c.next = nil, time.Now().Add(max(minCrowdInterval, crowdRest*r.took))
		}
	}
	for _, s := range r.steps {
		if c := w.crowds[s.Lane]; c != nil {
			c.beside = append(c.beside, s)
		}
	}
}

// noteCrowds notes which lanes have a crowd: those that returned as many steps as the
// limit, so that more may be due.
func (w *Worker) noteCrowds(lanes []string, limits []int, steps []*store.Step) {
	for i, lane := range lanes {
		places := map[till.ID]int{}
		n := 0
		for _, s := range steps {
			if s.Lane == lane {
				places[s.ClientID]++
				n++
			}
		}
		if n < limits[i] {
			delete(w.crowds, lane)
			continue
		}
		clients := make([]till.ID, 0, len(places))
		for id := range places {
			clients = append(clients, id)
		}
		slices.SortFunc(clients, func(a, b till.ID) int { return cmp.Compare(places[b], places[a]) })
		clients = clients[:min(len(clients), store.MaxCrowd)]
		if c := w.crowds[lane]; c != nil {
			c.clients = clients
		} else {
			w.crowds[lane] = &crowd{clients: clients}
		}
	}
}

// inTurns orders steps so that clients take turns, each client's longest due step first.
// Each step appears once.
func inTurns(steps []*store.Step) []*store.Step {
	var clients []till.ID
	of := map[till.ID][]*store.Step{}
	seen := make(map[till.ID]bool, len(steps)) // ids are unique over all clients
	for _, s := range steps {
		if seen[s.SubjectID] {
			continue
		}
		seen[s.SubjectID] = true
		if of[s.ClientID] == nil {
			clients = append(clients, s.ClientID)
		}
		of[s.ClientID] = append(of[s.ClientID], s)
	}
	out := make([]*store.Step, 0, len(steps))
	for n := 0; len(out) < len(seen); n++ {
		for _, id := range clients {
			if n < len(of[id]) {
				out = append(out, of[id][n])
			}
		}
	}
	return out
}
