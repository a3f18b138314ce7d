package till

import (
	"context"
	"errors"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Payments are the calls about payments.
type Payments struct{ c *Client }

// PaymentFilter narrows a list of payments; what is empty does not.
type PaymentFilter struct {
	Status, Method    string
	From, To          Timestamp // both inclusive
	Reference         string
	IdempotencyKey    string
	ProviderReference string
	OldestFirst       bool
	Limit, Offset     int // of Page
}

func (f PaymentFilter) query() url.Values {
	q := url.Values{}
	set(q, "status", f.Status)
	set(q, "method", f.Method)
	set(q, "from_date", string(f.From))
	set(q, "to_date", string(f.To))
	set(q, "reference", f.Reference)
	set(q, "idempotency_key", f.IdempotencyKey)
	set(q, "provider_reference", f.ProviderReference)
	paging(q, f.OldestFirst, f.Limit, f.Offset)
	return q
}

func paging(q url.Values, oldestFirst bool, limit, offset int) {
	if oldestFirst {
		q.Set("order", "asc")
	}
	if limit != 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	if offset != 0 {
		q.Set("offset", strconv.Itoa(offset))
	}
}

// Create asks a customer for money. The key must be stored before: [Teller] does
// that. The answer is not final.
func (s *Payments) Create(ctx context.Context, p CreatePayment) (*Payment, error) {
	if p.IdempotencyKey == "" {
		return nil, ErrNoIdempotent
	}
	body, err := render(p)
	if err != nil {
		return nil, err
	}
	return create(ctx, s.c, request{op: opCreatePayment, body: body, key: p.IdempotencyKey}, paymentOf, s.byKey)
}

// create posts a body with a key. If a try without an answer leaves open what
// happened, it finds by the key what the body has made.
func create[A any](ctx context.Context, c *Client, r request, answer func(*tried, request) (*A, error), byKey func(context.Context, string) (*A, error)) (*A, error) {
	t, err := c.call(ctx, r)
	var look *lookFirst
	if errors.As(err, &look) {
		found, err := byKey(ctx, r.key)
		switch {
		case err != nil:
			return nil, look.unknown
		case found == nil:
			return nil, look.absent
		}
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	return answer(t, r)
}

// paymentOf reads the answer to a create. JSON of something else, as a portal
// sends it, is no answer.
func paymentOf(t *tried, r request) (*Payment, error) {
	p, err := decode[Payment](t, r)
	if err == nil && (p.ID == "" || !strings.EqualFold(p.IdempotencyKey, r.key)) {
		t.reason = reasonNotJSON
		return nil, failure(verdictUnclear, t, r.key, 1)
	}
	return p, err
}

// byKey finds the payment that a key made; nil if there is none.
func (s *Payments) byKey(ctx context.Context, key string) (*Payment, error) {
	page, err := s.Page(ctx, PaymentFilter{IdempotencyKey: key})
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

// Get reads a payment.
func (s *Payments) Get(ctx context.Context, id string) (*Payment, error) { return s.get(ctx, id, 0) }

// Await reads a payment, and answers on a change of its status, or after wait, at most 30
// seconds. A service that cannot wait answers at once.
func (s *Payments) Await(ctx context.Context, id string, wait time.Duration) (*Payment, error) {
	return s.get(ctx, id, min(wait, maxWait))
}

// get reads a payment, and lets the service wait for a change of its status
// where the service can.
func (s *Payments) get(ctx context.Context, id string, wait time.Duration) (*Payment, error) {
	return getWaiting[Payment](ctx, s.c, opGetPayment, id, wait)
}

// maxWait is how long the service waits at most.
const maxWait = 30 * time.Second

// getWaiting reads one thing. A service that does not know the parameter wait
// says so once, and is not asked again.
func getWaiting[A any](ctx context.Context, c *Client, op operation, id string, wait time.Duration) (*A, error) {
	r := request{op: op, params: []string{id}}
	if wait < time.Second || c.noLongPoll.Load() {
		return read[A](ctx, c, r)
	}
	r.wait, r.query = wait, url.Values{"wait": {strconv.Itoa(int(wait / time.Second))}}
	a, err := read[A](ctx, c, r)
	var refused *Refused
	if errors.As(err, &refused) && refused.Code == CodeInvalidParameter {
		c.noLongPoll.Store(true)
		r.wait, r.query = 0, nil
		return read[A](ctx, c, r)
	}
	return a, err
}

// Page lists payments, newest first, with their total.
func (s *Payments) Page(ctx context.Context, f PaymentFilter) (*PaymentPage, error) {
	return read[PaymentPage](ctx, s.c, request{op: opListPayments, query: f.query()})
}

// All goes through all payments that match, each once, whatever changes
// meanwhile.
func (s *Payments) All(ctx context.Context, f PaymentFilter) iter.Seq2[*Payment, error] {
	f.Limit, f.Offset = 0, 0
	return all(ctx, f.query(), func(ctx context.Context, q url.Values) (page[Payment], error) {
		p, err := read[PaymentPage](ctx, s.c, request{op: opListPayments, query: q})
		if err != nil {
			return page[Payment]{}, err
		}
		return page[Payment]{items: p.Items}, nil
	}, func(p *Payment) string { return p.ID }, func(p *Payment) Timestamp { return p.CreatedAt })
}

// Attempts lists the calls to the operator.
func (s *Payments) Attempts(ctx context.Context, id string) (*AttemptList, error) {
	return read[AttemptList](ctx, s.c, request{op: opListPaymentAttempts, params: []string{id}})
}

// Events lists the events of a payment.
func (s *Payments) Events(ctx context.Context, id string) (*EventList, error) {
	return read[EventList](ctx, s.c, request{op: opListPaymentEvents, params: []string{id}})
}
