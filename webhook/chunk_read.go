package webhook

import (
	"cmp"
	"context"
	"slices"

	"till"
	"till/store"
)

// chunkLimit returns how many may be sent in one window: a single one to an
// endpoint that only fails, a few while a backlog drains, to one that is not
// proven as many as prove it.
func (d *Dispatcher) chunkLimit(e *store.Endpoint) int {
	switch {
	case e.Failures >= till.FailingAfter:
		return 1
	case e.Answered < ProvenAfter:
		return min(ProvenAfter-e.Answered, d.c.ChunkSize)
	case e.ThrottleUntil > 0:
		return min(drainRate, d.c.ChunkSize)
	}
	return d.c.ChunkSize
}

// minRead is how many events are read at least: those that the endpoint is
// not told about are passed over.
const minRead = 64

// readChunk reads what the next window is made of: about so many bytes.
func (d *Dispatcher) readChunk(ctx context.Context, e *store.Endpoint, bytes int64) (*chunk, error) {
	var w *chunk
	limit := d.chunkLimit(e)
	err := d.c.Store.View(ctx, func(tx *store.Tx) (err error) {
		m, now, left, cut := &chunkInput{}, tx.Now(), bytes, false
		tx.Weigh(weighUntil(&left))
		if !e.NextRetry.IsZero() && e.NextRetry <= now {
			if m.due, err = tx.DueDeliveries(ctx, e.Ref(), limit); err != nil {
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
			if m.open, err = tx.PendingForSubjects(ctx, e.Ref(), m.subjects()); err != nil {
				return err
			}
		}
		w = planChunk(e, m, now, limit)
		return nil
	})
	return w, err
}

// weighUntil weighs what is read until nothing is left.
func weighUntil(left *int64) func(bytes int) error {
	return func(bytes int) error {
		if *left -= int64(bytes); *left <= 0 {
			return store.ErrEnough
		}
		return nil
	}
}

// subjects returns the payments that the material is about.
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

// eventsAfter returns the events beyond a sequence, about as many bytes as are
// left and one at least, from memory if another
// endpoint of the client has just had them. A failover that lost commits gives
// sequences out a second time, so what is kept counts only if its last event
// is the one that the database has under that sequence: then all before it are.
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

// readAhead reads what the next window will be made of while this one is
// sent, if there is room for it.
func (d *Dispatcher) readAhead(ctx context.Context, client till.ID, sequence int64) {
	r := &endpointWorker{}
	if !d.reserveMemory(client, r) {
		return
	}
	defer d.shrinkMemory(client, r, 0)
	left := d.growMemory(client, r)
	err := d.c.Store.View(ctx, func(tx *store.Tx) error {
		tx.Weigh(weighUntil(&left))
		_, err := d.eventsAfter(ctx, tx, client, sequence, d.c.ChunkSize, &left)
		return err
	})
	if err != nil {
		d.c.Log.Debug("chunk not read ahead", "error", err) // the window reads for itself
	}
}

// readDueBodies reads what the due rows are about. The first of them are kept, up to
// one that found no room: it and those behind it are left for another window.
func (d *Dispatcher) readDueBodies(ctx context.Context, tx *store.Tx, e *store.Endpoint, m *chunkInput, left *int64) (cut bool, err error) {
	slices.SortStableFunc(m.due, func(a, b *store.Delivery) int { return cmp.Compare(a.Sequence, b.Sequence) })
	if err := m.readDue(ctx, tx, e.ClientID); err != nil || *left > 0 {
		return false, err
	}
	all, n := len(m.due), 0
	for n < all && (m.due[n].Kind == store.DeliverTest || m.bodies[m.due[n].Sequence].event != nil) {
		n++
	}
	m.due = m.due[:max(n, 1)]
	if n == 0 { // the database answered for others first
		err = m.readDue(ctx, tx, e.ClientID)
	}
	return len(m.due) < all, err
}

func (m *chunkInput) readDue(ctx context.Context, tx *store.Tx, client till.ID) error {
	m.bodies = make(map[int64]*body, len(m.due))
	var sequences []int64
	for _, r := range m.due {
		if r.Kind != store.DeliverTest && m.bodies[r.Sequence] == nil {
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

// readReplay reads the next piece of the oldest open replay.
func (d *Dispatcher) readReplay(ctx context.Context, tx *store.Tx, e *store.Endpoint, m *chunkInput) error {
	if e.ReplayAt.IsZero() || e.ReplayAt > tx.Now() || e.ThrottleUntil > 0 {
		return nil
	}
	ranges, err := tx.OpenRanges(ctx, e.Ref(), true, 1)
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
