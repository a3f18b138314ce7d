package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"till"
	"till/store"
)

// Of what is due in a lane the longest due is taken first. Where more is due than
// can be taken, a client with thousands of due steps would so keep all others
// waiting behind it: after an outage, or by a flood. So those who are not among the
// first of the lane are looked for beside it, and clients take turns.

// minCrowdInterval is the least time between two looks beside a crowd. They take
// longer the more is due, so there is also at least crowdRest times as much
// time between two as one has taken.
const (
	minCrowdInterval = 100 * time.Millisecond
	crowdRest        = 20
)

// crowd is the clients that have taken all the places of a lane.
type crowd struct {
	clients []till.ID
	next    time.Time // when to look beside them
}

// dueBesideCrowd reads due steps of those who wait behind a crowd, of each lane that has
// one. It is a read of its own: to go through all that is due takes long.
func (w *Worker) dueBesideCrowd(ctx context.Context, lanes []string, limit int) (out []*store.Step, err error) {
	var crowded []string
	var views []store.LaneView
	var clients [][]till.ID
	for i, v := range w.laneViews(lanes) {
		if c := w.crowds[lanes[i]]; c != nil && !time.Now().Before(c.next) {
			crowded, views, clients = append(crowded, lanes[i]), append(views, v), append(clients, c.clients)
		}
	}
	if len(crowded) == 0 {
		return nil, nil
	}
	began := time.Now()
	err = w.c.Store.View(ctx, func(tx *store.Tx) (err error) {
		out, err = tx.DueStepsBeside(ctx, views, w.limits(crowded, max(1, limit/2)), clients)
		return err
	})
	for _, lane := range crowded {
		w.crowds[lane].next = time.Now().Add(max(minCrowdInterval, crowdRest*time.Since(began)))
	}
	return out, err
}

// noteCrowds notes which lanes have a crowd: as many steps as were asked for, so
// that there may be more.
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

// inTurns returns steps so that clients take turns, each with its longest due
// first, and each step once.
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
