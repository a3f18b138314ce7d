package api

import (
	"context"
	"net/http"
	"strconv"

	"till/internal/jsonx"
	"till/ledger"
	"till/store"
)

// listWallets is GET /wallets. Wallets are created with the methods, for all of their
// countries; unused ones are not shown.
func (c *exchange) listWallets() error {
	var wallets []*ledger.Wallet
	err := c.view(func(ctx context.Context, tx *store.Tx) (err error) {
		wallets, err = tx.UsedWallets(ctx, c.session.Client.ID)
		return err
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, append(appendItems(c.buffer(), wallets, appendWallet), '}'))
}

func appendWallet(b []byte, w *ledger.Wallet) []byte {
	b = append(b, `{"id":`...)
	b = w.ID.AppendJSON(b)
	b = append(b, `,"currency":`...)
	b = jsonx.AppendString(b, w.Currency)
	b = append(b, `,"balance":`...)
	b = appendMinor(b, w.Balance)
	b = append(b, `,"available":`...)
	b = appendMinor(b, w.Available())
	b = append(b, `,"reserved":`...)
	b = appendMinor(b, w.Reserved)
	b = append(b, `,"owed":`...)
	b = appendMinor(b, w.Owed)
	b = append(b, `,"last_transaction_sequence":`...)
	b = strconv.AppendInt(b, w.LastSequence, 10)
	b = append(b, `,"updated_at":`...)
	b = w.UpdatedAt.AppendJSON(b)
	return append(b, '}')
}
