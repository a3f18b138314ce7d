package api

import (
	"context"
	"net/http"

	"till"
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
	return c.answer(http.StatusOK, listOf(wallets, walletOf))
}

type wallet struct {
	ID           till.ID   `json:"id"`
	Currency     string    `json:"currency"`
	Balance      int64     `json:"balance,string"`
	Available    int64     `json:"available,string"`
	Reserved     int64     `json:"reserved,string"`
	Owed         int64     `json:"owed,string"`
	LastSequence int64     `json:"last_transaction_sequence"`
	UpdatedAt    till.Time `json:"updated_at"`
}

func walletOf(w *ledger.Wallet) wallet {
	return wallet{w.ID, w.Currency, w.Balance, w.Available(), w.Reserved, w.Owed, w.LastSequence, w.UpdatedAt}
}
