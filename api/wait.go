package api

import (
	"context"
	"time"

	"till/store"
)

var waitQuery = []string{"wait"}

// readAndWait reads a payment or payout by read, which returns its status. With
// ?wait= it reads again until the status is another one, the time is over, the
// client has gone or the service stops. Between its reads it holds nothing of the
// database.
func (c *exchange) readAndWait(ref store.Ref, read func(ctx context.Context, tx *store.Tx) (status string, final bool, err error)) error {
	p := c.params()
	wait := time.Duration(p.number("wait", 0, 0, maxWait)) * time.Second
	if err := p.err(); err != nil {
		return err
	}
	var status string
	var final bool
	look := func() error {
		return c.view(func(ctx context.Context, tx *store.Tx) (err error) {
			status, final, err = read(ctx, tx)
			return err
		})
	}
	if err := look(); err != nil || wait == 0 || final {
		return err
	}
	leave, err := c.enter(c.s.waits)
	if err != nil {
		return err
	}
	defer leave()
	changed, stop := c.s.watches.Watch(ref)
	defer stop()
	over := time.NewTimer(wait)
	defer over.Stop()
	for first := status; ; {
		// What happened before the watch began is seen here, what happens later is notified.
		if err := look(); err != nil {
			return err
		}
		if status != first {
			return c.recheck()
		}
		select {
		case <-changed:
		case <-over.C:
			if err := look(); err != nil {
				return err
			}
			return c.recheck()
		case <-c.s.waits.stopping:
			return nil
		case <-c.r.Context().Done():
			return context.Cause(c.r.Context())
		}
	}
}
