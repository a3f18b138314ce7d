package api

import (
	"context"
	"net/http"
	"time"

	"till"
	"till/store"
	"till/store/webhooks"
	"till/webhook"
)

var deliveryQuery = []string{"status", "limit", "before"}

// listDeliveries is GET /webhook-endpoints/{endpoint_id}/deliveries.
func (c hookHandlers) listDeliveries() error {
	p := c.params()
	status := webhooks.DeliveryStatus(p.choice("status", string(webhooks.DeliveryPending), string(webhooks.DeliveryDelivered),
		string(webhooks.DeliverySuperseded), string(webhooks.DeliveryExhausted), string(webhooks.DeliveryDisabled)))
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
	return c.answer(http.StatusOK, struct {
		Items []delivery `json:"items"`
		Next  *int64     `json:"next_before"`
	}{each(items, deliveryOf), orNull(next)})
}

type delivery struct {
	Event struct {
		ID        till.ID        `json:"id"`
		Kind      till.EventKind `json:"type"`
		Sequence  int64          `json:"sequence"`
		CreatedAt till.Time      `json:"created_at"`
	} `json:"event"`
	Kind     webhooks.DeliveryKind   `json:"kind"`
	Status   webhooks.DeliveryStatus `json:"status"`
	Attempts int                     `json:"attempts"`
	NextAt   till.Time               `json:"next_attempt_at"`
	Request  *deliveryRequest        `json:"request"` // the last attempt's, like the response
	Response *deliveryResponse       `json:"response"`
}

type deliveryRequest struct {
	URL     string `json:"url"`
	Headers struct {
		ID        till.ID `json:"webhook-id"`
		Timestamp int64   `json:"webhook-timestamp,string"`
	} `json:"headers"`
	SentAt till.Time `json:"sent_at"`
}

type deliveryResponse struct {
	Status  *int    `json:"status"`
	Took    int64   `json:"duration_ms"`
	Body    *string `json:"body"`
	Problem *string `json:"problem"`
}

func deliveryOf(d *webhook.DeliveryView) delivery {
	out := delivery{Kind: d.Kind, Status: d.Status, Attempts: d.Attempts}
	out.Event.ID, out.Event.Kind, out.Event.CreatedAt = d.EventID, d.EventKind, d.EventAt
	if d.Kind != webhooks.DeliverTest { // of a test it is 0, as in its body: it is in no log
		out.Event.Sequence = d.Sequence
	}
	if d.HasRow && d.Status == webhooks.DeliveryPending {
		out.NextAt = d.DueAt
	}
	if t := &d.Last; !t.SentAt.IsZero() {
		out.Request = &deliveryRequest{URL: t.URL, SentAt: t.SentAt}
		out.Request.Headers.ID, out.Request.Headers.Timestamp = d.EventID, t.SentAt.Std().Unix()
		out.Response = &deliveryResponse{orNull(t.Code), t.Took.Round(time.Millisecond).Milliseconds(), orNull(t.Text), orNull(t.Problem)}
	}
	return out
}

// testEndpoint is POST /webhook-endpoints/{endpoint_id}/test.
func (c hookHandlers) testEndpoint() error {
	id, err := c.endpointID()
	if err != nil {
		return err
	}
	d, err := c.s.Endpoints.Test(c.auditContext(), c.session.Client.ID, id, c.session.Actor())
	if err != nil {
		return err
	}
	return c.answer(http.StatusAccepted, struct {
		ID till.ID `json:"event_id"`
	}{d.ID})
}

// replayEvents is POST /webhook-endpoints/{endpoint_id}/replay.
func (c hookHandlers) replayEvents() error {
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
	var events *int64
	if out.Events >= 0 {
		events = &out.Events
	}
	return c.answer(http.StatusAccepted, struct {
		ID         till.ID `json:"endpoint_id"`
		Events     *int64  `json:"events"`
		From       *int64  `json:"from_sequence"`
		To         *int64  `json:"to_sequence"`
		Deliveries int64   `json:"deliveries"`
		Stretches  int     `json:"stretches"`
	}{id, events, orNull(out.From), orNull(out.To), out.Deliveries, out.Ranges})
}

// redeliverRequest is the body of POST /events/{event_id}/redeliver.
type redeliverRequest struct {
	EndpointID *string `json:"endpoint_id"`
}

// redeliverEvent is POST /events/{event_id}/redeliver.
func (c hookHandlers) redeliverEvent() error {
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
	type redelivered struct {
		EndpointID till.ID `json:"endpoint_id"`
	}
	return c.answer(http.StatusAccepted, listOf(asked, func(id till.ID) redelivered { return redelivered{id} }))
}
