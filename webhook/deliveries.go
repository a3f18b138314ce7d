package webhook

import (
	"context"
	"slices"

	"till"
	"till/store"
)

// The limits of one list of an endpoint's deliveries.
const (
	listSlice  = 200 // events read at once
	listSlices = 10  // slices read for one list
)

// DeliveryView is a delivery as the list shows it, with its event.
type DeliveryView struct {
	store.Delivery
	EventID   till.ID
	EventKind till.EventKind
	EventAt   till.Time

	// HasRow says that there is a row. An event that was delivered at once, or is still
	// after the cursor, has none; its status follows from the cursor.
	HasRow bool
}

// ListDeliveries returns an endpoint's deliveries, newest events first: at least limit of
// them if there are as many before the given sequence. It also returns the sequence to
// continue before, 0 at the end. It shows only deliveries with the status, if one is given,
// and only events that the requester may read.
func ListDeliveries(ctx context.Context, tx *store.Tx, e *store.Endpoint, by Requester, status store.DeliveryStatus, before int64, limit int) (out []*DeliveryView, next int64, err error) {
	if before <= 0 {
		before = e.LastEvent + 1
	}
	if status == store.DeliverySuperseded || status == store.DeliveryExhausted {
		return listRows(ctx, tx, e, by, status, before, limit)
	}
	ranges, err := tx.OpenRanges(ctx, e.Ref(), false, maxLogRanges)
	if err != nil {
		return nil, 0, err
	}
	asked, err := tx.OpenRanges(ctx, e.Ref(), true, maxLogRanges+maxReplays)
	if err != nil {
		return nil, 0, err
	}
	ranges = append(ranges, asked...)
	for range listSlices {
		from := max(before-listSlice, 0)
		slice, err := listRange(ctx, tx, e, ranges, from, before-1)
		if err != nil {
			return nil, 0, err
		}
		for _, l := range slice {
			if len(out) >= limit && l.Sequence < before {
				return out, before, nil
			}
			before = l.Sequence
			if (status == "" || l.Status == status) && by.mayRead(l.EventKind) {
				out = append(out, l)
			}
		}
		if before = from; from == 0 {
			return out, 0, nil
		}
	}
	return out, before, nil
}

// listRange returns the deliveries of the events from one sequence to another, both
// included, newest first.
func listRange(ctx context.Context, tx *store.Tx, e *store.Endpoint, ranges []*store.LogRange, from, to int64) ([]*DeliveryView, error) {
	rows, err := tx.DeliveriesBetween(ctx, e.Ref(), from, to)
	if err != nil {
		return nil, err
	}
	events, err := tx.Events(ctx, e.ClientID, from-1, int(to-from+1))
	if err != nil {
		return nil, err
	}
	var out []*DeliveryView
	told := map[int64]bool{}
	for _, r := range rows {
		l := &DeliveryView{Delivery: *r, HasRow: true}
		if r.Kind == store.DeliverEvent {
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
		l := &DeliveryView{Delivery: store.Delivery{ClientID: e.ClientID, EndpointID: e.ID, Sequence: ev.Sequence, Kind: store.DeliverEvent, SubjectID: ev.SubjectID, Status: status}}
		if status == store.DeliveryDelivered {
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
func derivedStatus(e *store.Endpoint, ranges []*store.LogRange, ev *till.Event) store.DeliveryStatus {
	inRange := func(why store.RangeReason) bool {
		return slices.ContainsFunc(ranges, func(s *store.LogRange) bool { return s.Why == why && s.Next <= ev.Sequence && ev.Sequence <= s.To })
	}
	switch {
	case ev.Sequence <= e.Start || !e.Subscribed(ev.Kind):
		return ""
	case inRange(store.RangeDisabled):
		return store.DeliveryDisabled
	case inRange(store.RangeCatchUp):
		return store.DeliveryPending
	case ev.Sequence > e.Cursor && !e.Enabled:
		return store.DeliveryDisabled
	case ev.Sequence > e.Cursor:
		return store.DeliveryPending
	case ev.Sequence <= e.EventsListedFrom:
		return ""
	}
	return store.DeliveryDelivered
}

func (l *DeliveryView) describe(events []*till.Event) {
	if l.Kind == store.DeliverTest {
		l.EventID, l.EventKind, l.EventAt = l.ID, till.EndpointTest, l.ID.Time()
		return
	}
	for _, ev := range events {
		if ev.Sequence == l.Sequence {
			l.EventID, l.EventKind, l.EventAt = ev.ID(), ev.Kind, ev.CreatedAt
		}
	}
}

// listRows returns the rows with a status.
func listRows(ctx context.Context, tx *store.Tx, e *store.Endpoint, by Requester, status store.DeliveryStatus, before int64, limit int) (out []*DeliveryView, next int64, err error) {
	const perSequence = 3 // kinds of delivery that one event can have
	rows, err := tx.DeliveriesOf(ctx, e.Ref(), status, before, limit+perSequence)
	if err != nil {
		return nil, 0, err
	}
	for i, r := range rows {
		if i >= limit && r.Sequence != rows[i-1].Sequence {
			next = rows[i-1].Sequence
			break
		}
		events, err := tx.Events(ctx, e.ClientID, r.Sequence-1, 1)
		if err != nil {
			return nil, 0, err
		}
		l := &DeliveryView{Delivery: *r, HasRow: true}
		l.describe(events)
		if by.mayRead(l.EventKind) {
			out = append(out, l)
		}
	}
	return out, next, nil
}
