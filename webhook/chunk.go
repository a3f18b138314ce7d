package webhook

import (
	"cmp"
	"slices"

	"till"
	"till/store/webhooks"
)

// chunkItem is one delivery in a chunk.
type chunkItem struct {
	webhooks.DeliveryKey
	subject till.ID
	body    *body
	row     *webhooks.Delivery // nil: an event beyond the cursor, or of a replay
	replay  bool               // of the chunk's range

	state    chunkItemState
	attempt  webhooks.DeliveryAttempt
	outcome  attemptOutcome
	waitsFor till.Time // an older event of its subject is being sent until then
}

type chunkItemState int

const (
	waiting chunkItemState = iota
	sending
	ended
)

// requested reports whether a person or the client requested the delivery. Such a delivery
// neither supersedes others nor is superseded.
func (it *chunkItem) requested() bool { return it.Kind != webhooks.DeliverEvent }

// supersedes reports whether the delivery makes older events of its subject needless. A
// late receipt (payment.updated) does not: some endpoints learn the outcome only from the
// event of the final status.
func (it *chunkItem) supersedes() bool {
	return !it.requested() && (it.body == nil || it.body.kind != till.PaymentUpdated)
}

// chunk is what is sent to an endpoint under one lease.
type chunk struct {
	e             *webhooks.Endpoint
	logRange      *webhooks.LogRange // the replay in progress; nil: none
	orderedGroups [][]*chunkItem     // one group per subject; the items of a group are sent in order, one at a time
	items         []*chunkItem       // in the order in which they begin
	open          []*webhooks.Delivery

	to, rangeTo int64 // the last event that was read, of the log and of the range

	createdAt map[int64]till.Time // when each event that was read was created
}

// weight returns about how many bytes the bodies of a chunk take.
func (w *chunk) weight() (bytes int64) {
	for _, it := range w.items {
		if it.body != nil {
			bytes += it.body.weight
		}
	}
	return bytes
}

func weightOf(all []*body) (bytes int64) {
	for _, b := range all {
		bytes += b.weight
	}
	return bytes
}

// chunkInput is what a chunk is planned from.
type chunkInput struct {
	due      []*webhooks.Delivery // deliveries that are due
	bodies   map[int64]*body      // the events of due, by sequence
	events   []*body              // after the cursor, ascending
	logRange *webhooks.LogRange
	replay   []*body              // of the range, ascending
	open     []*webhooks.Delivery // pending deliveries of the same subjects
}

