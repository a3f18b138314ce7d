package store

import (
	"context"

	"till"
	"till/internal/db"
)

var selectAdjustment = db.Define(db.SQL{Name: "adjustments.select",
	SQLite: `SELECT entry_id, currency, amount, reason, actor, created_at FROM adjustments WHERE client_id = $1 AND id = $2`})

var insertAdjustment = db.Define(db.SQL{Name: "adjustments.insert",
	SQLite: `INSERT INTO adjustments (client_id, id, entry_id, currency, amount, reason, actor, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`})

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
	found, err := tx.db.QueryRow(ctx, selectAdjustment,
		[]any{ref.Client[:], ref.ID[:]}, idDest(&a.EntryID), &a.Amount.Currency, &a.Amount.Minor, &a.Reason, &a.Actor, &a.CreatedAt)
	if err != nil || !found {
		return nil, err
	}
	return a, nil
}

// InsertAdjustment records an adjustment. The database refuses a second one
// under its id.
func (tx *Tx) InsertAdjustment(ctx context.Context, a *Adjustment) error {
	_, err := tx.db.Exec(ctx, insertAdjustment,
		a.ClientID[:], a.ID[:], a.EntryID[:], a.Amount.Currency, a.Amount.Minor, a.Reason, a.Actor, int64(a.CreatedAt))
	return err
}
