package webhook

import (
	"context"
	"time"

	"till"
	"till/store"
	"till/store/webhooks"
)

// clockWatch notices that the database's clock was set back: the clock has advanced by less
// than the monotonic clock. Otherwise, what was written before would wait until the clock
// reaches that time again.
type clockWatch struct {
	readAt time.Time // zero: never
	shown  till.Time
}

// wentBack records the database's time and reports whether the clock was set back since the
// last call. The first call reports true.
func (c *clockWatch) wentBack(now till.Time) bool {
	back := c.readAt.IsZero() || now.Sub(c.shown) < time.Since(c.readAt)-store.ClockSlack
	c.readAt, c.shown = time.Now(), now
	return back
}

// repairFutureTimes repairs the times that are in the future after the clock was set back.
// All instances do it; the second finds nothing to repair.
func (d *Dispatcher) repairFutureTimes(ctx context.Context) error {
	for after := (store.Ref{}); ; {
		var page []*webhooks.Endpoint
		if err := d.c.Store.ViewAll(ctx, func(tx *store.Tx) (err error) {
			page, err = webhooks.EndpointsAhead(ctx, tx, after, Lease, sweepPage)
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

// repairEndpointTimes moves an endpoint's times out of the future. Each pause keeps its
// length and starts now.
func repairEndpointTimes(ctx context.Context, tx *store.Tx, ref store.Ref) error {
	locked, _, err := webhooks.LockEndpoints(ctx, tx, []store.Ref{ref}, nil)
	if err != nil || locked[ref] == nil {
		return err
	}
	e, now := locked[ref], tx.Now()
	lease, replay := min(e.LeaseUntil, now.Add(Lease)), min(e.ReplayAt, now.Add(drainPause))
	soon := now.Add(store.ClockSlack)
	rows, err := webhooks.PendingFrom(ctx, tx, ref, soon)
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
	if err := webhooks.SaveDeliveries(ctx, tx, rows); err != nil {
		return err
	}
	written := len(rows) > 0 || e.FailingSince > soon || e.LastSuccessAt > soon
	if !written && lease == e.LeaseUntil && replay == e.ReplayAt {
		return nil // the times are no further ahead than they may be
	}
	if written { // the pause was set by the same clock
		e.BlockedUntil = min(e.BlockedUntil, now.Add(maxProbe))
		e.FailingSince, e.LastSuccessAt = min(e.FailingSince, now), min(e.LastSuccessAt, now)
	}
	e.LeaseUntil, e.ReplayAt = lease, replay
	if e.NextRetry, err = webhooks.NextRetry(ctx, tx, ref); err != nil {
		return err
	}
	return webhooks.SaveEndpoints(ctx, tx, []*webhooks.Endpoint{e})
}
