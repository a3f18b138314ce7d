package webhook

import (
	"context"
	"fmt"
	"strconv"

	"till"
	"till/store"
	"till/store/webhooks"
)

// This file has the deliveries that a person or a client requests.

var errDisabled = &till.Error{Code: till.CodeEndpointDisabled, Detail: "The webhook endpoint is disabled. Enable it first."}

// enqueue writes a delivery that is due now. The endpoint is locked.
func (s *Endpoints) enqueue(ctx context.Context, tx *store.Tx, e *webhooks.Endpoint, d *webhooks.Delivery, at till.Time) error {
	if !e.Enabled {
		return errDisabled
	}
	n, err := webhooks.CountPending(ctx, tx, e.Ref())
	if err != nil {
		return err
	}
	if n >= maxRequestedPending {
		return invalid(till.FieldError{Code: till.FieldTooMany, Detail: fmt.Sprintf("%d deliveries that were asked for have not gone out yet. Wait for them.", n)})
	}
	d.ClientID, d.EndpointID, d.ID = e.ClientID, e.ID, till.NewID(at)
	d.Status, d.DueAt, d.CreatedAt, d.UpdatedAt = webhooks.DeliveryPending, at, at, at
	if err := webhooks.SaveDeliveries(ctx, tx, []*webhooks.Delivery{d}); err != nil {
		return err
	}
	if e.NextRetry.IsZero() || e.NextRetry > at {
		e.NextRetry = at
	}
	e.BlockedUntil = 0 // the requester waits for it
	return webhooks.SaveEndpoints(ctx, tx, []*webhooks.Endpoint{e})
}

// Test sends a test event to an endpoint. The event is in no log.
func (s *Endpoints) Test(ctx context.Context, client, id till.ID, actor string) (*webhooks.Delivery, error) {
	var d *webhooks.Delivery
	err := s.auditedEndpoint(ctx, client, id, actor, func(ctx context.Context, tx *store.Tx, e *webhooks.Endpoint, h *store.Head, at till.Time) (auditEntry, error) {
		d = &webhooks.Delivery{Sequence: h.LastEvent, Kind: webhooks.DeliverTest, SubjectID: e.ID}
		return auditEntry{"webhook_endpoint.test", id, ""}, s.enqueue(ctx, tx, e, d, at)
	})
	return d, err
}

// testBody returns the body of a test: the endpoint as it is.
func testBody(e *webhooks.Endpoint, row *webhooks.Delivery) *body {
	ev := till.Event{ClientID: e.ClientID, Kind: till.EndpointTest, CreatedAt: row.ID.Time(), Document: string(append(e.AppendJSON(nil), '}'))}
	return &body{id: row.ID.String(), kind: till.EndpointTest, subject: e.ID, json: ev.AppendJSONAs(nil, row.ID, nil)}
}

// Redeliver sends an event again to the client's enabled endpoints that are subscribed to
// its kind, or to the named one. It returns their ids. It returns CodeInsufficientScope if
// the requester may not read the event.
func (s *Endpoints) Redeliver(ctx context.Context, client, event till.ID, only *till.ID, by Requester) (asked []till.ID, err error) {
	err = s.audited(ctx, client, by.Actor, func(ctx context.Context, tx *store.Tx, h *store.Head, at till.Time) (auditEntry, error) {
		asked = nil
		events, err := tx.EventBodiesAt(ctx, client, []int64{event.EventSequence()})
		if err != nil {
			return auditEntry{}, err
		}
		if len(events) == 0 || events[0].ID() != event {
			return auditEntry{}, till.Errorf(till.CodeEventNotFound, "There is no such event.")
		}
		ev := events[0]
		if err := by.check([]till.EventKind{ev.Kind}); err != nil {
			return auditEntry{}, err
		}
		all, err := webhooks.Endpoints(ctx, tx, client, MaxEndpoints)
		if err != nil {
			return auditEntry{}, err
		}
		var refs []store.Ref
		for _, e := range all {
			if only == nil && e.Enabled && e.Subscribed(ev.Kind) || only != nil && e.ID == *only {
				refs = append(refs, e.Ref())
			}
		}
		if only != nil && refs == nil {
			return auditEntry{}, errNoEndpoint
		}
		locked, _, err := webhooks.LockEndpoints(ctx, tx, refs, nil)
		if err != nil {
			return auditEntry{}, err
		}
		for _, ref := range refs {
			e := locked[ref]
			if e == nil {
				continue
			}
			d := &webhooks.Delivery{Sequence: ev.Sequence, Kind: webhooks.DeliverAgain, SubjectID: ev.SubjectID}
			if err := s.enqueue(ctx, tx, e, d, at); err != nil {
				return auditEntry{}, err
			}
			asked = append(asked, e.ID)
		}
		return auditEntry{"event.redeliver", event, "sequence " + strconv.FormatInt(ev.Sequence, 10) + ", endpoints " + strconv.Itoa(len(asked))}, nil
	}, nil)
	return asked, err
}

// Replay says what to send again: a range of the log, or all failed deliveries.
type Replay struct {
	From   *int64 `json:"from_sequence"`
	To     *int64 `json:"to_sequence"`
	Failed *bool  `json:"failed"`
}

