package webhook

import (
	"context"
	"crypto/subtle"
	"errors"

	"till"
	"till/store"
	"till/store/webhooks"
)

var badSecret = till.FieldError{Pointer: "/secret", Code: till.FieldInvalidFormat,
	Detail: "A secret is whsec_ and the base64 of 24 to 64 random bytes."}

// Created is an endpoint with its secret, which is shown this once.
type Created struct {
	Endpoint *webhooks.Endpoint
	Secret   Secret
	Replayed bool // it was there already, with this address and this secret
}

// sameEndpoint returns the endpoint that a request with the client's own secret made
// before, nil if there is none.
func (s *Endpoints) sameEndpoint(all []*webhooks.Endpoint, r *Request, secret Secret) *webhooks.Endpoint {
	if r.Secret == nil {
		return nil
	}
	for _, e := range all {
		if e.URL == *r.URL && s.hasSecret(e, secret) {
			return e
		}
	}
	return nil
}

// hasSecret reports whether an endpoint's current secret is the given one. A secret
// that does not open is another one.
func (s *Endpoints) hasSecret(e *webhooks.Endpoint, secret Secret) bool {
	has, err := s.Secrets.Open(e.Secret, e.ClientID, e.ID)
	return err == nil && subtle.ConstantTimeCompare(has, secret) == 1
}

// Holds reports whether a text is the current secret of an endpoint.
func (s *Endpoints) Holds(e *webhooks.Endpoint, text string) bool {
	secret, err := ParseSecret(text)
	return err == nil && s.hasSecret(e, secret)
}

// SignatureOf returns what an attempt to deliver a body was signed with, for who compares it
// with what arrived; "" if the endpoint was changed since, because its secret may be
// another one.
func (s *Endpoints) SignatureOf(e *webhooks.Endpoint, event till.ID, sentAt till.Time, body []byte) string {
	if sentAt < e.UpdatedAt {
		return ""
	}
	k, err := openSecrets(s.Secrets, e)
	if err != nil {
		return ""
	}
	return Sign(event.String(), sentAt.Std(), body, k.at(sentAt)...).Get(HeaderSignature)
}

// DisableAsFailing does at once what five days of failures do: it takes the endpoint
// out of service, notifies its client and opens a case. It is for test clients.
func (s *Endpoints) DisableAsFailing(ctx context.Context, client, id till.ID, actor string) (*webhooks.Endpoint, error) {
	var e *webhooks.Endpoint
	err := s.auditedEndpoint(ctx, client, id, actor, func(ctx context.Context, tx *store.Tx, locked *webhooks.Endpoint, h *store.Head, at till.Time) (auditEntry, error) {
		if e = locked; !e.Enabled {
			return auditEntry{}, nil
		}
		if e.FailingSince.IsZero() {
			e.FailingSince = at
		}
		b := &recording{ctx: ctx, tx: tx, heads: map[till.ID]*store.Head{client: h}}
		if err := b.disable(e, till.DisabledAsFailing); err != nil {
			return auditEntry{}, err
		}
		e.NextRetry, e.LastEvent = 0, h.LastEvent
		return auditEntry{"webhook_endpoint.disable", id, "as if it had failed for five days"},
			errors.Join(webhooks.SaveEndpoints(ctx, tx, []*webhooks.Endpoint{e}), tx.OpenCases(ctx, b.cases), tx.InsertEvents(ctx, b.events))
	})
	return e, err
}
