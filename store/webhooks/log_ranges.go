package webhooks

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

const rangeColumns = `endpoint_id, id, why, from_sequence, next_sequence, to_sequence, created_at, done_at`

var insertRange = db.Define(db.SQL{Name: "log_ranges.insert",
	SQLite: `INSERT INTO webhook_spans (client_id, ` + rangeColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`})

var saveRange = db.Define(db.SQL{Name: "log_ranges.save",
	SQLite: `UPDATE webhook_spans SET why = $1, next_sequence = $2, to_sequence = $3, done_at = $4 WHERE client_id = $5 AND endpoint_id = $6 AND id = $7`})

var selectOpenRanges = db.Define(db.SQL{Name: "log_ranges.selectOpen",
	SQLite: `SELECT client_id, ` + rangeColumns + ` FROM webhook_spans WHERE client_id = $1 AND endpoint_id = $2
		AND CASE WHEN why = 'disabled' THEN 0 ELSE 1 END = $3 AND done_at IS NULL ORDER BY id LIMIT $4`})

var selectOpenRangesOf = db.Define(db.SQL{Name: "log_ranges.selectOpenOf",
	SQLite: `SELECT client_id, ` + rangeColumns + ` FROM webhook_spans WHERE client_id = $1 AND done_at IS NULL ORDER BY endpoint_id, id LIMIT $2`})

// RangeReason says what a stretch of the log is about.
type RangeReason string

// Why a range was written.
const (
	RangeDisabled RangeReason = "disabled" // happened while the endpoint was disabled
	RangeCatchUp  RangeReason = "catch_up" // the same, and it is being sent now
	RangeReplay   RangeReason = "replay"   // asked for by hand; worked off behind the live events
)

// LogRange is a stretch of the log and an endpoint, as one row however long.
type LogRange struct {
	ClientID, EndpointID, ID till.ID
	Why                      RangeReason
	From, Next, To           int64 // Next is the first that is not dealt with; To is included
	CreatedAt, DoneAt        till.Time
}

// InsertRange writes a new range.
func InsertRange(ctx context.Context, tx *store.Tx, s *LogRange) error {
	_, err := tx.DB().Exec(ctx, insertRange,
		s.ClientID[:], s.EndpointID[:], s.ID[:], string(s.Why), s.From, s.Next, s.To, int64(s.CreatedAt), db.OrNull(s.DoneAt))
	return err
}

// SaveRange writes back how far a range has come.
func SaveRange(ctx context.Context, tx *store.Tx, s *LogRange) error {
	_, err := tx.DB().Exec(ctx, saveRange,
		string(s.Why), s.Next, s.To, db.OrNull(s.DoneAt), s.ClientID[:], s.EndpointID[:], s.ID[:])
	return err
}

func scanRange(r db.Row) (*LogRange, error) {
	s := &LogRange{}
	err := r.Scan(db.ID(&s.ClientID), db.ID(&s.EndpointID), db.ID(&s.ID), db.Text(&s.Why), &s.From, &s.Next, &s.To, &s.CreatedAt, db.Int(&s.DoneAt))
	return s, err
}

// OpenRanges returns up to limit ranges of an endpoint that are not done, oldest
// first. asked selects those that are to be sent; otherwise it returns those that
// nobody asked to send.
func OpenRanges(ctx context.Context, tx *store.Tx, ref store.Ref, asked bool, limit int) (out []*LogRange, err error) {
	err = tx.DB().Query(ctx, selectOpenRanges,
		[]any{ref.Client[:], ref.ID[:], asked, limit}, func(r db.Row) error {
			s, err := scanRange(r)
			out = append(out, s)
			return err
		})
	return out, err
}

// OpenRangesOf returns the open ranges of all endpoints of a client.
func OpenRangesOf(ctx context.Context, tx *store.Tx, client till.ID, limit int) (out []*LogRange, err error) {
	err = tx.DB().Query(ctx, selectOpenRangesOf, []any{client[:], limit}, func(r db.Row) error {
		s, err := scanRange(r)
		out = append(out, s)
		return err
	})
	return out, err
}
