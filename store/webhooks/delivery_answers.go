package webhooks

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

// The rows are sorted by their keys: that is the order in which all lock them.
var selectOldAnswers = db.Define(db.SQL{Name: "deliveries.selectOldAnswers",
	SQLite: `SELECT client_id, endpoint_id, sequence, kind FROM
		(SELECT client_id, endpoint_id, sequence, kind FROM webhook_deliveries WHERE answer_text IS NOT NULL AND sent_at < $1 ORDER BY sent_at LIMIT $2) AS old
		ORDER BY client_id, endpoint_id, sequence, kind`})

// One row a statement: on Citus a write says its client.
var clearAnswer = db.Define(db.SQL{Name: "deliveries.clearAnswer",
	SQLite: `UPDATE webhook_deliveries SET answer_text = NULL WHERE client_id = $1 AND endpoint_id = $2 AND sequence = $3 AND kind = $4 AND answer_text IS NOT NULL AND sent_at < $5`})

// ClearAnswers removes the texts of up to limit receivers' answers to attempts before a
// time, and returns how many there were. The rest of the deliveries stays.
func ClearAnswers(ctx context.Context, tx *store.Tx, before till.Time, limit int) (int64, error) {
	var old [][]any
	err := tx.DB().Query(ctx, selectOldAnswers, []any{int64(before), limit}, func(r db.Row) error {
		var client, endpoint till.ID
		var sequence int64
		var kind string
		err := r.Scan(db.ID(&client), db.ID(&endpoint), &sequence, &kind)
		old = append(old, []any{client[:], endpoint[:], sequence, kind, int64(before)})
		return err
	})
	if err != nil || len(old) == 0 {
		return 0, err
	}
	return int64(len(old)), tx.DB().Defer(clearAnswer, old)
}
