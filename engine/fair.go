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
	next    time.Time // when to read beside them
}

// dueBesideCrowd reads due steps of the clients behind a crowd, for each lane that has one.
// It is a separate read, because it scans all that is due.
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
	err = w.c.Store.ViewAll(ctx, func(tx *store.Tx) (err error) {
		out, err = tx.DueStepsBeside(ctx, views, w.limits(crowded, max(1, limit/2)), clients)
		return err
	})
	for _, lane := range crowded {
		w.crowds[lane].next = time.Now().Add(max(minCrowdInterval, crowdRest*time.Since(began)))
	}
	return out, err
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
