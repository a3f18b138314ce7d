package checkouts

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

var selectOfPhone = db.Define(db.SQL{Name: "checkouts.selectOfPhone",
	SQLite: `SELECT id FROM checkouts WHERE client_id = $1 AND phone = $2 AND id > $3
		UNION SELECT checkout_id FROM checkout_asks WHERE client_id = $1 AND phone = $2 AND checkout_id > $3 ORDER BY 1 LIMIT $4`})

var eraseCheckout = db.Define(db.SQL{Name: "checkouts.erase",
	SQLite: `UPDATE checkouts SET phone = $1, body_hash = $2, body_version = $3, document = $4, erased_at = $5
		WHERE client_id = $6 AND id = $7 AND state <> 'open'`})

var eraseAsk = db.Define(db.SQL{Name: "asks.erase",
	SQLite: `UPDATE checkout_asks SET phone = $1 WHERE client_id = $2 AND checkout_id = $3 AND n = $4`})

// OfPhone returns up to limit checkouts of a client, after one of them, that name a phone or
// have asked it, by id.
func OfPhone(ctx context.Context, tx *store.Tx, client till.ID, phone string, after till.ID, limit int) ([]till.ID, error) {
	return db.ReadAll(ctx, tx.DB(), selectOfPhone, []any{client[:], phone, after[:], limit}, func(r db.Row) (id till.ID, err error) {
		err = r.Scan(db.ID(&id))
		return id, err
	})
}

// Erase writes what a checkout that has ended has without a person: its phone, its document and
// its body's hash. The caller has locked the client's head.
func Erase(ctx context.Context, tx *store.Tx, c *Row) error {
	_, err := tx.DB().Exec(ctx, eraseCheckout, db.OrNull(c.Phone), c.BodyHash[:], c.BodyVersion, c.Document, int64(c.ErasedAt), c.ClientID[:], c.ID[:])
	return err
}

// EraseAsk writes what an ask has instead of its phone. Its key is derived from other things, so
// its payment is found as before. The caller has locked the client's head.
func EraseAsk(ctx context.Context, tx *store.Tx, a *till.Ask) error {
	_, err := tx.DB().Exec(ctx, eraseAsk, a.Phone, a.ClientID[:], a.CheckoutID[:], a.N)
	return err
}
