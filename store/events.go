package store

import (
	"context"
	"database/sql"

	"till"
)

// InsertEvents appends to the clients' logs. The sequences were given out by
// the locked heads. The events of creations come with InsertPayments.
func (tx *Tx) InsertEvents(ctx context.Context, events []*till.Event) error {
	args := make([][]any, len(events))
	for i, e := range events {
		code, message, retryable := failureArgs(e.FailureDetail)
		args[i] = []any{e.ClientID[:], e.Sequence, string(e.Kind), e.PaymentID[:], int64(e.CreatedAt), string(e.Status), int64(e.ExpiresAt),
			orNull(e.ProviderReference), orNull(e.FailureReason), code, message, retryable,
			string(e.Resolution.State), orNull(e.Resolution.LastCheckedAt), orNull(e.Resolution.NextCheckAt), e.Resolution.Attempts}
	}
	return tx.set(ctx, `INSERT INTO events (client_id, sequence, kind, subject_id, created_at, status, expires_at,
		provider_reference, failure_reason, failure_code, failure_message, failure_retryable, resolution, checked_at, next_check_at, calls)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, args)
}

// Events returns up to limit events of a client beyond a sequence, ascending.
func (tx *Tx) Events(ctx context.Context, client till.ID, after int64, limit int) ([]*till.Event, error) {
	var out []*till.Event
	err := tx.rows(ctx, `SELECT sequence, kind, subject_id, created_at, status, expires_at, provider_reference,
		failure_reason, failure_code, failure_message, failure_retryable, resolution, checked_at, next_check_at, calls
		FROM events WHERE client_id = ? AND sequence > ? ORDER BY sequence LIMIT ?`,
		[]any{client[:], after, limit}, func(r row) error {
			e := &till.Event{ClientID: client}
			var code, message string
			var retryable sql.NullBool
			err := r.Scan(&e.Sequence, &e.Kind, idDest(&e.PaymentID), &e.CreatedAt, &e.Status, &e.ExpiresAt, textDest(&e.ProviderReference),
				textDest(&e.FailureReason), textDest(&code), textDest(&message), &retryable,
				&e.Resolution.State, intDest(&e.Resolution.LastCheckedAt), intDest(&e.Resolution.NextCheckAt), &e.Resolution.Attempts)
			if e.FailureReason != "" {
				e.FailureDetail = &till.FailureDetail{ProviderCode: code, ProviderMessage: message, Retryable: retryable.Bool}
			}
			out = append(out, e)
			return err
		})
	return out, err
}
