package postgres

import "github.com/jackc/pgx/v5/pgtype"

// array is one argument of every row. pgx encodes it as an array, without
// reflection and without a slice in between.
type array struct {
	rows [][]any
	i    int // the argument
}

// GoString keeps arguments out of pgx's errors.
func (a array) GoString() string { return "array" }

// Dimensions implements pgtype.ArrayGetter.
func (a array) Dimensions() []pgtype.ArrayDimension { return dimensions(len(a.rows)) }

// Index implements pgtype.ArrayGetter. Columns have integers where Go has
// booleans.
func (a array) Index(n int) any {
	if b, ok := a.rows[n][a.i].(bool); ok {
		return intOf(b)
	}
	return a.rows[n][a.i]
}

// IndexType implements pgtype.ArrayGetter: each element says its own type.
func (a array) IndexType() any { return nil }

// rowNumbers is the array of 1 to n.
type rowNumbers int

// Dimensions implements pgtype.ArrayGetter.
func (n rowNumbers) Dimensions() []pgtype.ArrayDimension { return dimensions(int(n)) }

// Index implements pgtype.ArrayGetter.
func (n rowNumbers) Index(i int) any { return int64(i) + 1 }

// IndexType implements pgtype.ArrayGetter.
func (n rowNumbers) IndexType() any { return int64(0) }

func dimensions(n int) []pgtype.ArrayDimension {
	return []pgtype.ArrayDimension{{Length: int32(n), LowerBound: 1}}
}

func intOf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
