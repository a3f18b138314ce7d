package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"till"
	"till/store"
)

var eventQuery = []string{"after", "limit", "wait"}

// maxWait is how long a client may wait for events, in seconds. The answer must be written
// before the connection's write timeout.
const maxWait = 60

// eventPage is a part of the log that the key may read.
type eventPage struct {
	items []*store.EventRow
	next  int64   // the last sequence read, shown or not
	full  bool    // there may be more
	log   till.ID // which log this is
}

// listEvents is GET /events.
func (c *exchange) listEvents() error {
	p := c.params()
	after, limit := p.count("after"), int(p.number("limit", defaultLimit, 1, maxLimit))
	wait := time.Duration(p.number("wait", 0, 0, maxWait)) * time.Second
	if err := p.err(); err != nil {
		return err
	}
	page, err := c.readEvents(after, limit)
	if err == nil && wait > 0 && page.idle() {
		page, err = c.awaitEvents(page.next, limit, wait)
	}
	if err != nil {
		return err
	}
	b := appendItems(c.buffer(), page.items, func(b []byte, e *store.EventRow) []byte { return e.AppendJSON(b) })
	b = append(b, `,"next_after":`...)
	b = strconv.AppendInt(b, page.next, 10)
	b = append(b, `,"log_id":`...)
	return c.json(http.StatusOK, append(page.log.AppendJSON(b), '}'))
}

// idle reports whether there is nothing to answer yet. A full page that shows nothing is an
// answer: the client continues after it.
func (p *eventPage) idle() bool { return len(p.items) == 0 && !p.full }

// readEvents reads events after a sequence. A sequence that the log has not reached belongs
// to another history.
func (c *exchange) readEvents(after int64, limit int) (*eventPage, error) {
	page := &eventPage{next: after}
	client := c.session.Client.ID
	var rows []*store.EventRow
	err := c.view(func(ctx context.Context, tx *store.Tx) error {
		last, log, err := tx.LogEnd(ctx, client)
		if err != nil || last <= after {
			if page.log = log; err == nil && last < after {
				err = &till.Error{Code: till.CodeCursorAhead}
			}
			return err
		}
		page.log = log
		rows, err = tx.EventBodies(ctx, client, after, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	page.full = len(rows) == limit
	for _, e := range rows {
		page.next = e.Sequence
		if c.session.Key.Allows(e.Kind.Scope()) {
			page.items = append(page.items, e)
		}
	}
	return page, nil
}

// awaitEvents waits until the log has something to show after a sequence, the time is over,
// the client has gone or the service stops. Between two reads it holds nothing of the
// database.
func (c *exchange) awaitEvents(after int64, limit int, wait time.Duration) (*eventPage, error) {
	leave, err := c.enter(c.s.polls)
	if err != nil {
		return nil, err
	}
	defer leave()
	sub := c.s.Store.Subscribe(c.session.Client.ID)
	defer sub.Close()
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		page, err := c.readEvents(after, limit)
		if err != nil {
			return nil, err
		}
		if !page.idle() {
			return page, c.recheck()
		}
		after = page.next
		look := time.NewTimer(sub.MaxWait())
		select {
		case <-sub.C():
		case <-look.C:
		case <-over.C:
			return page, c.recheck()
		case <-c.s.polls.stopping:
			return page, nil
		case <-c.r.Context().Done():
			return nil, context.Cause(c.r.Context())
		}
		look.Stop()
	}
}

// enter takes a place among the long calls.
func (c *exchange) enter(p *inflight) (leave func(), err error) {
	c.waited = p != c.s.exports
	if leave, err = p.enter(c.session.Client.ID); till.ErrorCode(err) == till.CodeRateLimited {
		c.Header()["Retry-After"] = retryAfter
	}
	return leave, err
}

// recheck opens the session again after a long wait: a key that was revoked meanwhile reads
// nothing.
func (c *exchange) recheck() error {
	if err := c.authenticate(); err != nil {
		return err
	}
	return c.authorize()
}

// getEvent is GET /events/{event_id}. The id holds the event's sequence.
func (c *exchange) getEvent() error {
	missing := &till.Error{Code: till.CodeEventNotFound}
	id, err := till.ParseID(c.r.PathValue("event_id"))
	if err != nil {
		return missing
	}
	var rows []*store.EventRow
	err = c.view(func(ctx context.Context, tx *store.Tx) (err error) {
		rows, err = tx.EventBodies(ctx, c.session.Client.ID, id.EventSequence()-1, 1)
		return err
	})
	switch {
	case err != nil:
		return err
	case len(rows) == 0 || rows[0].ID() != id || !c.session.Key.Allows(rows[0].Kind.Scope()):
		return missing
	}
	return c.json(http.StatusOK, rows[0].AppendJSON(c.buffer()))
}

// listPaymentEvents is GET /payments/{payment_id}/events.
func (c *exchange) listPaymentEvents() error {
	ref, err := c.paymentRef()
	if err != nil {
		return err
	}
	return c.listEventsOf(func(ctx context.Context, tx *store.Tx) ([]*store.EventRow, error) { return tx.PaymentEvents(ctx, ref) })
}

// listEventsOf answers with the events of one payment or payout.
func (c *exchange) listEventsOf(read func(ctx context.Context, tx *store.Tx) ([]*store.EventRow, error)) error {
	var rows []*store.EventRow
	err := c.view(func(ctx context.Context, tx *store.Tx) (err error) {
		rows, err = read(ctx, tx)
		return err
	})
	if err != nil {
		return err
	}
	b := appendItems(c.buffer(), rows, func(b []byte, e *store.EventRow) []byte { return e.AppendJSON(b) })
	return c.json(http.StatusOK, append(b, '}'))
}
