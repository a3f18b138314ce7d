package store

import (
	"context"

	"till"
)

// Adjustment is a person's correction of a wallet. It never changes.
type Adjustment struct {
	ClientID  till.ID
	ID        till.ID // the person's own, so that a repeated command adjusts once
	EntryID   till.ID
	Amount    till.Money // a credit if positive, a debit if negative
	Reason    string
	Actor     string
	CreatedAt till.Time
}

// Adjustment returns a client's adjustment, nil if there is none.
func (tx *Tx) Adjustment(ctx context.Context, ref Ref) (*Adjustment, error) {
	a := &Adjustment{ClientID: ref.Client, ID: ref.ID}
	found, err := tx.one(ctx, `SELECT entry_id, currency, amount, reason, actor, created_at FROM adjustments WHERE client_id = ? AND id = ?`,
		[]any{ref.Client[:], ref.ID[:]}, idDest(&a.EntryID), &a.Amount.Currency, &a.Amount.Minor, &a.Reason, &a.Actor, &a.CreatedAt)
	if err != nil || !found {
		return nil, err
	}
	return a, nil
}

// InsertAdjustment records an adjustment. The database refuses a second one
// under its id.
func (tx *Tx) InsertAdjustment(ctx context.Context, a *Adjustment) error {
	_, err := tx.exec(ctx, `INSERT INTO adjustments (client_id, id, entry_id, currency, amount, reason, actor, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		a.ClientID[:], a.ID[:], a.EntryID[:], a.Amount.Currency, a.Amount.Minor, a.Reason, a.Actor, int64(a.CreatedAt))
	return err
}
