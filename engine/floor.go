package engine

import (
	"context"
	"time"

	"till"
	"till/store"
)

// floors says from when on the steps of each lane are looked at. Steps move on
// all the time, and PostgreSQL keeps where they were in the index until it
// vacuums: without a floor each look goes through all of that, and looks get
// dearer as a run goes on. Once in floorPause a look goes without floors and
// finds them anew, so whatever lies below one waits that much longer at most.
type floors struct {
	from  map[string]till.Time
	at    till.Time // the database's time when they were found
	since time.Time // the same on our clock
}

const (
	floorPause = time.Second
	// floorSlack is how far below the earliest step, and below now, a floor is: a
	// step that is being committed was due when its transaction began.
	floorSlack = 5 * time.Second
)

// refreshFloors finds the floors anew if it is time, or if the clock was set back.
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
