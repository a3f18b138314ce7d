package webhook

import (
	"context"
	"slices"

	"till"
	"till/store"
	"till/store/webhooks"
)

// The limits of one list of an endpoint's deliveries.
const (
	listSlice  = 200 // events read at once
	listSlices = 10  // slices read for one list
)

// DeliveryView is a delivery as the list shows it, with its event.
type DeliveryView struct {
	webhooks.Delivery
	EventID   till.ID
	EventKind till.EventKind
	EventAt   till.Time

	// HasRow says that there is a row. An event that was delivered at once, or is still
	// after the cursor, has none; its status follows from the cursor.
	HasRow bool
}

// DeliveryFilter selects deliveries of an endpoint. Zero fields do not filter.
type DeliveryFilter struct {
	Status   webhooks.DeliveryStatus
	From, To till.Time // when the event was made, or a test asked for; both included
	Before   int64     // events below this sequence
}

// resolve sets the end of the log that a list begins at, and returns the lowest sequence
// that it may show.
func (f *DeliveryFilter) resolve(ctx context.Context, tx *store.Tx, e *webhooks.Endpoint) (lowest int64, err error) {
	if f.Before <= 0 {
		f.Before = e.LastEvent + 1
	}
	if !f.To.IsZero() {
		last, err := tx.EventBefore(ctx, e.ClientID, f.To+1)
		if err != nil {
			return 0, err
		}
		f.Before = min(f.Before, last+1)
	}
	if f.From.IsZero() {
		return 0, nil
	}
	// A test has the place of the event before it, which may be older.
	return tx.EventBefore(ctx, e.ClientID, f.From)
}

// shows reports whether a delivery is selected.
func (f *DeliveryFilter) shows(l *DeliveryView) bool {
	return (f.Status == "" || l.Status == f.Status) && l.EventAt >= f.From && (f.To.IsZero() || l.EventAt <= f.To)
}

// ListDeliveries returns an endpoint's deliveries, newest events first: at least limit of
// them if there are as many. It also returns the sequence to continue before, 0 at the end.
// It shows only events that the requester may read.
func ListDeliveries(ctx context.Context, tx *store.Tx, e *webhooks.Endpoint, by Requester, f DeliveryFilter, limit int) (out []*DeliveryView, next int64, err error) {
	lowest, err := f.resolve(ctx, tx, e)
	if err != nil || f.Before <= lowest {
		return nil, 0, err
	}
	if f.Status == webhooks.DeliverySuperseded || f.Status == webhooks.DeliveryExhausted {
		return listRows(ctx, tx, e, by, &f, lowest, limit)
	}
	ranges, err := webhooks.OpenRanges(ctx, tx, e.Ref(), false, maxLogRanges)
	if err != nil {
		return nil, 0, err
	}
	asked, err := webhooks.OpenRanges(ctx, tx, e.Ref(), true, maxLogRanges+maxReplays)
	if err != nil {
		return nil, 0, err
	}
	ranges = append(ranges, asked...)
	before := f.Before
	for range listSlices {
		from := max(before-listSlice, lowest)
		slice, err := listRange(ctx, tx, e, ranges, from, before-1)
		if err != nil {
			return nil, 0, err
		}
		for _, l := range slice {
			if len(out) >= limit && l.Sequence < before {
				return out, before, nil
			}
			before = l.Sequence
			if f.shows(l) && by.mayRead(l.EventKind) {
				out = append(out, l)
			}
		}
		if before = from; from == lowest {
			return out, 0, nil
		}
	}
	return out, before, nil
}

// listRange returns the deliveries of the events from one sequence to another, both
// included, newest first.
func listRange(ctx context.Context, tx *store.Tx, e *webhooks.Endpoint, ranges []*webhooks.LogRange, from, to int64) ([]*DeliveryView, error) {
	rows, err := webhooks.DeliveriesBetween(ctx, tx, e.Ref(), from, to)
	if err != nil {
		return nil, err
	}
	first := max(from, 1) // a test may have place 0, where no event is
	events, err := tx.Events(ctx, e.ClientID, first-1, int(to-first+1))
	if err != nil {
		return nil, err
	}
	var out []*DeliveryView
	told := map[int64]bool{}
	for _, r := range rows {
		l := &DeliveryView{Delivery: *r, HasRow: true}
		if r.Kind == webhooks.DeliverEvent {
			told[r.Sequence] = true
		}
		l.describe(events)
		out = append(out, l)
	}
	for _, ev := range events {
		status := derivedStatus(e, ranges, ev)
		if status == "" || told[ev.Sequence] {
			continue
		}
		l := &DeliveryView{Delivery: webhooks.Delivery{ClientID: e.ClientID, EndpointID: e.ID, Sequence: ev.Sequence, Kind: webhooks.DeliverEvent, SubjectID: ev.SubjectID, Status: status}}
		if status == webhooks.DeliveryDelivered {
			l.Attempts = 1
		}
		l.describe(events)
		out = append(out, l)
	}
	slices.SortStableFunc(out, func(a, b *DeliveryView) int { return int(b.Sequence - a.Sequence) })
	return out, nil
}

