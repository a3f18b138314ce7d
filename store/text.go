package store

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"till/internal/db"
)

// texts keeps the statements that are made of texts which are not defined yet.
// These are constants, so it is bounded by the program's own length.
var texts sync.Map

// sqlOf returns a statement, which is defined or still a text with ? in it.
func sqlOf(query any) *db.SQL {
	if q, ok := query.(*db.SQL); ok {
		return q
	}
	text := query.(string)
	if q, ok := texts.Load(text); ok {
		return q.(*db.SQL)
	}
	q := &db.SQL{Name: "text", SQLite: numbered(text)}
	texts.Store(text, q)
	return q
}

// numbered turns each ? into $1, $2 and so on. No text has a literal ?.
func numbered(query string) string {
	var b strings.Builder
	n := 0
	for i := range len(query) {
		if query[i] != '?' {
			b.WriteByte(query[i])
			continue
		}
		n++
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

func (tx *Tx) exec(ctx context.Context, query any, args ...any) (int64, error) {
	return tx.db.Exec(ctx, sqlOf(query), args...)
}
func (tx *Tx) set(ctx context.Context, query any, rows [][]any) error {
	return tx.db.Defer(sqlOf(query), rows)
}
func (tx *Tx) later(ctx context.Context, query any, rows [][]any) error {
	return tx.db.Defer(sqlOf(query), rows)
}
func (tx *Tx) rows(ctx context.Context, query any, args []any, scan func(r db.Row) error) error {
	return tx.db.Query(ctx, sqlOf(query), args, scan)
}
func (tx *Tx) rowsOf(ctx context.Context, query any, args [][]any, scan func(i int, r db.Row) error) error {
	return tx.db.QueryEach(ctx, sqlOf(query), args, scan)
}
func (tx *Tx) one(ctx context.Context, query any, args []any, dest ...any) (bool, error) {
	return tx.db.QueryRow(ctx, sqlOf(query), args, dest...)
}

func (tx *Tx) setAll(ctx context.Context, query any, rows [][]any) error {
	for _, args := range rows {
		if n, err := tx.exec(ctx, query, args...); err != nil {
			return err
		} else if n != 1 {
			return ErrConflict
		}
	}
	return nil
}
func (tx *Tx) rowsEach(ctx context.Context, query any, args [][]any, scan func(i int, r db.Row) error) error {
	return tx.db.QueryEach(ctx, sqlOf(query), args, scan)
}
