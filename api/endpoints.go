package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"till"
	"till/internal/jsonx"
	"till/store"
	"till/store/webhooks"
	"till/webhook"
)

// endpointID returns the endpoint id in the path. A malformed id is answered like an
// unknown one.
func (c hookHandlers) endpointID() (till.ID, error) {
	id, err := till.ParseID(c.r.PathValue("endpoint_id"))
	if err != nil {
		return till.ID{}, &till.Error{Code: till.CodeEndpointNotFound}
	}
	return id, nil
}

// requester returns the key of this call as a webhook.Requester.
func (c hookHandlers) requester() webhook.Requester {
	return webhook.Requester{Actor: c.session.Actor(), Scopes: c.session.Key.Scopes}
}

// createEndpoint is POST /webhook-endpoints.
func (c hookHandlers) createEndpoint() error {
	var req webhook.Request
	unknown, err := c.decodeKnown(&req)
	if err != nil {
		return err
	}
	req.Unknown = unknown
	made, err := c.s.Endpoints.Create(c.auditContext(), c.session.Client, &req, c.requester())
	if err != nil {
		return err
	}
	h := c.Header()
	h["Location"] = []string{c.s.BaseURL + "/webhook-endpoints/" + made.Endpoint.ID.String()}
	if made.Replayed {
		h["Idempotent-Replayed"] = replayed
	}
	return c.newSecret(http.StatusCreated, made.Endpoint, made.Secret)
}

// newSecret answers with an endpoint and, only here, its secret.
func (c hookHandlers) newSecret(status int, e *webhooks.Endpoint, secret webhook.Secret) error {
	b := appendEndpoint(c.buffer(), e)
	b = append(b, `,"secret":`...)
	b = jsonx.AppendString(b, secret.Reveal())
	return c.json(status, append(b, '}'))
}

// listEndpoints is GET /webhook-endpoints.
func (c hookHandlers) listEndpoints() error {
	var all []*webhooks.Endpoint
	err := c.view(func(ctx context.Context, tx *store.Tx) (err error) {
		all, err = webhooks.Endpoints(ctx, tx, c.session.Client.ID, webhook.MaxEndpoints)
		return err
	})
	if err != nil {
		return err
	}
	b := appendItems(c.buffer(), all, func(b []byte, e *webhooks.Endpoint) []byte { return append(appendEndpoint(b, e), '}') })
	return c.json(http.StatusOK, append(b, '}'))
}

// endpoint reads the endpoint in the path.
func (c hookHandlers) endpoint(ctx context.Context, tx *store.Tx) (*webhooks.Endpoint, error) {
	id, err := c.endpointID()
	if err != nil {
		return nil, err
	}
	e, err := webhooks.ReadEndpoint(ctx, tx, store.Ref{Client: c.session.Client.ID, ID: id})
	if err == nil && e == nil {
		err = &till.Error{Code: till.CodeEndpointNotFound}
	}
	return e, err
}

// getEndpoint is GET /webhook-endpoints/{endpoint_id}.
func (c hookHandlers) getEndpoint() error {
	var e *webhooks.Endpoint
	err := c.view(func(ctx context.Context, tx *store.Tx) (err error) { e, err = c.endpoint(ctx, tx); return err })
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, append(appendEndpoint(c.buffer(), e), '}'))
}

// patchEndpoint is PATCH /webhook-endpoints/{endpoint_id}.
func (c hookHandlers) patchEndpoint() error {
	id, err := c.endpointID()
	if err != nil {
		return err
	}
	var req webhook.Request
	if err := c.decode(&req); err != nil {
		return err
	}
	e, err := c.s.Endpoints.Patch(c.auditContext(), c.session.Client, id, &req, c.requester())
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, append(appendEndpoint(c.buffer(), e), '}'))
}

// deleteEndpoint is DELETE /webhook-endpoints/{endpoint_id}.
func (c hookHandlers) deleteEndpoint() error {
	id, err := c.endpointID()
	if err == nil {
		err = c.s.Endpoints.Delete(c.auditContext(), c.session.Client.ID, id, c.session.Actor())
	}
	if err != nil {
		return err
	}
	return c.empty(http.StatusNoContent)
}

// rotateSecret is POST /webhook-endpoints/{endpoint_id}/rotate-secret.
func (c hookHandlers) rotateSecret() error {
	id, err := c.endpointID()
	if err != nil {
		return err
	}
	var req struct {
		rotateRequest
		Secret *string `json:"secret"`
	}
	if err := c.decode(&req); err != nil {
		return err
	}
	overlap := webhook.DefaultOverlap
	if n := req.OverlapSeconds; n != nil {
		// Limit it to just outside the bounds, so that the product cannot overflow.
		overlap = time.Duration(max(-1, min(*n, int64(webhook.MaxOverlap/time.Second)+1))) * time.Second
	}
	e, secret, err := c.s.Endpoints.Rotate(c.auditContext(), c.session.Client.ID, id, overlap, req.Secret, c.requester())
	if err != nil {
		return err
	}
	return c.newSecret(http.StatusOK, e, secret)
}

// appendEndpoint appends an endpoint and leaves the object open.
func appendEndpoint(b []byte, e *webhooks.Endpoint) []byte {
	b = e.AppendJSON(b)
	b = append(b, `,"old_secret_until":`...)
	b = e.OldUntil.AppendJSON(b)
	b = append(b, `,"backlog":`...)
	return strconv.AppendInt(b, e.Backlog, 10)
}
