package till

import (
	"context"
	"iter"
	"net/url"
	"strings"
	"time"
)

// Refunds are the calls about refunds.
type Refunds struct{ c *Client }

// RefundFilter narrows a list of refunds; what is empty does not.
type RefundFilter struct {
	Status, Method    string
	From, To          Timestamp // both inclusive
	Reference         string
	IdempotencyKey    string
	ProviderReference string
	PaymentID         string
	OldestFirst       bool
	Limit, Offset     int // of Page
}

func (f RefundFilter) query() url.Values {
	q := PaymentFilter{f.Status, f.Method, f.From, f.To, f.Reference, f.IdempotencyKey, f.ProviderReference, f.OldestFirst, f.Limit, f.Offset}.query()
	set(q, "payment_id", f.PaymentID)
	return q
}

// Create gives a payment back, to the number that paid it. The key must be stored before.
// The answer is not final.
func (s *Refunds) Create(ctx context.Context, p CreateRefund) (*Refund, error) {
	if p.IdempotencyKey == "" {
		return nil, ErrNoIdempotent
	}
	body, err := render(p)
	if err != nil {
		return nil, err
	}
	return create(ctx, s.c, request{op: opCreateRefund, body: body, key: p.IdempotencyKey}, refundOf, s.byKey)
}

// refundOf reads the answer to a create.
func refundOf(t *tried, r request) (*Refund, error) {
	p, err := decode[Refund](t, r)
	if err == nil && (p.ID == "" || !strings.EqualFold(p.IdempotencyKey, r.key)) {
		t.reason = reasonNotJSON
		return nil, failure(verdictUnclear, t, r.key, 1)
	}
	return p, err
}

// byKey finds the refund that a key made; nil if there is none.
func (s *Refunds) byKey(ctx context.Context, key string) (*Refund, error) {
	page, err := s.Page(ctx, RefundFilter{IdempotencyKey: key})
	if err != nil {
		return nil, err
	}
	for i := range page.Items {
		if strings.EqualFold(page.Items[i].IdempotencyKey, key) {
			return &page.Items[i], nil
		}
	}
	return nil, nil
}

// Get reads a refund.
func (s *Refunds) Get(ctx context.Context, id string) (*Refund, error) { return s.get(ctx, id, 0) }

// Await reads a refund, and answers on a change of its status, or after wait, at most 30
// seconds. A service that cannot wait answers at once.
func (s *Refunds) Await(ctx context.Context, id string, wait time.Duration) (*Refund, error) {
	return s.get(ctx, id, min(wait, maxWait))
}

func (s *Refunds) get(ctx context.Context, id string, wait time.Duration) (*Refund, error) {
	return getWaiting[Refund](ctx, s.c, opGetRefund, id, wait)
}

// Cancel ends a refund of which nothing was sent.
func (s *Refunds) Cancel(ctx context.Context, id string) (*Refund, error) {
	return read[Refund](ctx, s.c, request{op: opCancelRefund, params: []string{id}})
}

// Page lists refunds, newest first, with their total.
func (s *Refunds) Page(ctx context.Context, f RefundFilter) (*RefundPage, error) {
	return read[RefundPage](ctx, s.c, request{op: opListRefunds, query: f.query()})
}

// All goes through all refunds that match, each once, whatever changes
// meanwhile.
func (s *Refunds) All(ctx context.Context, f RefundFilter) iter.Seq2[*Refund, error] {
	f.Limit, f.Offset = 0, 0
	return all(ctx, f.query(), func(ctx context.Context, q url.Values) (page[Refund], error) {
		p, err := read[RefundPage](ctx, s.c, request{op: opListRefunds, query: q})
		if err != nil {
			return page[Refund]{}, err
		}
		return page[Refund]{items: p.Items}, nil
	}, func(p *Refund) string { return p.ID }, func(p *Refund) Timestamp { return p.CreatedAt })
}

// Attempts lists the calls to the operator.
func (s *Refunds) Attempts(ctx context.Context, id string) (*AttemptList, error) {
	return read[AttemptList](ctx, s.c, request{op: opListRefundAttempts, params: []string{id}})
}

// Events lists the events of a refund.
func (s *Refunds) Events(ctx context.Context, id string) (*EventList, error) {
	return read[EventList](ctx, s.c, request{op: opListRefundEvents, params: []string{id}})
}

// Of lists the refunds of a payment, the newest first.
func (s *Refunds) Of(ctx context.Context, payment string) (*RefundList, error) {
	return read[RefundList](ctx, s.c, request{op: opListPaymentRefunds, params: []string{payment}})
}
