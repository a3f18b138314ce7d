package webhook

import (
	"context"
	"time"

	"till"
	"till/store"
)

// clock notices that the database's clock was set back: it has gone on by less
// than the clock that nobody sets. What was written before would else wait until
// it has come there again.
type clockWatch struct {
	readAt time.Time // zero: never
	shown  till.Time
}

// wentBack takes note of what the database's clock shows, and reports whether it
// was set back since the last time. Whoever has just started takes it that it was.
func (c *clockWatch) wentBack(now till.Time) bool {
	back := c.readAt.IsZero() || now.Sub(c.shown) < time.Since(c.readAt)-store.ClockSlack
	c.readAt, c.shown = time.Now(), now
	return back
}

// repairFutureTimes brings back what a clock that was set back has left in the future. All
// instances do it: what one has mended the others find in order.
func (d *Dispatcher) repairFutureTimes(ctx context.Context) error {
	for after := (store.Ref{}); ; {
		var page []*store.Endpoint
		if err := d.c.Store.View(ctx, func(tx *store.Tx) (err error) {
			page, err = tx.EndpointsAhead(ctx, after, Lease, sweepPage)
			return err
		}); err != nil {
			return err
		}
		for _, e := range page {
			after = e.Ref()
			if err := d.c.Store.UpdateBackground(ctx, func(tx *store.Tx) error { return repairEndpointTimes(ctx, tx, e.Ref()) }); err != nil {
				return err
			}
		}
		if len(page) < sweepPage {
			return nil
		}
	}
}

// repairEndpointTimes moves what was written about an endpoint in a time that is still to
// come: each pause is as long as it was, from now on.
func repairEndpointTimes(ctx context.Context, tx *store.Tx, ref store.Ref) error {
	locked, _, err := tx.LockEndpoints(ctx, []store.Ref{ref}, nil)
	if err != nil || locked[ref] == nil {
		return err
	}
	e, now := locked[ref], tx.Now()
	lease, replay := min(e.LeaseUntil, now.Add(Lease)), min(e.ReplayAt, now.Add(drainPause))
	soon := now.Add(store.ClockSlack)
	rows, err := tx.PendingFrom(ctx, ref, soon)
	if err != nil {
		return err
	}
	for _, r := range rows {
		r.DueAt, r.UpdatedAt = max(now, now.Add(r.DueAt.Sub(r.UpdatedAt))), now
		if r.LeaseUntil > 0 {
			r.LeaseUntil = min(r.LeaseUntil, now.Add(Lease))
			r.DueAt = r.LeaseUntil
		}
	}
	if err := tx.SaveDeliveries(ctx, rows); err != nil {
		return err
	}
	written := len(rows) > 0 || e.FailingSince > soon || e.LastSuccessAt > soon
	if !written && lease == e.LeaseUntil && replay == e.ReplayAt {
		return nil // it waits for what is to come
	}
	if written { // so its pause was begun there too
		e.BlockedUntil = min(e.BlockedUntil, now.Add(maxProbe))
		e.FailingSince, e.LastSuccessAt = min(e.FailingSince, now), min(e.LastSuccessAt, now)
	}
	e.LeaseUntil, e.ReplayAt = lease, replay
	if e.NextRetry, err = tx.NextRetry(ctx, ref); err != nil {
		return err
	}
	return tx.SaveEndpoints(ctx, []*store.Endpoint{e})
}
