package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"till"
	"till/store"
)

// On a distributed database a read over all clients is one for each part of the table, and
// it fails while any node is unreachable. So one question covers all lanes, lanes that are known to
// have more due are not asked about, and the loop rests between such reads. Due steps are
// read before the claim, not in it: a claim is a compare-and-swap. Each node's steps are
// claimed in a commit of their own, so that no node holds up another's clients (ADR 0071).

const (
	// distributedPollInterval is the default of Config.PollInterval there. Hints and known due
	// times cause earlier polls.
	distributedPollInterval = 1250 * time.Millisecond

	// readRest is how much longer than a read over all clients the loop rests after it, from
	// minReadRest up to maxReadRest. So reads take at most a quarter of the time.
	readRest    = 3
	minReadRest = 5 * time.Millisecond
	maxReadRest = time.Second
)

// spread is what the loop knows on a distributed database.
type spread struct {
	// known are the lanes with more due than could be taken, and since when the first of
	// that is due, at the earliest.
	known map[string]till.Time
	rest  time.Time // no read over all clients before

	claims map[int]int // for each node, the number of the last claim that took steps of it
	claim  int         // the last number
}

// byNode groups steps by node, and returns the nodes with the one first whose last steps
// were claimed longest ago. The first node may use up what an operator allows, so nodes take
// turns as clients do.
func (s *spread) byNode(steps []*store.Step, nodeOf func(client till.ID) int) (nodes []int, of map[int][]*store.Step) {
	of = map[int][]*store.Step{}
	for _, step := range steps {
		node := nodeOf(step.ClientID)
		if of[node] == nil {
			nodes = append(nodes, node)
		}
		of[node] = append(of[node], step)
	}
	slices.SortStableFunc(nodes, func(a, b int) int { return cmp.Compare(s.claims[a], s.claims[b]) })
	return nodes, of
}

// claimed notes that steps of a node were claimed.
func (s *spread) claimed(node int) {
	s.claim++
	s.claims[node] = s.claim
}

// resting returns how long the loop must rest before the next read over all clients.
func (w *Worker) resting() time.Duration { return time.Until(w.spread.rest) }

// rested notes that a read over all clients began at a moment and has ended.
func (w *Worker) rested(began time.Time) {
	w.spread.rest = time.Now().Add(min(max(readRest*time.Since(began), minReadRest), maxReadRest))
}

// nextDueTogether is nextDue with one question for all lanes.
func (w *Worker) nextDueTogether(ctx context.Context) ([]till.Time, error) {
	began := time.Now()
	defer w.rested(began)
	all := w.floors.since.IsZero() || time.Since(w.floors.since) >= floorPause
	times := make([]till.Time, len(w.lanes))
	var ask, pinned []store.LaneView
	var asked, pinnedAt []int
	for i, v := range w.laneViews(w.lanes) {
		since, known := w.spread.known[v.Lane]
		switch {
		case known:
			times[i] = since
		case v.Account != "":
			pinned, pinnedAt = append(pinned, v), append(pinnedAt, i)
		default:
			if all {
				v.From = 0
			}
			ask, asked = append(ask, v), append(asked, i)
		}
	}
	due, now, err := w.c.Store.DueLanes(ctx, ask, 2*w.c.PollInterval)
	if err != nil {
		return nil, err
	}
	for n, i := range asked {
		times[i] = due[n].Next
	}
	if all {
		w.setFloors(ask, due, now)
	}
	if len(pinned) > 0 {
		err = w.c.Store.ViewAll(ctx, func(tx *store.Tx) error {
			next, err := tx.NextDue(ctx, pinned)
			for n, i := range pinnedAt {
				if err == nil {
					times[i] = next[n]
				}
			}
			return err
		})
		if err != nil && !isUnavailable(err) {
			return nil, err
		}
	}
	if w.clock.setBack(now) {
		w.clockSetBack = true
	}
	w.counts.noteDue(w.lanes, times)
	return times, nil
}

// setFloors finds the floors of the lanes that were asked about; the others keep theirs.
func (w *Worker) setFloors(lanes []store.LaneView, due []store.LaneDue, now till.Time) {
	from := make(map[string]till.Time, len(w.lanes))
	for lane, at := range w.floors.from {
		from[lane] = min(at, now.Add(-floorSlack)) // also if the clock was set back
	}
	for i, v := range lanes {
		from[v.Lane] = now.Add(-floorSlack)
		if at := due[i].Earliest; !at.IsZero() {
			from[v.Lane] = min(from[v.Lane], at)
		}
	}
	w.floors = floors{from: from, at: now, since: time.Now()}
}

// claimByNode is claim with a commit for each node. If one fails, the steps of the other
// nodes are claimed all the same.
func (w *Worker) claimByNode(ctx context.Context, lanes []string, limit int) ([]*Task, error) {
	steps, err := w.dueOverAll(ctx, lanes, limit)
	if err != nil {
		return nil, err
	}
	nodes, of := w.spread.byNode(steps, func(client till.ID) int { return w.c.Store.Node(ctx, client) })
	var tasks []*Task
	var failed error
	for _, node := range nodes {
		var some []*Task
		err := w.c.Store.OnNode(ctx, node, func(ctx context.Context) error {
			more, err := w.claimOf(ctx, lanes, func(*store.Tx) ([]*store.Step, error) { return of[node], nil })
			if err != nil && !isUnavailable(err) {
				more, err = w.claimEach(ctx, lanes, of[node])
			}
			some = append(some, more...) // also of the run before, if it claimed some one by one
			return err
		})
		if err != nil {
			w.c.Log.Warn("steps of a node not claimed", "node", node, "steps", len(of[node]), "error", err)
			failed = err
		}
		if len(some) > 0 {
			w.spread.claimed(node)
		}
		tasks = append(tasks, some...)
	}
	if len(tasks) > 0 {
		failed = nil
	}
	return tasks, failed
}

// dueOverAll reads up to limit due steps, so that clients take turns.
func (w *Worker) dueOverAll(ctx context.Context, lanes []string, limit int) ([]*store.Step, error) {
	began := time.Now()
	defer w.rested(began)
	beside, err := w.dueBesideCrowd(ctx, lanes, limit)
	if err != nil && !isUnavailable(err) { // nothing can be read of an unreachable node
		return nil, err
	}
	limits := w.limits(lanes, limit)
	steps, err := w.c.Store.DueSteps(ctx, w.laneViews(lanes), limits)
	if err != nil {
		return nil, err
	}
	w.noteKnown(lanes, limits, steps)
	if w.noteCrowds(lanes, limits, steps); len(w.crowds) == 0 {
		return steps, nil
	}
	return inTurns(append(steps, beside...)), nil
}

// noteKnown notes which lanes returned as many steps as the limit: more may be due.
func (w *Worker) noteKnown(lanes []string, limits []int, steps []*store.Step) {
	for i, lane := range lanes {
		delete(w.spread.known, lane)
		n := 0
		for _, s := range steps { // longest due first
			if s.Lane != lane {
				continue
			}
			if n++; n >= limits[i] {
				w.spread.known[lane] = s.DueAt
			}
		}
	}
}

// noteWaiting notes that a lane waits although a step of it is due.
func (w *Worker) noteWaiting(lane string) {
	if _, known := w.spread.known[lane]; !known && w.c.Store.Distributed() {
		w.spread.known[lane] = w.c.Store.Now()
	}
}
