package webhook

import (
	"context"
	"errors"

	"till"
	"till/store"
	"till/store/webhooks"
)

// recording is a batch of changes in one transaction.
type recording struct {
	ctx       context.Context
	tx        *store.Tx
	heads     map[till.ID]*store.Head
	endpoints map[store.Ref]*webhooks.Endpoint
	createdAt map[store.EventKey]till.Time // when the last events of the chunks were created, as the log has them now
	touched   map[store.Ref]bool
	events    []*till.Event
	cases     []*store.Case
	disabled  []*webhooks.Endpoint // by this commit, for the log
}

func (b *recording) apply(c *change) error {
	c.e, c.held = nil, false
	e := b.endpoints[c.ref]
	if e == nil {
		return nil // deleted meanwhile
	}
	now := b.tx.Now()
	if c.committed.version > 0 && c.committed == (committedLease{e.LeaseVersion, e.LeaseUntil}) {
		seen := *e // an earlier try committed it; only the answer to COMMIT was lost
		c.e, c.held = &seen, e.LeaseUntil > now
		return nil
	}
	switch c.kind {
	case claimChange:
		if !e.Free(now) || !e.Due(now) {
			return nil
		}
		b.setLease(c, e, true)
		return nil
	case lateChange:
		return b.recordLate(c, e)
	}
	if e.LeaseVersion != c.version {
		return b.recordDelivered(c, e)
	}
	return b.record(c, e)
}

// setLease gives the lease to the worker of the change, or ends it.
func (b *recording) setLease(c *change, e *webhooks.Endpoint, held bool) {
	e.LeaseVersion++
	e.LeaseUntil = 0
	if c.held = held; held {
		e.LeaseUntil = b.tx.Now().Add(Lease)
	}
	c.committed = committedLease{e.LeaseVersion, e.LeaseUntil}
	b.touched[c.ref] = true
	seen := *e
	c.e = &seen
}

// record writes a chunk's deliveries and moves the cursor.
func (b *recording) record(c *change, e *webhooks.Endpoint) error {
	now, res := b.tx.Now(), c.result
	if c.replaced = !b.matchesLog(c); c.replaced {
		// The log no longer has what was sent. The cursor stays, so that the events that
		// replaced it are sent.
		b.setLease(c, e, false)
		return nil
	}
	if err := b.saveRows(e, res.rows); err != nil {
		return err
	}
	if res.cursor > e.Cursor {
		e.Cursor, e.CursorAt = res.cursor, res.cursorAt
	}
	if err := b.advanceRange(c, e); err != nil {
		return err
	}
	if res.exhausted {
		b.exhausted(e)
	}
	if err := b.applyOutcomes(e, res.outcomes); err != nil {
		return err
	}
	if !e.Enabled { // perhaps disabled since this chunk began
		if err := webhooks.DisablePending(b.ctx, b.tx, e.Ref(), now); err != nil {
			return err
		}
	}
	if len(res.rows) > 0 || !e.NextRetry.IsZero() {
		if err := b.nextRetry(e); err != nil {
			return err
		}
	}
	b.throttle(c, e)
	b.setLease(c, e, !c.release && e.Enabled && e.BlockedUntil <= now && e.Due(now))
	return nil
}

// matchesLog reports whether the log still has the last events of a chunk. A failover that
// lost commits assigns sequences a second time: to move past them would skip new events for
// ever.
func (b *recording) matchesLog(c *change) bool {
	key := func(sequence int64) store.EventKey { return store.EventKey{Client: c.ref.Client, Sequence: sequence} }
	res := c.result
	return (res.cursorAt.IsZero() || b.createdAt[key(res.cursor)] == res.cursorAt) && (res.nextAt.IsZero() || b.createdAt[key(res.next-1)] == res.nextAt)
}

