package proof

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

var sumWalletLines = db.Define(db.SQL{Name: "wallets.sumOfLines",
	SQLite: `SELECT count(*), coalesce(max(sequence), 0),
		CAST(coalesce(sum(CASE direction WHEN 'credit' THEN amount ELSE -amount END), 0) AS BIGINT)
		FROM transactions WHERE client_id = $1 AND wallet_id = $2`})

// LineSum is what the lines of a wallet say.
type LineSum struct {
	Lines   int64
	Last    int64 // the last sequence
	Balance int64
}

// LineSum reads all lines of a wallet.
func SumLines(ctx context.Context, tx *store.Tx, client, wallet till.ID) (s LineSum, err error) {
	_, err = tx.DB().QueryRow(ctx, sumWalletLines, []any{client[:], wallet[:]}, &s.Lines, &s.Last, &s.Balance)
	return s, err
}
