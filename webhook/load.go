package webhook

import (
	"context"

	"till"
	"till/store"
)

// limit returns how many may be sent in one window: a single one to an
// endpoint that only fails, a few while a backlog drains.
func (d *Deliverer) limit(e *store.Endpoint) int {
	switch {
	case e.Failures >= till.FailingAfter:
		return 1
	case e.DrainTo > 0:
		return min(drainRate, d.c.Window)
	}
	return d.c.Window
}

// minRead is how many events are read at least: those that the endpoint is
// not told about are passed over.
const minRead = 64

// load reads what the next window is made of.
func (d *Deliverer) load(ctx context.Context, e *store.Endpoint) (*window, error) {
	var w *window
	limit := d.limit(e)
	err := d.c.Store.View(ctx, func(tx *store.Tx) (err error) {
		m, now := &material{}, tx.Now()
		if !e.NextRetry.IsZero() && e.NextRetry <= now {
			if m.due, err = tx.DueDeliveries(ctx, e.Ref(), limit); err != nil {
				return err
			}
			if m.bodies, err = d.bodiesOf(ctx, tx, e, m.due); err != nil {
				return err
			}
		}
		if len(m.due) < limit {
			if m.events, err = d.eventsAfter(ctx, tx, e.ClientID, e.Cursor, max(limit, minRead)); err != nil {
				return err
			}
			if err = d.loadReplay(ctx, tx, e, m); err != nil {
				return err
			}
		}
		if !e.NextRetry.IsZero() {
			if m.open, err = tx.PendingOf(ctx, e.Ref(), m.subjects()); err != nil {
				return err
			}
		}
		w = plan(e, m, now, limit)
		return nil
	})
	return w, err
}

// subjects returns the payments that the material is about.
func (m *material) subjects() []till.ID {
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

// eventsAfter returns the events beyond a sequence, from memory if another
// endpoint of the client has just had them. A failover that lost commits gives
// sequences out a second time, so what is kept counts only if its last event
// is the one that the database has under that sequence: then all before it are.
func (d *Deliverer) eventsAfter(ctx context.Context, tx *store.Tx, client till.ID, sequence int64, limit int) ([]*body, error) {
	if kept := d.bodies.after(client, sequence, limit); len(kept) > 0 {
		last := kept[len(kept)-1]
		made, err := tx.EventMade(ctx, client, last.sequence)
		if err != nil || made == last.made {
			return kept, err
		}
		d.bodies.forget(client)
	}
	rows, err := tx.EventBodies(ctx, client, sequence, limit)
	if err != nil {
		return nil, err
	}
	out := make([]*body, len(rows))
	for i, e := range rows {
		out[i] = newBody(e)
	}
	d.bodies.keep(client, out)
	return out, nil
}

// readAhead reads what the next window will be made of while this one is
// sent.
func (d *Deliverer) readAhead(ctx context.Context, client till.ID, sequence int64) {
	err := d.c.Store.View(ctx, func(tx *store.Tx) error {
		_, err := d.eventsAfter(ctx, tx, client, sequence, d.c.Window)
		return err
	})
	if err != nil {
		d.c.Log.Debug("read ahead", "error", err) // the window reads for itself
	}
}

// bodiesOf returns what the rows are about.
func (d *Deliverer) bodiesOf(ctx context.Context, tx *store.Tx, e *store.Endpoint, rows []*store.Delivery) (map[int64]*body, error) {
	out := make(map[int64]*body, len(rows))
	var sequences []int64
	for _, r := range rows {
		if r.Kind != store.DeliverTest && out[r.Sequence] == nil {
			out[r.Sequence] = &body{}
			sequences = append(sequences, r.Sequence)
		}
	}
	events, err := tx.EventBodiesAt(ctx, e.ClientID, sequences)
	for _, ev := range events {
		out[ev.Sequence] = newBody(ev)
	}
	return out, err
}

// loadReplay reads the next piece of the oldest open replay.
func (d *Deliverer) loadReplay(ctx context.Context, tx *store.Tx, e *store.Endpoint, m *material) error {
	if e.ReplayAt.IsZero() || e.ReplayAt > tx.Now() || e.DrainTo > 0 {
		return nil
	}
	spans, err := tx.OpenSpans(ctx, e.Ref(), true, 1)
	if err != nil || len(spans) == 0 {
		return err
	}
	m.span = spans[0]
	rows, err := tx.EventBodies(ctx, e.ClientID, m.span.Next-1, int(min(minRead, m.span.To-m.span.Next+1)))
	for _, ev := range rows {
		m.replay = append(m.replay, newBody(ev))
	}
	return err
}