// throttle slows down the sending of a backlog until it has drained.
func (b *recording) throttle(c *change, e *webhooks.Endpoint) {
	now := b.tx.Now()
	switch {
	case e.ThrottleUntil == 0:
	case e.Cursor >= e.ThrottleUntil && (e.NextRetry.IsZero() || e.NextRetry > now):
		e.ThrottleUntil = 0
	case c.result.sent > 1: // the probe that showed the recovery does not count
		e.BlockedUntil = max(e.BlockedUntil, c.started.Add(drainPause))
	}
}

// saveRows writes the deliveries that a chunk leaves. It skips one that was requested again
// since the chunk was read.
func (b *recording) saveRows(e *webhooks.Endpoint, rows []leftover) error {
	var known []webhooks.DeliveryKey
	for _, l := range rows {
		if l.before != nil {
			known = append(known, l.before.Key())
		}
	}
	current, err := webhooks.DeliveriesByKey(b.ctx, b.tx, e.Ref(), known)
	if err != nil {
		return err
	}
	var save []*webhooks.Delivery
	for _, l := range rows {
		if l.before != nil {
			if now := current[l.before.Key()]; now == nil || now.ID != l.before.ID || now.Attempts != l.before.Attempts ||
				now.Status != webhooks.DeliveryPending && l.row.Status != webhooks.DeliveryDelivered {
				continue
			}
		}
		save = append(save, l.row)
	}
	return webhooks.SaveDeliveries(b.ctx, b.tx, save)
}

// advanceRange records how far a replay has come.
func (b *recording) advanceRange(c *change, e *webhooks.Endpoint) error {
	if c.logRange == nil {
		return nil
	}
	now, s := b.tx.Now(), *c.logRange
	s.Next = min(max(s.Next, c.result.next), s.To+1)
	e.ReplayAt = c.started.Add(drainPause)
	if s.Next > s.To {
		s.DoneAt = now
	}
	if err := webhooks.SaveRange(b.ctx, b.tx, &s); err != nil || s.DoneAt.IsZero() {
		return err
	}
	open, err := webhooks.OpenRanges(b.ctx, b.tx, e.Ref(), true, 1)
	if len(open) == 0 {
		e.ReplayAt = 0
	}
	return err
}

// applyOutcomes applies the attempts' outcomes to their endpoint.
func (b *recording) applyOutcomes(e *webhooks.Endpoint, outcomes []attemptOutcome) error {
	now := b.tx.Now()
	recovered, disable := evaluate(e, outcomes, now, jitter())
	switch {
	case disable != "" && e.Enabled && b.heads[e.ClientID] != nil:
		return b.disable(e, disable)
	case recovered:
		// It has recovered: everything is due, oldest first, at a limited rate.
		e.BlockedUntil, e.ThrottleUntil = 0, e.LastEvent
		return webhooks.RetryNow(b.ctx, b.tx, e.Ref(), now)
	}
	return nil
}

func (b *recording) nextRetry(e *webhooks.Endpoint) (err error) {
	e.NextRetry, err = webhooks.NextRetry(b.ctx, b.tx, e.Ref())
	return err
}

// recordLate records an attempt that its chunk did not wait for. It is a fact, whichever
// instance has the lease now.
func (b *recording) recordLate(c *change, e *webhooks.Endpoint) error {
	now, a := b.tx.Now(), c.item.outcome.response
	current, err := webhooks.DeliveriesByKey(b.ctx, b.tx, e.Ref(), []webhooks.DeliveryKey{c.row.Key()})
	if err != nil {
		return err
	}
	row := current[c.row.Key()]
	if row == nil || row.ID != c.row.ID || !a.Delivered() && (row.Attempts != c.row.Attempts || row.Status != webhooks.DeliveryPending) {
		return nil
	}
	if row.Attempts > c.row.Attempts && row.Last.SentAt == c.item.attempt.SentAt {
		return nil // an earlier try committed it; only the answer to COMMIT was lost
	}
	finishAttempt(row, c.item.attempt, a, now, jitter())
	if row.Status == webhooks.DeliveryExhausted {
		b.exhausted(e)
	}
	b.touched[c.ref] = true
	if err := errors.Join(webhooks.SaveDeliveries(b.ctx, b.tx, []*webhooks.Delivery{row}), webhooks.RetrySubjectNow(b.ctx, b.tx, e.Ref(), row.SubjectID, now)); err != nil {
		return err
	}
	if err := b.applyOutcomes(e, c.outcomes()); err != nil {
		return err
	}
	return b.nextRetry(e)
}

