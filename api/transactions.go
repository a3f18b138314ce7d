package api

import (
	"context"
	"net/http"
	"strconv"

	"till"
	"till/internal/jsonx"
	"till/ledger"
	"till/store"
)

var transactionQuery = []string{
	"type", "currency", "payment_id", "payout_id", "reference", "from_date", "to_date", "limit", "offset", "order",
}

// transactionTypes are the words that the type filter knows.
var transactionTypes = []string{
	"collection", "late_collection", "collection_reversal", "payout", "payout_reversal", "late_payout", "fee", "adjustment",
}

// listTransactions is GET /transactions.
func (c *call) listTransactions() error {
	p := c.params()
	f := store.TransactionFilter{
		Type:      p.choice("type", transactionTypes...),
		Currency:  p.text("currency", maxCurrencyFilter),
		Reference: p.text("reference", maxReferenceFilter),
		From:      p.time("from_date"),
		To:        p.time("to_date"),
	}
	payment, payout := p.id("payment_id"), p.id("payout_id")
	page := p.page()
	if err := p.err(); err != nil {
		return err
	}
	var ts []*ledger.Transaction
	var total int64
	if known(payment, &f.PaymentID) && known(payout, &f.PayoutID) {
		err := c.view(func(ctx context.Context, tx *store.Tx) (err error) {
			ts, total, err = tx.ListTransactions(ctx, c.session.Client.ID, f, page)
			return err
		})
		if err != nil {
			return err
		}
	}
	b := appendItems(c.buf(), ts, appendTransaction)
	return c.json(http.StatusOK, appendPage(b, total, page.Limit, page.Offset))
}

// known sets a filter by id. It reports false for the id of all zeros, which
// nothing has, and which the store would take for no filter.
func known(id *till.ID, filter *till.ID) bool {
	if id == nil {
		return true
	}
	*filter = *id
	return !id.IsZero()
}

func appendTransaction(b []byte, t *ledger.Transaction) []byte {
	b = append(b, `{"id":`...)
	b = appendID(b, t.ID)
	b = append(b, `,"sequence":`...)
	b = strconv.AppendInt(b, t.Sequence, 10)
	b = append(b, `,"wallet_id":`...)
	b = appendID(b, t.WalletID)
	b = append(b, `,"type":`...)
	b = jsonx.AppendString(b, t.Type)
	b = append(b, `,"direction":`...)
	b = jsonx.AppendString(b, t.Direction)
	b = append(b, `,"amount":`...)
	b = appendMoney(b, t.Amount)
	b = append(b, `,"balance_after":`...)
	b = appendMinor(b, t.BalanceAfter)
	b = append(b, `,"payment_id":`...)
	b = appendID(b, t.PaymentID)
	b = append(b, `,"payout_id":`...)
	b = appendID(b, t.PayoutID)
	b = append(b, `,"reference":`...)
	b = appendText(b, t.Reference)
	b = append(b, `,"provider_reference":`...)
	b = appendText(b, t.ProviderReference)
	b = append(b, `,"created_at":`...)
	b = appendTime(b, t.CreatedAt)
	return append(b, '}')
}