// planChunk decides what is sent and in which order: due deliveries, then events after the
// cursor, then a replay, at most limit in all.
func planChunk(e *webhooks.Endpoint, m *chunkInput, now till.Time, limit int) *chunk {
	w := &chunk{e: e, to: e.Cursor, open: m.open, createdAt: make(map[int64]till.Time, len(m.events)+len(m.replay))}
	slices.SortStableFunc(m.due, func(a, b *webhooks.Delivery) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for _, r := range m.due[:min(limit, len(m.due))] {
		w.items = append(w.items, &chunkItem{DeliveryKey: r.Key(), subject: r.SubjectID, body: m.bodies[r.Sequence], row: r})
	}
	for _, b := range m.events {
		subscribed := e.Subscribed(b.kind)
		if subscribed && len(w.items) >= limit {
			break
		}
		w.to, w.createdAt[b.sequence] = b.sequence, b.createdAt
		if subscribed {
			w.items = append(w.items, &chunkItem{DeliveryKey: webhooks.DeliveryKey{Sequence: b.sequence, Kind: webhooks.DeliverEvent}, subject: b.subject, body: b})
		}
	}
	if m.logRange != nil {
		w.logRange, w.rangeTo = m.logRange, m.logRange.Next-1
		kind := webhooks.DeliverReplay
		if m.logRange.Why == webhooks.RangeCatchUp {
			kind = webhooks.DeliverEvent // it is late, but the first delivery of the event
		}
		for n, b := range m.replay {
			if n >= drainRate || len(w.items) >= limit {
				break
			}
			w.rangeTo, w.createdAt[b.sequence] = b.sequence, b.createdAt
			if e.Subscribed(b.kind) {
				w.items = append(w.items, &chunkItem{DeliveryKey: webhooks.DeliveryKey{Sequence: b.sequence, Kind: kind}, subject: b.subject, body: b, replay: true})
			}
		}
	}
	w.groupBySubject(now)
	return w
}

// groupBySubject puts the items of each subject into one group. An item that waits for an
// older event of its subject is in no group.
func (w *chunk) groupBySubject(now till.Time) {
	busy := map[till.ID]till.Time{}
	for _, r := range w.open {
		if r.Sending(now) {
			busy[r.SubjectID] = max(busy[r.SubjectID], r.DueAt)
		}
	}
	groups := make(map[till.ID]int, len(w.items))
	for _, it := range w.items {
		if until := busy[it.subject]; !until.IsZero() {
			it.waitsFor = until
			continue
		}
		n, known := groups[it.subject]
		if !known {
			n = len(w.orderedGroups)
			groups[it.subject] = n
			w.orderedGroups = append(w.orderedGroups, nil)
		}
		w.orderedGroups[n] = append(w.orderedGroups[n], it)
	}
}

// leftover is a delivery as a chunk leaves it, and as it was before; nil if it is new.
type leftover struct{ row, before *webhooks.Delivery }

// chunkResult is what is recorded of a closed chunk.
type chunkResult struct {
	rows      []leftover
	cursor    int64
	next      int64     // of the range
	cursorAt  till.Time // when the event at the cursor was created; zero: the cursor has not moved
	nextAt    till.Time // when the event before next was created; zero: the range has not moved
	outcomes  []attemptOutcome
	exhausted bool // a delivery used up its attempts
	sent      int
}

// close decides what becomes of the items. An item that was not begun stays after the
// cursor. If a later event was sent already, the item becomes a delivery that is due now.
// An item that is still being sent becomes a delivery with a lease of its own.
func (w *chunk) close(now till.Time, jitter func() float64) *chunkResult {
	r := &chunkResult{cursor: w.to, next: w.rangeTo + 1}
	newest := map[till.ID]int64{} // the newest event sent of each subject
	under := map[till.ID]bool{}   // subjects with an attempt under way
	var last, lastReplay int64
	for _, it := range w.items {
		if it.state == waiting {
			continue
		}
		r.sent++
		if it.state == sending {
			under[it.subject] = true
		} else {
			r.outcomes = append(r.outcomes, it.outcome)
		}
		if it.supersedes() {
			newest[it.subject] = max(newest[it.subject], it.Sequence)
		}
		switch {
		case it.replay:
			lastReplay = max(lastReplay, it.Sequence)
		case it.row == nil:
			last = max(last, it.Sequence)
		}
	}
	slices.SortStableFunc(r.outcomes, func(a, b attemptOutcome) int { return cmp.Compare(a.ended, b.ended) })
	for _, it := range w.items {
		if it.state != waiting || it.row != nil || !it.waitsFor.IsZero() {
			continue
		}
		switch {
		case it.replay && it.Sequence > lastReplay:
			r.next = min(r.next, it.Sequence)
		case !it.replay && it.Sequence > last:
			r.cursor = min(r.cursor, it.Sequence-1)
		}
	}
	r.cursorAt, r.nextAt = w.createdAt[r.cursor], w.createdAt[r.next-1]
	for _, it := range w.items {
		if row := w.leftoverRow(it, r, newest, under, now, jitter); row != nil {
			r.rows = append(r.rows, leftover{row, it.row})
		}
	}
	for _, o := range w.open {
		if o.Kind == webhooks.DeliverEvent && o.Sequence < newest[o.SubjectID] && !w.has(o.Key()) && !o.Sending(now) {
			s := *o
			s.Status, s.UpdatedAt, s.LeaseUntil = webhooks.DeliverySuperseded, now, 0
			r.rows = append(r.rows, leftover{&s, o})
		}
	}
	return r
}

func (w *chunk) has(k webhooks.DeliveryKey) bool {
	return slices.ContainsFunc(w.items, func(it *chunkItem) bool { return it.row != nil && it.DeliveryKey == k })
}

// leftoverRow returns the delivery that an item leaves, nil if none is needed.
func (w *chunk) leftoverRow(it *chunkItem, r *chunkResult, newest map[till.ID]int64, under map[till.ID]bool, now till.Time, jitter func() float64) *webhooks.Delivery {
	delivered := it.state == ended && it.outcome.response.Delivered()
	if it.row == nil && delivered && !w.e.KeepsAnswers {
		return nil
	}
	if it.row == nil && it.state == waiting && (it.replay && it.Sequence >= r.next || !it.replay && it.Sequence > r.cursor) {
		return nil // it stays after the cursor
	}
	row := &webhooks.Delivery{ClientID: w.e.ClientID, EndpointID: w.e.ID, Sequence: it.Sequence, Kind: it.Kind, ID: till.NewID(now), SubjectID: it.subject,
		Status: webhooks.DeliveryPending, DueAt: now, CreatedAt: now}
	if it.row != nil {
		copied := *it.row
		row = &copied
	}
	row.UpdatedAt = now
	switch it.state {
	case waiting:
		switch {
		case !it.waitsFor.IsZero():
			row.DueAt = it.waitsFor
		case under[it.subject]:
			row.DueAt = now.Add(Lease)
		case it.row != nil:
			return nil // unchanged
		}
		if !it.requested() && it.Sequence < newest[it.subject] {
			row.Status = webhooks.DeliverySuperseded
		}
		return row
	case sending:
		row.LeaseUntil = now.Add(Lease)
		row.DueAt = row.LeaseUntil
		return row
	}
	finishAttempt(row, it.attempt, it.outcome.response, now, jitter())
	if row.Status == webhooks.DeliveryPending && !it.requested() && it.Sequence < newest[it.subject] {
		row.Status = webhooks.DeliverySuperseded
	}
	r.exhausted = r.exhausted || row.Status == webhooks.DeliveryExhausted
	return row
}

// finishAttempt records an attempt that has ended on its delivery.
func finishAttempt(row *webhooks.Delivery, t webhooks.DeliveryAttempt, a Response, now till.Time, j float64) {
	row.Attempts = min(row.Attempts+1, MaxAttempts)
	row.Last, row.UpdatedAt, row.LeaseUntil = t, now, 0
	if a.Delivered() {
		row.Status = webhooks.DeliveryDelivered
		return
	}
	row.Status = webhooks.DeliveryPending
	var exhausted bool
	if row.DueAt, exhausted = retryAt(now, row.Attempts, a.RetryAfter, j); exhausted {
		row.Status = webhooks.DeliveryExhausted
	}
}
