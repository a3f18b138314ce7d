package engine

import (
	"context"
	"time"

	"till"
	"till/store"
)

// floors says from which due time on each lane's steps are read. Steps move on all the
// time, and PostgreSQL keeps their old places in the index until it vacuums. Without a
// floor, each poll reads through all of these and gets slower over time. Once per
// floorPause a poll reads without floors and finds them again. So a step below a floor
// waits no longer than that.
type floors struct {
	from  map[string]till.Time
	at    till.Time // the database's time when they were found
	since time.Time // the same on our clock
}

const (
	floorPause = time.Second
	// floorSlack is how far below the earliest step, and below now, a floor is. A step that
	// is being committed was due when its transaction began.
	floorSlack = 5 * time.Second
)

// refreshFloors finds the floors again if it is time, or if the clock was set back.
func (w *Worker) refreshFloors(ctx context.Context, tx *store.Tx) error {
	f := &w.floors
	if !w.c.Store.Shared() || tx.Now() >= f.at && !f.since.IsZero() && time.Since(f.since) < floorPause {
		return nil
	}
	earliest, err := tx.EarliestDue(ctx, w.lanes)
	if err != nil {
		return err
	}
	from := make(map[string]till.Time, len(w.lanes))
	for i, lane := range w.lanes {
		from[lane] = tx.Now().Add(-floorSlack)
		if at := earliest[i]; !at.IsZero() {
			from[lane] = min(from[lane], at)
		}
	}
	*f = floors{from: from, at: tx.Now(), since: time.Now()}
	return nil
}
