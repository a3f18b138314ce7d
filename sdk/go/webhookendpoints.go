package till

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"net/url"
	"strconv"
)

// WebhookEndpoints are the calls about addresses that events are posted to. To
// receive them, see [Teller.Webhook].
type WebhookEndpoints struct{ c *Client }

// Create registers an address. Its secret is in the answer, this once. With a Secret
// of your own (see [NewSecret]) the call is repeated like a read: it finds what
// the first try made. Without one, a create without an answer is not repeated:
// list the endpoints, and delete the one whose secret you have not seen.
func (s *WebhookEndpoints) Create(ctx context.Context, e CreateWebhookEndpoint) (*NewWebhookEndpoint, error) {
	return send[NewWebhookEndpoint](ctx, s.c, withSecret(opCreateWebhookEndpoint, e.Secret), e)
}

// withSecret is a call that may be repeated if the caller drew the secret.
func withSecret(op operation, secret *string) operation {
	if secret != nil {
		op.repeat = repeatSafe
	}
	return op
}

// NewSecret draws a secret for an endpoint: store it, then send it.
func NewSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it never fails; it ends the program instead
	return secretPrefix + base64.StdEncoding.EncodeToString(b[:])
}

// List returns all endpoints.
func (s *WebhookEndpoints) List(ctx context.Context) (*WebhookEndpointList, error) {
	return read[WebhookEndpointList](ctx, s.c, request{op: opListWebhookEndpoints})
}

// Get reads an endpoint.
func (s *WebhookEndpoints) Get(ctx context.Context, id string) (*WebhookEndpoint, error) {
	return read[WebhookEndpoint](ctx, s.c, request{op: opGetWebhookEndpoint, params: []string{id}})
}

// Update changes what is set.
func (s *WebhookEndpoints) Update(ctx context.Context, id string, e UpdateWebhookEndpoint) (*WebhookEndpoint, error) {
	return send[WebhookEndpoint](ctx, s.c, opUpdateWebhookEndpoint, e, id)
}

// Delete removes an endpoint.
func (s *WebhookEndpoints) Delete(ctx context.Context, id string) error {
	_, err := s.c.call(ctx, request{op: opDeleteWebhookEndpoint, params: []string{id}})
	return plain(err)
}

// RotateSecret gives an endpoint a new secret. With a Secret of your own the call
// is repeated like a read.
func (s *WebhookEndpoints) RotateSecret(ctx context.Context, id string, r RotateWebhookSecret) (*NewWebhookEndpoint, error) {
	return send[NewWebhookEndpoint](ctx, s.c, withSecret(opRotateWebhookSecret, r.Secret), r, id)
}

// Test posts a test event.
func (s *WebhookEndpoints) Test(ctx context.Context, id string) (*WebhookTest, error) {
	return read[WebhookTest](ctx, s.c, request{op: opTestWebhookEndpoint, params: []string{id}})
}

// Deliveries lists what became of each event, newest first. Status "" and before
// 0 mean any.
func (s *WebhookEndpoints) Deliveries(ctx context.Context, id, status string, limit int, before int64) (*DeliveryList, error) {
	q := url.Values{}
	set(q, "status", status)
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	if before > 0 {
		q.Set("before", strconv.FormatInt(before, 10))
	}
	return read[DeliveryList](ctx, s.c, request{op: opListDeliveries, params: []string{id}, query: q})
}

// Replay posts a stretch of the log again.
func (s *WebhookEndpoints) Replay(ctx context.Context, id string, r Replay) (*Replayed, error) {
	return send[Replayed](ctx, s.c, opReplayEvents, r, id)
}

// send makes a call with a body.
func send[A any](ctx context.Context, c *Client, op operation, body any, params ...string) (*A, error) {
	b, err := render(body)
	if err != nil {
		return nil, err
	}
	return read[A](ctx, c, request{op: op, params: params, body: b})
}
