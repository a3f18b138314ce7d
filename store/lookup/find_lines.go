package lookup

import (
	"context"

	"till"
	"till/internal/db"
	"till/ledger"
	"till/store"
)

// Each client's own index is probed, of one client or of all, in one statement.
var selectLinesBy = map[FindColumn]*db.SQL{}

func init() {
	for _, column := range []FindColumn{FindID, FindReference} {
		where := `p.client_id = c.client_id AND p.` + string(column) + ` = $3`
		selectLinesBy[column] = db.Define(db.SQL{Name: "find.lines." + string(column),
			SQLite: `SELECT p.client_id, ` + store.TransactionColumns + ` FROM clients c CROSS JOIN transactions p WHERE c.client_id BETWEEN $1 AND $2 AND ` + where + ` LIMIT $4`,
			Postgres: `SELECT f.* FROM (SELECT client_id FROM clients WHERE client_id BETWEEN $1 AND $2) AS c,
				LATERAL (SELECT p.client_id, ` + store.TransactionColumns + ` FROM transactions p WHERE ` + where + ` LIMIT $4) AS f LIMIT $4`})
	}
}

// LinesBy returns up to limit lines of wallets with an id or a reference: of one client,
// or of all if it is till.House. The value of an id is its 16 bytes.
func LinesBy(ctx context.Context, tx *store.Tx, client till.ID, column FindColumn, value any, limit int) ([]*ledger.Transaction, error) {
	lo, hi := client, client
	if client == till.House {
		hi = till.LastID(1<<47*1000 - 1)
	}
	return db.ReadAll(ctx, tx.DB(), selectLinesBy[column], []any{lo[:], hi[:], value, limit}, func(r db.Row) (*ledger.Transaction, error) {
		t := &ledger.Transaction{}
		return t, r.Scan(append([]any{db.ID(&t.ClientID)}, store.TransactionDests(t)...)...)
	})
}
