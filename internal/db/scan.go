package db

import (
	"context"
	"time"

	"till"
)

// ReadAll runs a read and returns its rows.
func ReadAll[T any](ctx context.Context, tx *Tx, q *SQL, args []any, scan func(r Row) (T, error)) (out []T, err error) {
	err = tx.Query(ctx, q, args, func(r Row) error {
		v, err := scan(r)
		out = append(out, v)
		return err
	})
	return out, err
}

// The destinations below give null a meaning: the zero value.

type idScanner struct{ id *till.ID }

// ID reads 16 bytes.
func ID(id *till.ID) ColumnScanner { return idScanner{id} }

// ScanColumn implements ColumnScanner.
func (s idScanner) ScanColumn(c Column) {
	*s.id = till.ID{}
	copy(s.id[:], c.Bytes)
}

type textScanner[T ~string] struct{ v *T }

// Text reads a text.
func Text[T ~string](v *T) ColumnScanner { return textScanner[T]{v} }

// ScanColumn implements ColumnScanner.
func (s textScanner[T]) ScanColumn(c Column) { *s.v = T(c.Bytes) }

type intScanner[T ~int64 | ~int] struct{ v *T }

// Int reads an integer.
func Int[T ~int64 | ~int](v *T) ColumnScanner { return intScanner[T]{v} }

// ScanColumn implements ColumnScanner.
func (s intScanner[T]) ScanColumn(c Column) { *s.v = T(c.Int) }

type durationScanner struct{ v *time.Duration }

// Duration reads a number of microseconds.
func Duration(v *time.Duration) ColumnScanner { return durationScanner{v} }

// ScanColumn implements ColumnScanner.
func (s durationScanner) ScanColumn(c Column) { *s.v = time.Duration(c.Int) * time.Microsecond }

type boolScanner struct{ v *bool }

// Bool reads 0 or 1, or a boolean.
func Bool(v *bool) ColumnScanner { return boolScanner{v} }

// ScanColumn implements ColumnScanner.
func (s boolScanner) ScanColumn(c Column) { *s.v = c.Int != 0 }

// OrNull returns nil for the zero value, so that absence is NULL in the
// database and nothing else is.
func OrNull[T comparable](v T) any {
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

// BytesOrNull returns nil for no bytes.
func BytesOrNull(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}
