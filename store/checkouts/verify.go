package checkouts

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

var selectToVerify = db.Define(db.SQL{Name: "checkouts.verify",
	SQLite: `SELECT ` + rowColumns + ` FROM checkouts c WHERE c.client_id = $1 AND c.id > $2 ORDER BY c.id LIMIT $3`})

const strayAsks = `SELECT a.checkout_id FROM checkout_asks a LEFT JOIN checkouts c ON c.client_id = a.client_id AND c.id = a.checkout_id
	WHERE a.client_id = $1 AND c.id IS NULL LIMIT $2`

var selectStrayAsks = db.Define(db.SQL{Name: "checkouts.strayAsks",
	SQLite: strayAsks,
	Citus:  db.OfClient(strayAsks, "$1")})

// Each returns the next checkouts of a client beyond an id.
func Each(ctx context.Context, tx *store.Tx, client, after till.ID, limit int) ([]*Row, error) {
	return db.ReadAll(ctx, tx.DB(), selectToVerify, []any{client[:], after[:], limit}, func(r db.Row) (*Row, error) { return scanRow(r) })
}

// StrayAsks returns checkouts of which there are asks, and nothing else.
func StrayAsks(ctx context.Context, tx *store.Tx, client till.ID, limit int) ([]till.ID, error) {
	return db.ReadAll(ctx, tx.DB(), selectStrayAsks, []any{client[:], limit}, func(r db.Row) (id till.ID, err error) {
		err = r.Scan(db.ID(&id))
		return id, err
	})
}