// recordDelivered records what a chunk delivered after it lost its lease. Only the lease's
// new holder may move the cursor.
func (b *recording) recordDelivered(c *change, e *webhooks.Endpoint) error {
	var keys []webhooks.DeliveryKey
	for _, l := range c.result.rows {
		if l.before != nil && l.row.Status == webhooks.DeliveryDelivered {
			keys = append(keys, l.before.Key())
		}
	}
	if keys == nil {
		return nil
	}
	current, err := webhooks.DeliveriesByKey(b.ctx, b.tx, e.Ref(), keys)
	if err != nil {
		return err
	}
	var save []*webhooks.Delivery
	for _, l := range c.result.rows {
		if now := current[l.row.Key()]; now != nil && now.ID == l.row.ID && l.row.Status == webhooks.DeliveryDelivered && now.Status != webhooks.DeliveryDelivered {
			save = append(save, l.row)
		}
	}
	b.touched[c.ref] = true
	if err := webhooks.SaveDeliveries(b.ctx, b.tx, save); err != nil {
		return err
	}
	return b.nextRetry(e)
}

// exhausted opens a case: an event has used up its attempts at this endpoint.
func (b *recording) exhausted(e *webhooks.Endpoint) {
	b.cases = append(b.cases, &store.Case{ClientID: e.ClientID, ID: till.NewID(b.tx.Now()), SubjectID: e.ID, Kind: CaseExhausted,
		Detail: "an event did not reach the endpoint in 12 attempts", OpenedAt: b.tx.Now()})
}

// disable disables an endpoint, writes the event about it and opens a case. Its pending
// deliveries are kept.
func (b *recording) disable(e *webhooks.Endpoint, why till.DisableReason) error {
	h := b.heads[e.ClientID]
	at := h.NextTime()
	e.Enabled, e.DisabledAt, e.DisableReason, e.UpdatedAt = false, at, why, at
	b.disabled = append(b.disabled, e)
	if err := webhooks.DisablePending(b.ctx, b.tx, e.Ref(), at); err != nil {
		return err
	}
	b.events = append(b.events, &till.Event{ClientID: e.ClientID, Sequence: h.NextEvent(), Kind: till.EndpointDisabled, SubjectID: e.ID, CreatedAt: at,
		Document: string(append(e.AppendJSON(nil), '}'))})
	detail := "the endpoint answered 410 Gone"
	if why == till.DisabledAsFailing {
		detail = "nothing has reached the endpoint since " + e.FailingSince.String()
	}
	b.cases = append(b.cases, &store.Case{ClientID: e.ClientID, ID: till.NewID(at), SubjectID: e.ID, Kind: CaseDisabled, Detail: detail, OpenedAt: at})
	return nil
}

// The kinds of cases about endpoints.
const (
	CaseExhausted = "endpoint_exhausted"
	CaseDisabled  = "endpoint_disabled"
)

func (b *recording) write() error {
	var save []*webhooks.Endpoint
	for ref, e := range b.endpoints {
		if b.touched[ref] {
			save = append(save, e)
		}
	}
	if err := webhooks.SaveEndpoints(b.ctx, b.tx, save); err != nil {
		return err
	}
	if len(b.cases) > 0 {
		if err := b.tx.OpenCases(b.ctx, b.cases); err != nil {
			return err
		}
	}
	if len(b.events) == 0 {
		return nil
	}
	if err := b.tx.InsertEvents(b.ctx, b.events); err != nil {
		return err
	}
	return b.tx.SaveHeads(b.ctx, b.heads)
}