// derivedStatus returns the status of an event without a row. It returns "" if the endpoint
// was not subscribed to the event, or if its subscription has changed since, so that this
// is no longer known.
func derivedStatus(e *webhooks.Endpoint, ranges []*webhooks.LogRange, ev *till.Event) webhooks.DeliveryStatus {
	inRange := func(why webhooks.RangeReason) bool {
		return slices.ContainsFunc(ranges, func(s *webhooks.LogRange) bool { return s.Why == why && s.Next <= ev.Sequence && ev.Sequence <= s.To })
	}
	switch {
	case ev.Sequence <= e.Start || !e.Subscribed(ev.Kind):
		return ""
	case inRange(webhooks.RangeDisabled):
		return webhooks.DeliveryDisabled
	case inRange(webhooks.RangeCatchUp):
		return webhooks.DeliveryPending
	case ev.Sequence > e.Cursor && !e.Enabled:
		return webhooks.DeliveryDisabled
	case ev.Sequence > e.Cursor:
		return webhooks.DeliveryPending
	case ev.Sequence <= e.EventsListedFrom:
		return ""
	}
	return webhooks.DeliveryDelivered
}

// DeliveriesOf returns what became of some events of a client with each of its
// endpoints, by endpoint and sequence. It costs the same number of statements
// however many there are.
func DeliveriesOf(ctx context.Context, tx *store.Tx, client till.ID, events []*till.Event) ([]*DeliveryView, map[till.ID]*webhooks.Endpoint, error) {
	endpoints, err := webhooks.Endpoints(ctx, tx, client, MaxEndpoints)
	if err != nil || len(endpoints) == 0 || len(events) == 0 {
		return nil, nil, err
	}
	byID, ids := map[till.ID]*webhooks.Endpoint{}, make([]till.ID, len(endpoints))
	for i, e := range endpoints {
		byID[e.ID], ids[i] = e, e.ID
	}
	sequences := make([]int64, len(events))
	for i, ev := range events {
		sequences[i] = ev.Sequence
	}
	rows, err := webhooks.DeliveriesOfEvents(ctx, tx, client, ids, sequences)
	if err != nil {
		return nil, nil, err
	}
	ranges, err := webhooks.OpenRangesOf(ctx, tx, client, len(endpoints)*(maxLogRanges+maxReplays))
	if err != nil {
		return nil, nil, err
	}
	type key struct {
		endpoint till.ID
		sequence int64
	}
	var out []*DeliveryView
	told := map[key]bool{}
	for _, r := range rows {
		l := &DeliveryView{Delivery: *r, HasRow: true}
		told[key{r.EndpointID, r.Sequence}] = told[key{r.EndpointID, r.Sequence}] || r.Kind == webhooks.DeliverEvent
		l.describe(events)
		out = append(out, l)
	}
	for _, e := range endpoints {
		own := slices.DeleteFunc(slices.Clone(ranges), func(r *webhooks.LogRange) bool { return r.EndpointID != e.ID })
		for _, ev := range events {
			status := derivedStatus(e, own, ev)
			if status == "" || told[key{e.ID, ev.Sequence}] {
				continue
			}
			l := &DeliveryView{Delivery: webhooks.Delivery{ClientID: client, EndpointID: e.ID, Sequence: ev.Sequence, Kind: webhooks.DeliverEvent, SubjectID: ev.SubjectID, Status: status}}
			if status == webhooks.DeliveryDelivered {
				l.Attempts = 1
			}
			l.describe(events)
			out = append(out, l)
		}
	}
	return out, byID, nil
}

// DeliveriesAt returns what became of one event at an endpoint, every delivery of it. A
// test is at the event that was the last when it was asked for.
func DeliveriesAt(ctx context.Context, tx *store.Tx, e *webhooks.Endpoint, sequence int64) ([]*DeliveryView, error) {
	ranges, err := webhooks.OpenRangesOf(ctx, tx, e.ClientID, MaxEndpoints*(maxLogRanges+maxReplays))
	if err != nil {
		return nil, err
	}
	ranges = slices.DeleteFunc(ranges, func(r *webhooks.LogRange) bool { return r.EndpointID != e.ID })
	return listRange(ctx, tx, e, ranges, sequence, sequence)
}

func (l *DeliveryView) describe(events []*till.Event) {
	if l.Kind == webhooks.DeliverTest {
		l.EventID, l.EventKind, l.EventAt = l.ID, till.EndpointTest, l.ID.Time()
		return
	}
	for _, ev := range events {
		if ev.Sequence == l.Sequence {
			l.EventID, l.EventKind, l.EventAt = ev.ID(), ev.Kind, ev.CreatedAt
		}
	}
}

// listRows returns the rows with a status, down to the lowest sequence.
func listRows(ctx context.Context, tx *store.Tx, e *webhooks.Endpoint, by Requester, f *DeliveryFilter, lowest int64, limit int) (out []*DeliveryView, next int64, err error) {
	const perSequence = 3 // kinds of delivery that one event can have
	rows, err := webhooks.DeliveriesOf(ctx, tx, e.Ref(), f.Status, f.Before, limit+perSequence)
	if err != nil {
		return nil, 0, err
	}
	if i := slices.IndexFunc(rows, func(r *webhooks.Delivery) bool { return r.Sequence < lowest }); i >= 0 {
		rows = rows[:i]
	}
	sequences := make([]int64, len(rows))
	for i, r := range rows {
		sequences[i] = r.Sequence
	}
	events, err := tx.EventsAt(ctx, e.ClientID, slices.Compact(sequences))
	if err != nil {
		return nil, 0, err
	}
	for i, r := range rows {
		if i >= limit && r.Sequence != rows[i-1].Sequence {
			next = rows[i-1].Sequence
			break
		}
		l := &DeliveryView{Delivery: *r, HasRow: true}
		l.describe(events)
		if f.shows(l) && by.mayRead(l.EventKind) {
			out = append(out, l)
		}
	}
	return out, next, nil
}
