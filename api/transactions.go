package api

import (
	"context"
	"net/http"

	"till"
	"till/books"
	"till/ledger"
	"till/store"
)

var transactionQuery = []string{
	"type", "currency", "payment_id", "payout_id", "refund_id", "reference", "from_date", "to_date", "limit", "offset", "order",
}

// listTransactions is GET /transactions: a page, or the whole statement as CSV or JSON
// Lines if the Accept header prefers that.
func (c *exchange) listTransactions() error {
	p := c.params()
	f := store.TransactionFilter{
		Type:      p.choice("type", ledger.TransactionTypes...),
		Currency:  p.text("currency", maxCurrencyFilter),
		Reference: p.text("reference", maxReferenceFilter),
		From:      p.time("from_date"),
		To:        p.time("to_date"),
	}
	payment, payout, refund := p.id("payment_id"), p.id("payout_id"), p.id("refund_id")
	page := p.page()
	_, limited := p.get("limit")
	_, skipped := p.get("offset")
	_, ordered := p.get("order")
	if err := p.err(); err != nil {
		return err
	}
	possible := setIDFilter(payment, &f.PaymentID) && setIDFilter(payout, &f.PayoutID) && setIDFilter(refund, &f.RefundID)
	e := exportOf(c.r.Header["Accept"])
	if e != nil {
		if !ordered {
			page.Ascending = true // a statement begins with the oldest
		}
		if possible && !limited && !skipped {
			return c.exportAll(e, books.Statement{Client: c.session.Client.ID, Filter: f, NewestTop: !page.Ascending, Format: e.format})
		}
	}
	var ts []*ledger.Transaction
	var total int64
	if possible {
		err := c.view(func(ctx context.Context, tx *store.Tx) (err error) {
			ts, total, err = tx.ListTransactions(ctx, c.session.Client.ID, f, page)
			return err
		})
		if err != nil {
			return err
		}
	}
	if e != nil {
		return c.exportPage(e, ts)
	}
	b := appendItems(c.buffer(), ts, books.AppendTransaction)
	return c.json(http.StatusOK, appendPage(b, total, page.Limit, page.Offset))
}

// setIDFilter sets a filter by id. It reports false for the zero id, which nothing has, and
// which the store would take for no filter.
func setIDFilter(id *till.ID, filter *till.ID) bool {
	if id == nil {
		return true
	}
	*filter = *id
	return !id.IsZero()
}
