package till

import (
	"context"
	"iter"
	"net/url"
	"strings"
)

// Links are the calls about addresses that anybody can pay on.
type Links struct{ c *Client }

// LinkFilter narrows a list of links; what is empty does not.
type LinkFilter struct {
	Active        string    // "true" or "false"
	From, To      Timestamp // both inclusive
	OldestFirst   bool
	Limit, Offset int // of Page
}

func (f LinkFilter) query() url.Values {
	q := url.Values{}
	set(q, "active", f.Active)
	set(q, "from_date", string(f.From))
	set(q, "to_date", string(f.To))
	paging(q, f.OldestFirst, f.Limit, f.Offset)
	return q
}

// Create makes an address that anybody can pay on: each customer gets a checkout of their own.
// The key must be stored before. No money is asked by it: after [Unclear] make the same call
// with the same key again, which answers what the first one made.
func (s *Links) Create(ctx context.Context, p CreateLink) (*Link, error) {
	if p.IdempotencyKey == "" {
		return nil, ErrNoIdempotent
	}
	body, err := render(p)
	if err != nil {
		return nil, err
	}
	r := request{op: opCreateLink, body: body, key: p.IdempotencyKey}
	t, err := s.c.call(ctx, r)
	if err != nil {
		return nil, plain(err) // no list finds a link by its key
	}
	made, err := decode[Link](t, r)
	if err == nil && (made.ID == "" || !strings.EqualFold(made.IdempotencyKey, r.key)) {
		t.reason = reasonNotJSON
		return nil, failure(verdictUnclear, t, r.key, 1)
	}
	return made, err
}

// Get reads a link. What came in by it is the list of its checkouts.
func (s *Links) Get(ctx context.Context, id string) (*Link, error) {
	return read[Link](ctx, s.c, request{op: opGetLink, params: []string{id}})
}

// Update changes what is sent of a link and leaves the rest: its title and its end, and whether
// it is switched on. What is paid for never changes.
func (s *Links) Update(ctx context.Context, id string, p UpdateLink) (*Link, error) {
	return send[Link](ctx, s.c, opUpdateLink, p, id)
}

// Page lists links, newest first, with their total.
func (s *Links) Page(ctx context.Context, f LinkFilter) (*LinkPage, error) {
	return read[LinkPage](ctx, s.c, request{op: opListLinks, query: f.query()})
}

// All goes through all links that match, each once, whatever changes meanwhile.
func (s *Links) All(ctx context.Context, f LinkFilter) iter.Seq2[*Link, error] {
	f.Limit, f.Offset = 0, 0
	return all(ctx, f.query(), func(ctx context.Context, q url.Values) (page[Link], error) {
		p, err := read[LinkPage](ctx, s.c, request{op: opListLinks, query: q})
		if err != nil {
			return page[Link]{}, err
		}
		return page[Link]{items: p.Items}, nil
	}, func(p *Link) string { return p.ID }, func(p *Link) Timestamp { return p.CreatedAt })
}
