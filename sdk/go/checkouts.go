package till

import (
	"context"
	"iter"
	"net/url"
	"strings"
	"time"
)

// Checkouts are the calls about orders that are paid on a page of the service.
type Checkouts struct{ c *Client }

// CheckoutFilter narrows a list of checkouts; what is empty does not.
type CheckoutFilter struct {
	State         string
	Reference     string
	LinkID        string    // that opened them
	From, To      Timestamp // both inclusive
	OldestFirst   bool
	Limit, Offset int // of Page
}

func (f CheckoutFilter) query() url.Values {
	q := url.Values{}
	set(q, "state", f.State)
	set(q, "reference", f.Reference)
	set(q, "link_id", f.LinkID)
	set(q, "from_date", string(f.From))
	set(q, "to_date", string(f.To))
	paging(q, f.OldestFirst, f.Limit, f.Offset)
	return q
}

// Create makes a page on which a customer pays one order. Send the customer to the URL of
// the answer, and keep its return secret with the order. The key must be stored before. No
// money is asked by it: after [Unclear] make the same call with the same key again, which
// answers what the first one made.
func (s *Checkouts) Create(ctx context.Context, p CreateCheckout) (*NewCheckout, error) {
	if p.IdempotencyKey == "" {
		return nil, ErrNoIdempotent
	}
	body, err := render(p)
	if err != nil {
		return nil, err
	}
	r := request{op: opCreateCheckout, body: body, key: p.IdempotencyKey}
	t, err := s.c.call(ctx, r)
	if err != nil {
		return nil, plain(err) // no list finds a checkout by its key
	}
	return newCheckoutOf(t, r)
}

// newCheckoutOf reads the answer to a create.
func newCheckoutOf(t *tried, r request) (*NewCheckout, error) {
	made, err := decode[NewCheckout](t, r)
	if err == nil && (made.ID == "" || !strings.EqualFold(made.IdempotencyKey, r.key)) {
		t.reason = reasonNotJSON
		return nil, failure(verdictUnclear, t, r.key, 1)
	}
	return made, err
}

// Get reads a checkout.
func (s *Checkouts) Get(ctx context.Context, id string) (*Checkout, error) {
	return s.Await(ctx, id, 0)
}

// Await reads a checkout, and answers on a change of its state, or after wait, at most 30
// seconds. A service that cannot wait answers at once.
func (s *Checkouts) Await(ctx context.Context, id string, wait time.Duration) (*Checkout, error) {
	return getWaiting[Checkout](ctx, s.c, opGetCheckout, id, min(wait, maxWait))
}

// Cancel ends a checkout of which no ask may still bring money.
func (s *Checkouts) Cancel(ctx context.Context, id string) (*Checkout, error) {
	return read[Checkout](ctx, s.c, request{op: opCancelCheckout, params: []string{id}})
}

// Page lists checkouts, newest first, with their total.
func (s *Checkouts) Page(ctx context.Context, f CheckoutFilter) (*CheckoutPage, error) {
	return read[CheckoutPage](ctx, s.c, request{op: opListCheckouts, query: f.query()})
}

// All goes through all checkouts that match, each once, whatever changes
// meanwhile.
func (s *Checkouts) All(ctx context.Context, f CheckoutFilter) iter.Seq2[*Checkout, error] {
	f.Limit, f.Offset = 0, 0
	return all(ctx, f.query(), func(ctx context.Context, q url.Values) (page[Checkout], error) {
		p, err := read[CheckoutPage](ctx, s.c, request{op: opListCheckouts, query: q})
		if err != nil {
			return page[Checkout]{}, err
		}
		return page[Checkout]{items: p.Items}, nil
	}, func(p *Checkout) string { return p.ID }, func(p *Checkout) Timestamp { return p.CreatedAt })
}
