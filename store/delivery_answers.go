package store

import (
	"context"

	"till"
	"till/internal/db"
)

var clearAnswers = db.Define(db.SQL{Name: "deliveries.clearAnswers",
	SQLite: `UPDATE webhook_deliveries SET answer_text = NULL WHERE (client_id, endpoint_id, sequence, kind) IN
		(SELECT client_id, endpoint_id, sequence, kind FROM webhook_deliveries WHERE answer_text IS NOT NULL AND sent_at < $1 ORDER BY sent_at LIMIT $2)`})

// ClearAnswers removes the texts of up to limit receivers' answers to attempts before a
// time, and returns how many there were. The rest of the deliveries stays.
func (tx *Tx) ClearAnswers(ctx context.Context, before till.Time, limit int) (int64, error) {
	return tx.db.Exec(ctx, clearAnswers, int64(before), limit)
}
