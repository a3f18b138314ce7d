package store

import (
	"context"

	"till"
)

// SpanWhy says what a stretch of the log is about.
type SpanWhy string

// Why a span was written.
const (
	SpanDisabled SpanWhy = "disabled" // happened while the endpoint was disabled
	SpanCatchUp  SpanWhy = "catch_up" // the same, and it is being sent now
	SpanReplay   SpanWhy = "replay"   // asked for by hand; worked off behind the live events
)

// Span is a stretch of the log and an endpoint, as one row however long.
type Span struct {
	ClientID, EndpointID, ID till.ID
	Why                      SpanWhy
	From, Next, To           int64 // Next is the first that is not dealt with; To is included
	CreatedAt, DoneAt        till.Time
}

const spanColumns = `endpoint_id, id, why, from_sequence, next_sequence, to_sequence, created_at, done_at`

// InsertSpan writes a new span.
func (tx *Tx) InsertSpan(ctx context.Context, s *Span) error {
	_, err := tx.exec(ctx, `INSERT INTO webhook_spans (client_id, `+spanColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		s.ClientID[:], s.EndpointID[:], s.ID[:], string(s.Why), s.From, s.Next, s.To, int64(s.CreatedAt), orNull(s.DoneAt))
	return err
}

// SaveSpan writes back how far a span has come.
func (tx *Tx) SaveSpan(ctx context.Context, s *Span) error {
	_, err := tx.exec(ctx, `UPDATE webhook_spans SET why = ?, next_sequence = ?, to_sequence = ?, done_at = ? WHERE client_id = ? AND endpoint_id = ? AND id = ?`,
		string(s.Why), s.Next, s.To, orNull(s.DoneAt), s.ClientID[:], s.EndpointID[:], s.ID[:])
	return err
}

// OpenSpans returns up to limit spans of an endpoint that are not done,
// oldest first: those that nobody has asked for, or those that are to be sent.
func (tx *Tx) OpenSpans(ctx context.Context, ref Ref, asked bool, limit int) (out []*Span, err error) {
	err = tx.rows(ctx, `SELECT client_id, `+spanColumns+` FROM webhook_spans WHERE client_id = ? AND endpoint_id = ?
		AND CASE WHEN why = 'disabled' THEN 0 ELSE 1 END = ? AND done_at IS NULL ORDER BY id LIMIT ?`,
		[]any{ref.Client[:], ref.ID[:], asked, limit}, func(r row) error {
			s := &Span{}
			out = append(out, s)
			return r.Scan(idDest(&s.ClientID), idDest(&s.EndpointID), idDest(&s.ID), textDest(&s.Why), &s.From, &s.Next, &s.To, &s.CreatedAt, intDest(&s.DoneAt))
		})
	return out, err
}
