package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"till"
	"till/internal/jsonx"
	"till/ledger"
	"till/store"
)

// listWallets is GET /wallets.
func (c *call) listWallets() error {
	var wallets []*ledger.Wallet
	err := c.view(func(ctx context.Context, tx *store.Tx) (err error) {
		wallets, err = tx.Wallets(ctx, c.session.Client.ID)
		return err
	})
	if err != nil {
		return err
	}
	if c.session.Client.Mode == till.Live {
		wallets = c.withoutUseless(wallets)
	}
	return c.json(http.StatusOK, append(appendItems(c.buf(), wallets, appendWallet), '}'))
}

// withoutUseless leaves out wallets that nothing ever happened to, in currencies
// that no route of the client leads to: a method's wallets are made for all of
// its countries.
func (c *call) withoutUseless(wallets []*ledger.Wallet) []*ledger.Wallet {
	served := map[string]bool{}
	for _, m := range c.offers() {
		for i, k := range m.Markets {
			served[k.Currency] = served[k.Currency] || m.serves(i)
		}
	}
	return slices.DeleteFunc(wallets, func(w *ledger.Wallet) bool {
		return !served[w.Currency] && w.LastSequence == 0 && w.Balance == 0 && w.Reserved == 0 && w.Owed == 0
	})
}

func appendWallet(b []byte, w *ledger.Wallet) []byte {
	b = append(b, `{"id":`...)
	b = appendID(b, w.ID)
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
	b = appendTime(b, w.UpdatedAt)
	return append(b, '}')
}
