package store

import (
	"context"

	"till"
	"till/internal/db"
)

const spanColumns = `endpoint_id, id, why, from_sequence, next_sequence, to_sequence, created_at, done_at`

var insertSpan = db.Define(db.SQL{Name: "spans.insert",
	SQLite: `INSERT INTO webhook_spans (client_id, ` + spanColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`})

var saveSpan = db.Define(db.SQL{Name: "spans.save",
	SQLite: `UPDATE webhook_spans SET why = $1, next_sequence = $2, to_sequence = $3, done_at = $4 WHERE client_id = $5 AND endpoint_id = $6 AND id = $7`})

var selectOpenSpans = db.Define(db.SQL{Name: "spans.selectOpenSpans",
	SQLite: `SELECT client_id, ` + spanColumns + ` FROM webhook_spans WHERE client_id = $1 AND endpoint_id = $2
		AND CASE WHEN why = 'disabled' THEN 0 ELSE 1 END = $3 AND done_at IS NULL ORDER BY id LIMIT $4`})

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

// InsertSpan writes a new span.
func (tx *Tx) InsertSpan(ctx context.Context, s *Span) error {
	_, err := tx.db.Exec(ctx, insertSpan,
		s.ClientID[:], s.EndpointID[:], s.ID[:], string(s.Why), s.From, s.Next, s.To, int64(s.CreatedAt), orNull(s.DoneAt))
	return err
}

// SaveSpan writes back how far a span has come.
func (tx *Tx) SaveSpan(ctx context.Context, s *Span) error {
	_, err := tx.db.Exec(ctx, saveSpan,
		string(s.Why), s.Next, s.To, orNull(s.DoneAt), s.ClientID[:], s.EndpointID[:], s.ID[:])
	return err
}

// OpenSpans returns up to limit spans of an endpoint that are not done,
// oldest first: those that nobody has asked for, or those that are to be sent.
func (tx *Tx) OpenSpans(ctx context.Context, ref Ref, asked bool, limit int) (out []*Span, err error) {
	err = tx.db.Query(ctx, selectOpenSpans,
		[]any{ref.Client[:], ref.ID[:], asked, limit}, func(r db.Row) error {
			s := &Span{}
			out = append(out, s)
			return r.Scan(idDest(&s.ClientID), idDest(&s.EndpointID), idDest(&s.ID), textDest(&s.Why), &s.From, &s.Next, &s.To, &s.CreatedAt, intDest(&s.DoneAt))
		})
	return out, err
}
