package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"till"
	"till/internal/jsonx"
	"till/store"
	"till/webhook"
)

var deliveryQuery = []string{"status", "limit", "before"}

// listDeliveries is GET /webhook-endpoints/{endpoint_id}/deliveries.
func (c *exchange) listDeliveries() error {
	p := c.params()
	status := store.DeliveryStatus(p.choice("status", string(store.DeliveryPending), string(store.DeliveryDelivered),
		string(store.DeliverySuperseded), string(store.DeliveryExhausted), string(store.DeliveryDisabled)))
	limit, before := int(p.number("limit", defaultLimit, 1, maxLimit)), p.count("before")
	if err := p.err(); err != nil {
		return err
	}
	var items []*webhook.DeliveryView
	var next int64
	err := c.view(func(ctx context.Context, tx *store.Tx) error {
		e, err := c.endpoint(ctx, tx)
		if err != nil {
			return err
		}
		items, next, err = webhook.ListDeliveries(ctx, tx, e, c.requester(), webhook.DeliveryFilter{Status: status, Before: before}, limit)
		return err
	})
	if err != nil {
		return err
	}
	b := appendItems(c.buffer(), items, appendDelivery)
	b = append(b, `,"next_before":`...)
	b = appendNumber(b, next)
	return c.json(http.StatusOK, append(b, '}'))
}

// appendNumber appends a number, or null for 0.
func appendNumber(b []byte, n int64) []byte {
	if n == 0 {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, n, 10)
}

func appendDelivery(b []byte, d *webhook.DeliveryView) []byte {
	b = append(b, `{"event":{"id":`...)
	b = d.EventID.AppendJSON(b)
	b = append(b, `,"type":`...)
	b = jsonx.AppendString(b, string(d.EventKind))
	b = append(b, `,"sequence":`...)
	sequence := d.Sequence
	if d.Kind == store.DeliverTest {
		sequence = 0 // as in its body: it is in no log
	}
	b = strconv.AppendInt(b, sequence, 10)
	b = append(b, `,"created_at":`...)
	b = d.EventAt.AppendJSON(b)
	b = append(b, `},"kind":`...)
	b = jsonx.AppendString(b, string(d.Kind))
	b = append(b, `,"status":`...)
	b = jsonx.AppendString(b, string(d.Status))
	b = append(b, `,"attempts":`...)
	b = strconv.AppendInt(b, int64(d.Attempts), 10)
	b = append(b, `,"next_attempt_at":`...)
	var due till.Time
	if d.HasRow && d.Status == store.DeliveryPending {
		due = d.DueAt
	}
	b = due.AppendJSON(b)
	return append(appendTry(b, d), '}')
}

// appendTry appends the last attempt: the request and the response.
func appendTry(b []byte, d *webhook.DeliveryView) []byte {
	t := &d.Last
	if t.SentAt.IsZero() {
		return append(b, `,"request":null,"response":null`...)
	}
	b = append(b, `,"request":{"url":`...)
	b = jsonx.AppendString(b, t.URL)
	b = append(b, `,"headers":{"webhook-id":`...)
	b = d.EventID.AppendJSON(b)
	b = append(b, `,"webhook-timestamp":"`...)
	b = strconv.AppendInt(b, t.SentAt.Std().Unix(), 10)
	b = append(b, `"},"sent_at":`...)
	b = t.SentAt.AppendJSON(b)
	b = append(b, `},"response":{"status":`...)
	b = appendNumber(b, int64(t.Code))
	b = append(b, `,"duration_ms":`...)
	b = strconv.AppendInt(b, t.Took.Round(time.Millisecond).Milliseconds(), 10)
	b = append(b, `,"body":`...)
	b = jsonx.AppendStringOrNull(b, t.Text)
	b = append(b, `,"problem":`...)
	b = jsonx.AppendStringOrNull(b, t.Problem)
	return append(b, '}')
}

// testEndpoint is POST /webhook-endpoints/{endpoint_id}/test.
func (c *exchange) testEndpoint() error {
	id, err := c.endpointID()
	if err != nil {
		return err
	}
	d, err := c.s.Endpoints.Test(c.auditContext(), c.session.Client.ID, id, c.session.Actor())
	if err != nil {
		return err
	}
	b := append(c.buffer(), `{"event_id":`...)
	return c.json(http.StatusAccepted, append(d.ID.AppendJSON(b), '}'))
}

// replayEvents is POST /webhook-endpoints/{endpoint_id}/replay.
func (c *exchange) replayEvents() error {
	id, err := c.endpointID()
	if err != nil {
		return err
	}
	var req webhook.Replay
	if err := c.decode(&req); err != nil {
		return err
	}
	out, err := c.s.Endpoints.Replay(c.auditContext(), c.session.Client.ID, id, &req, c.requester())
	if err != nil {
		return err
	}
	b := append(c.buffer(), `{"endpoint_id":`...)
	b = id.AppendJSON(b)
	b = append(b, `,"events":`...)
	if out.Events < 0 {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, out.Events, 10)
	}
	b = append(b, `,"from_sequence":`...)
	b = appendNumber(b, out.From)
	b = append(b, `,"to_sequence":`...)
	b = appendNumber(b, out.To)
	b = append(b, `,"deliveries":`...)
	b = strconv.AppendInt(b, out.Deliveries, 10)
	b = append(b, `,"stretches":`...)
	b = strconv.AppendInt(b, int64(out.Ranges), 10)
	return c.json(http.StatusAccepted, append(b, '}'))
}

// redeliverRequest is the body of POST /events/{event_id}/redeliver.
type redeliverRequest struct {
	EndpointID *string `json:"endpoint_id"`
}

// redeliverEvent is POST /events/{event_id}/redeliver.
func (c *exchange) redeliverEvent() error {
	event, err := till.ParseID(c.r.PathValue("event_id"))
	if err != nil {
		return &till.Error{Code: till.CodeEventNotFound}
	}
	var req redeliverRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	var only *till.ID
	if req.EndpointID != nil {
		id, err := till.ParseID(*req.EndpointID)
		if err != nil {
			return &till.Error{Code: till.CodeEndpointNotFound}
		}
		only = &id
	}
	asked, err := c.s.Endpoints.Redeliver(c.auditContext(), c.session.Client.ID, event, only, c.requester())
	if err != nil {
		return err
	}
	b := appendItems(c.buffer(), asked, func(b []byte, id till.ID) []byte {
		return append(id.AppendJSON(append(b, `{"endpoint_id":`...)), '}')
	})
	return c.json(http.StatusAccepted, append(b, '}'))
}
