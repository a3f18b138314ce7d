package store

import (
	"context"
	"time"

	"till"
	"till/internal/db"
)

// readAll runs a read and returns its rows.
func readAll[T any](ctx context.Context, tx *Tx, q *db.SQL, args []any, scan func(r db.Row) (T, error)) (out []T, err error) {
	err = tx.db.Query(ctx, q, args, func(r db.Row) error {
		v, err := scan(r)
		out = append(out, v)
		return err
	})
	return out, err
}

// The destinations below give null a meaning: the zero value.

type idScanner struct{ id *till.ID }

// idDest reads 16 bytes.
func idDest(id *till.ID) db.ColumnScanner { return idScanner{id} }

// ScanColumn implements db.ColumnScanner.
func (s idScanner) ScanColumn(c db.Column) {
	*s.id = till.ID{}
	copy(s.id[:], c.Bytes)
}

type textScanner[T ~string] struct{ v *T }

// textDest reads a text.
func textDest[T ~string](v *T) db.ColumnScanner { return textScanner[T]{v} }

// ScanColumn implements db.ColumnScanner.
func (s textScanner[T]) ScanColumn(c db.Column) { *s.v = T(c.Bytes) }

type intScanner[T ~int64 | ~int] struct{ v *T }

// intDest reads an integer.
func intDest[T ~int64 | ~int](v *T) db.ColumnScanner { return intScanner[T]{v} }

// ScanColumn implements db.ColumnScanner.
func (s intScanner[T]) ScanColumn(c db.Column) { *s.v = T(c.Int) }

type durationScanner struct{ v *time.Duration }

// durationDest reads a number of microseconds.
func durationDest(v *time.Duration) db.ColumnScanner { return durationScanner{v} }

// ScanColumn implements db.ColumnScanner.
func (s durationScanner) ScanColumn(c db.Column) { *s.v = time.Duration(c.Int) * time.Microsecond }

type boolScanner struct{ v *bool }

// boolDest reads 0 or 1, or a boolean.
func boolDest(v *bool) db.ColumnScanner { return boolScanner{v} }

// ScanColumn implements db.ColumnScanner.
func (s boolScanner) ScanColumn(c db.Column) { *s.v = c.Int != 0 }

// orNull returns nil for the zero value, so that absence is NULL in the
// database and nothing else is.
func orNull[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	switch x := any(v).(type) {
	case till.ID:
		return x.Bytes()
	case till.Time:
		return int64(x)
	case till.FailureReason:
		return string(x)
	}
	return v
}
