package api

import (
	"context"
	"net/http"

	"till"
	"till/checkout"
	"till/engine"
	"till/internal/jsonx"
	"till/store"
	"till/store/checkouts"
)

// checkoutHandlers answer about orders that are paid on a page.
type checkoutHandlers struct{ *exchange }

func onCheckouts(handle func(checkoutHandlers) error) func(*exchange) error {
	return func(c *exchange) error { return handle(checkoutHandlers{c}) }
}

// createCheckout is POST /checkouts: one commit. Nobody is asked for money.
func (c checkoutHandlers) createCheckout() error {
	var req checkout.Request
	unknown, err := c.decodeKnown(&req)
	if err != nil {
		return err
	}
	req.Unknown = unknown
	who := engine.Client{Client: c.session.Client, Enabled: c.session.Enabled, Fees: c.session.Fees(), Full: c.checkTestQuota(), Caller: c.caller}
	created, err := c.s.Checkouts.Create(c.r.Context(), who, &req)
	if err != nil {
		return err
	}
	c.subject = created.Checkout.ID
	h := c.Header()
	h["Location"] = []string{c.s.BaseURL + "/checkouts/" + created.Checkout.ID.String()}
	if created.Replayed {
		h["Idempotent-Replayed"] = replayed
	}
	made := created.Checkout.AsCreated()
	b := made.AppendJSON(c.buffer(), c.s.Checkouts.URL(made), nil)
	b = append(b[:len(b)-1], `,"return_secret":`...)
	return c.json(http.StatusCreated, append(jsonx.AppendString(b, created.Secret), '}'))
}

// checkoutRef returns the client's checkout in the path. A malformed id is answered like an
// unknown one.
func (c checkoutHandlers) checkoutRef() (store.Ref, error) {
	id, err := till.ParseID(c.r.PathValue("checkout_id"))
	if err != nil {
		return store.Ref{}, &till.Error{Code: till.CodeCheckoutNotFound}
	}
	c.subject = id
	return store.Ref{Client: c.session.Client.ID, ID: id}, nil
}

// getCheckout is GET /checkouts/{checkout_id}.
func (c checkoutHandlers) getCheckout() error {
	ref, err := c.checkoutRef()
	if err != nil {
		return err
	}
	var row *checkouts.Row
	var asks []till.Ask
	err = c.readAndWait(ref, func(ctx context.Context, tx *store.Tx) (state string, final bool, err error) {
		if row, asks, err = checkout.Read(ctx, tx, ref); err != nil {
			return "", false, err
		}
		return string(row.State), row.State != till.CheckoutOpen, nil
	})
	if err != nil {
		return err
	}
	return c.checkout(row, asks)
}

// cancelCheckout is POST /checkouts/{checkout_id}/cancel.
func (c checkoutHandlers) cancelCheckout() error {
	ref, err := c.checkoutRef()
	if err != nil {
		return err
	}
	row, asks, err := c.s.Checkouts.Cancel(c.auditContext(), ref, c.session.Actor())
	if err != nil {
		return err
	}
	return c.checkout(row, asks)
}

func (c checkoutHandlers) checkout(row *checkouts.Row, asks []till.Ask) error {
	return c.json(http.StatusOK, row.AppendJSON(c.buffer(), c.s.Checkouts.URL(&row.Checkout), asks))
}

var checkoutQuery = []string{"state", "reference", "link_id", "from_date", "to_date", "limit", "offset", "order"}

// checkoutStates are the words of the filter.
var checkoutStates = func() (words []string) {
	for _, s := range till.CheckoutStates {
		words = append(words, string(s))
	}
	return words
}()

// listCheckouts is GET /checkouts.
func (c checkoutHandlers) listCheckouts() error {
	p := c.params()
	f := checkouts.Filter{State: till.CheckoutState(p.choice("state", checkoutStates...)), Reference: p.text("reference", maxReferenceFilter),
		From: p.time("from_date"), To: p.time("to_date")}
	if link := p.id("link_id"); link != nil {
		f.Link = *link
	}
	page := p.page()
	if err := p.err(); err != nil {
		return err
	}
	var rows []*checkouts.Row
	var total int64
	var asks map[store.Ref][]till.Ask
	err := c.view(func(ctx context.Context, tx *store.Tx) (err error) {
		if rows, total, err = checkouts.List(ctx, tx, c.session.Client.ID, f, page); err != nil {
			return err
		}
		refs := make([]store.Ref, len(rows))
		for i, row := range rows {
			refs[i] = row.Ref()
		}
		asks, err = checkouts.AsksOf(ctx, tx, refs)
		return err
	})
	if err != nil {
		return err
	}
	b := appendItems(c.buffer(), rows, func(b []byte, row *checkouts.Row) []byte {
		return row.AppendJSON(b, c.s.Checkouts.URL(&row.Checkout), asks[row.Ref()])
	})
	return c.json(http.StatusOK, appendPage(b, total, page.Limit, page.Offset))
}
