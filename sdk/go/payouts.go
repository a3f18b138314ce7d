package till

import (
	"context"
	"iter"
	"net/url"
	"strings"
	"time"
)

// Payouts are the calls about payouts.
type Payouts struct{ c *Client }

// PayoutFilter narrows a list of payouts; what is empty does not.
type PayoutFilter struct {
	Status, Method    string
	From, To          Timestamp // both inclusive
	Reference         string
	IdempotencyKey    string
	ProviderReference string
	OldestFirst       bool
	Limit, Offset     int // of Page
}

func (f PayoutFilter) query() url.Values { return PaymentFilter(f).query() }

// Create sends money to a recipient. The key must be stored before: [Teller] does
// that. The answer is not final.
func (s *Payouts) Create(ctx context.Context, p CreatePayout) (*Payout, error) {
	if p.IdempotencyKey == "" {
		return nil, ErrNoIdempotent
	}
	body, err := render(p)
	if err != nil {
		return nil, err
	}
	return create(ctx, s.c, request{op: opCreatePayout, body: body, key: p.IdempotencyKey}, payoutOf, s.byKey)
}

// payoutOf reads the answer to a create.
func payoutOf(t *tried, r request) (*Payout, error) {
	p, err := decode[Payout](t, r)
	if err == nil && (p.ID == "" || !strings.EqualFold(p.IdempotencyKey, r.key)) {
		t.reason = reasonNotJSON
		return nil, failure(verdictUnclear, t, r.key, 1)
	}
	return p, err
}

// byKey finds the payout that a key made; nil if there is none.
func (s *Payouts) byKey(ctx context.Context, key string) (*Payout, error) {
	page, err := s.Page(ctx, PayoutFilter{IdempotencyKey: key})
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

// Get reads a payout.
func (s *Payouts) Get(ctx context.Context, id string) (*Payout, error) { return s.get(ctx, id, 0) }

// Await reads a payout, and answers on a change of its status, or after wait, at most 30
// seconds. A service that cannot wait answers at once.
func (s *Payouts) Await(ctx context.Context, id string, wait time.Duration) (*Payout, error) {
	return s.get(ctx, id, min(wait, maxWait))
}

func (s *Payouts) get(ctx context.Context, id string, wait time.Duration) (*Payout, error) {
	return getWaiting[Payout](ctx, s.c, opGetPayout, id, wait)
}

// Cancel ends a payout of which nothing was sent.
func (s *Payouts) Cancel(ctx context.Context, id string) (*Payout, error) {
	return read[Payout](ctx, s.c, request{op: opCancelPayout, params: []string{id}})
}

// Page lists payouts, newest first, with their total.
func (s *Payouts) Page(ctx context.Context, f PayoutFilter) (*PayoutPage, error) {
	return read[PayoutPage](ctx, s.c, request{op: opListPayouts, query: f.query()})
}

// All goes through all payouts that match, each once, whatever changes
// meanwhile.
func (s *Payouts) All(ctx context.Context, f PayoutFilter) iter.Seq2[*Payout, error] {
	f.Limit, f.Offset = 0, 0
	return all(ctx, f.query(), func(ctx context.Context, q url.Values) (page[Payout], error) {
		p, err := read[PayoutPage](ctx, s.c, request{op: opListPayouts, query: q})
		if err != nil {
			return page[Payout]{}, err
		}
		return page[Payout]{items: p.Items}, nil
	}, func(p *Payout) string { return p.ID }, func(p *Payout) Timestamp { return p.CreatedAt })
}

// Attempts lists the calls to the operator.
func (s *Payouts) Attempts(ctx context.Context, id string) (*AttemptList, error) {
	return read[AttemptList](ctx, s.c, request{op: opListPayoutAttempts, params: []string{id}})
}

// Events lists the events of a payout.
func (s *Payouts) Events(ctx context.Context, id string) (*EventList, error) {
	return read[EventList](ctx, s.c, request{op: opListPayoutEvents, params: []string{id}})
}