func (r *Replay) check(last int64) (from, to int64, err error) {
	failed := r.Failed != nil && *r.Failed
	switch {
	case failed && (r.From != nil || r.To != nil):
		return 0, 0, invalid(till.FieldError{Pointer: "/failed", Code: till.FieldInvalidFormat, Detail: "Name a stretch of the log or what failed, not both."})
	case failed:
		return 0, 0, nil
	case r.From == nil:
		return 0, 0, invalid(till.FieldError{Pointer: "/from_sequence", Code: till.FieldRequired, Detail: `Name the first sequence to be sent again, or say {"failed": true}.`})
	}
	from, to = *r.From, last
	if r.To != nil {
		to = min(*r.To, last)
	}
	switch {
	case from < 1 || from > last:
		return 0, 0, invalid(till.FieldError{Pointer: "/from_sequence", Code: till.FieldInvalidFormat, Detail: "The log has no event of this sequence."})
	case to < from:
		return 0, 0, invalid(till.FieldError{Pointer: "/to_sequence", Code: till.FieldInvalidFormat, Detail: "The last sequence comes before the first."})
	}
	return from, to, nil
}

// Replayed is what a replay will send.
type Replayed struct {
	From, To   int64 // a range of the log; 0 if none was given
	Deliveries int64 // deliveries that are tried again
	Ranges     int   // disabled periods that are sent

	// Events is how many events will be sent in all; -1 if counting would take too long.
	Events int64
}

// maxCountedEvents is how many events of the log are read to count those that an endpoint
// is subscribed to.
const maxCountedEvents = 100_000

// count returns how many events of the ranges an endpoint is subscribed to, -1 if counting
// would take too long.
func (s *Endpoints) count(ctx context.Context, e *webhooks.Endpoint, ranges []*webhooks.LogRange) (n int64, err error) {
	for _, logRange := range ranges {
		n += logRange.To - logRange.Next + 1
	}
	switch {
	case e.Events == nil:
		return n, nil
	case n > maxCountedEvents:
		return -1, nil
	}
	n = 0
	err = s.Store.View(ctx, func(tx *store.Tx) error {
		for _, logRange := range ranges {
			told, err := tx.CountEvents(ctx, e.ClientID, logRange.Next, logRange.To, e.Events)
			if err != nil {
				return err
			}
			n += told
		}
		return nil
	})
	return n, err
}

// Replay sends events again, after the live ones and at a limited rate. It returns
// CodeInsufficientScope if the endpoint receives kinds that the requester may not read.
func (s *Endpoints) Replay(ctx context.Context, client, id till.ID, r *Replay, by Requester) (out Replayed, err error) {
	var to *webhooks.Endpoint
	var ranges []*webhooks.LogRange
	err = s.auditedEndpoint(ctx, client, id, by.Actor, func(ctx context.Context, tx *store.Tx, e *webhooks.Endpoint, h *store.Head, at till.Time) (auditEntry, error) {
		to, out = e, Replayed{}
		if err := by.checkEndpoint(ctx, tx, e); err != nil {
			return auditEntry{}, err
		}
		if out.From, out.To, err = r.check(h.LastEvent); err != nil {
			return auditEntry{}, err
		}
		if !e.Enabled {
			return auditEntry{}, errDisabled
		}
		e.BlockedUntil = 0
		detail := fmt.Sprintf("sequences %d to %d", out.From, out.To)
		if out.From > 0 {
			ranges = []*webhooks.LogRange{{Next: out.From, To: out.To}}
			err = s.replayRange(ctx, tx, e, out.From, out.To, at)
		} else {
			detail = "what failed"
			ranges, err = s.replayFailed(ctx, tx, e, &out, at)
		}
		if err != nil {
			return auditEntry{}, err
		}
		return auditEntry{"webhook_endpoint.replay", id, detail}, webhooks.SaveEndpoints(ctx, tx, []*webhooks.Endpoint{e})
	})
	if err != nil {
		return out, err
	}
	// The replay is queued, whether or not the count succeeds.
	if out.Events, err = s.count(ctx, to, ranges); err != nil || out.Events < 0 {
		out.Events = -1
		return out, nil
	}
	out.Events += out.Deliveries
	return out, nil
}

func (s *Endpoints) replayRange(ctx context.Context, tx *store.Tx, e *webhooks.Endpoint, from, to int64, at till.Time) error {
	open, err := webhooks.OpenRanges(ctx, tx, e.Ref(), true, maxReplays)
	if err != nil {
		return err
	}
	if len(open) >= maxReplays {
		return invalid(till.FieldError{Code: till.FieldTooMany, Detail: fmt.Sprintf("%d replays of this endpoint are under way. Wait for them.", len(open))})
	}
	if e.ReplayAt.IsZero() {
		e.ReplayAt = at
	}
	return webhooks.InsertRange(ctx, tx, &webhooks.LogRange{ClientID: e.ClientID, EndpointID: e.ID, ID: till.NewID(at), Why: webhooks.RangeReplay, From: from, Next: from, To: to, CreatedAt: at})
}

func (s *Endpoints) replayFailed(ctx context.Context, tx *store.Tx, e *webhooks.Endpoint, out *Replayed, at till.Time) (ranges []*webhooks.LogRange, err error) {
	if out.Deliveries, err = webhooks.RetryFailed(ctx, tx, e.Ref(), at); err != nil {
		return nil, err
	}
	if out.Deliveries > 0 {
		e.NextRetry, e.ThrottleUntil = at, e.LastEvent // at the rate of a drain
	}
	if ranges, err = webhooks.OpenRanges(ctx, tx, e.Ref(), false, maxLogRanges); err != nil {
		return nil, err
	}
	for _, logRange := range ranges {
		logRange.Why = webhooks.RangeCatchUp
		if err := webhooks.SaveRange(ctx, tx, logRange); err != nil {
			return nil, err
		}
		if e.ReplayAt.IsZero() {
			e.ReplayAt = at
		}
	}
	out.Ranges = len(ranges)
	return ranges, nil
}
