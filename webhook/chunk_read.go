package webhook

import (
	"cmp"
	"context"
	"slices"

	"till"
	"till/store"
	"till/store/webhooks"
)

// chunkLimit returns how many items a chunk may have: one for a failing endpoint, a few
// while a backlog drains, and for an unproven endpoint the number that proves it.
func (d *Dispatcher) chunkLimit(e *webhooks.Endpoint) int {
	switch {
	case e.Failures >= till.FailingAfter:
		return 1
	case e.Answered < provenAfter:
		return min(provenAfter-e.Answered, d.c.ChunkSize)
	case e.ThrottleUntil > 0:
		return min(drainRate, d.c.ChunkSize)
	}
	return d.c.ChunkSize
}

// minRead is the least number of events to read at once. Events that the endpoint is not
// subscribed to are skipped.
const minRead = 64

// readChunk reads the next chunk, of about so many bytes.
func (d *Dispatcher) readChunk(ctx context.Context, e *webhooks.Endpoint, bytes int64) (*chunk, error) {
	var w *chunk
	limit := d.chunkLimit(e)
	err := d.c.Store.View(d.c.Store.Brief(ctx), func(tx *store.Tx) (err error) {
		m, now, left, cut := &chunkInput{}, tx.Now(), bytes, false
		tx.Weigh(weighUntil(&left))
		if !e.NextRetry.IsZero() && e.NextRetry <= now {
			if m.due, err = webhooks.DueDeliveries(ctx, tx, e.Ref(), limit); err != nil {
				return err
			}
			if cut, err = d.readDueBodies(ctx, tx, e, m, &left); err != nil {
				return err
			}
		}
		if len(m.due) < limit && !cut {
			if m.events, err = d.eventsAfter(ctx, tx, e.ClientID, e.Cursor, max(limit, minRead), &left); err != nil {
				return err
			}
			if err = d.readReplay(ctx, tx, e, m); err != nil {
				return err
			}
		}
		if !e.NextRetry.IsZero() {
			if m.open, err = webhooks.PendingForSubjects(ctx, tx, e.Ref(), m.subjects()); err != nil {
				return err
			}
		}
		w = planChunk(e, m, now, limit)
		return nil
	})
	return w, err
}

// weighUntil subtracts the bytes that are read from left, and stops the read at zero.
func weighUntil(left *int64) func(bytes int) error {
	return func(bytes int) error {
		if *left -= int64(bytes); *left <= 0 {
			return store.ErrEnough
		}
		return nil
	}
}

// subjects returns the payments and payouts of the chunk.
func (m *chunkInput) subjects() []till.ID {
	seen := make(map[till.ID]bool, len(m.due)+len(m.events))
	var out []till.ID
	add := func(id till.ID) {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	for _, r := range m.due {
		add(r.SubjectID)
	}
	for _, list := range [][]*body{m.events, m.replay} {
		for _, b := range list {
			add(b.subject)
		}
	}
	return out
}

// eventsAfter returns the events after a sequence: about as many bytes as are left, and at
// least one event. It takes them from the cache if another endpoint of the client has just
// read them.
//
// A failover that lost commits assigns sequences a second time. So cached events count only
// if the database has the last of them under the same sequence and time. Then it has all
// before it, too.
func (d *Dispatcher) eventsAfter(ctx context.Context, tx *store.Tx, client till.ID, sequence int64, limit int, left *int64) ([]*body, error) {
	if kept := d.bodyCache.after(client, sequence, limit, *left); len(kept) > 0 {
		last := kept[len(kept)-1]
		made, err := tx.EventMade(ctx, client, last.sequence)
		if err != nil || made == last.createdAt {
			*left -= weightOf(kept)
			return kept, err
		}
		d.bodyCache.forget(client)
	}
	rows, err := tx.EventBodies(ctx, client, sequence, limit)
	if err != nil {
		return nil, err
	}
	out := make([]*body, len(rows))
	for i, e := range rows {
		out[i] = newBody(e)
	}
	d.bodyCache.add(client, out)
	return out, nil
}

// readAhead caches the next chunk while this one is sent, if there is memory for it.
func (d *Dispatcher) readAhead(ctx context.Context, client till.ID, sequence int64) {
	r := &endpointWorker{}
	if !d.reserveMemory(client, r) {
		return
	}
	defer d.shrinkMemory(client, r, 0)
	left := d.growMemory(client, r)
	err := d.c.Store.View(d.c.Store.Brief(ctx), func(tx *store.Tx) error {
		tx.Weigh(weighUntil(&left))
		_, err := d.eventsAfter(ctx, tx, client, sequence, d.c.ChunkSize, &left)
		return err
	})
	if err != nil {
		d.c.Log.Debug("chunk not read ahead", "error", err) // the next chunk reads the events itself
	}
}

// readDueBodies reads the events of due deliveries. It drops the deliveries from the first
// one on for which the bytes did not suffice; a later chunk sends them.
func (d *Dispatcher) readDueBodies(ctx context.Context, tx *store.Tx, e *webhooks.Endpoint, m *chunkInput, left *int64) (cut bool, err error) {
	slices.SortStableFunc(m.due, func(a, b *webhooks.Delivery) int { return cmp.Compare(a.Sequence, b.Sequence) })
	if err := m.readDue(ctx, tx, e.ClientID); err != nil || *left > 0 {
		return false, err
	}
	all, n := len(m.due), 0
	for n < all && (m.due[n].Kind == webhooks.DeliverTest || m.bodies[m.due[n].Sequence].event != nil) {
		n++
	}
	m.due = m.due[:max(n, 1)]
	if n == 0 { // the database returned other rows first
		err = m.readDue(ctx, tx, e.ClientID)
	}
	return len(m.due) < all, err
}

func (m *chunkInput) readDue(ctx context.Context, tx *store.Tx, client till.ID) error {
	m.bodies = make(map[int64]*body, len(m.due))
	var sequences []int64
	for _, r := range m.due {
		if r.Kind != webhooks.DeliverTest && m.bodies[r.Sequence] == nil {
			m.bodies[r.Sequence] = &body{}
			sequences = append(sequences, r.Sequence)
		}
	}
	events, err := tx.EventBodiesAt(ctx, client, sequences)
	for _, ev := range events {
		m.bodies[ev.Sequence] = newBody(ev)
	}
	return err
}

// readReplay reads the next events of the oldest open replay.
func (d *Dispatcher) readReplay(ctx context.Context, tx *store.Tx, e *webhooks.Endpoint, m *chunkInput) error {
	if e.ReplayAt.IsZero() || e.ReplayAt > tx.Now() || e.ThrottleUntil > 0 {
		return nil
	}
	ranges, err := webhooks.OpenRanges(ctx, tx, e.Ref(), true, 1)
	if err != nil || len(ranges) == 0 {
		return err
	}
	m.logRange = ranges[0]
	rows, err := tx.EventBodies(ctx, e.ClientID, m.logRange.Next-1, int(min(minRead, m.logRange.To-m.logRange.Next+1)))
	for _, ev := range rows {
		m.replay = append(m.replay, newBody(ev))
	}
	return err
}
