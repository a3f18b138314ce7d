package store

import (
	"context"

	"till/internal/db"
)

// WriterSettings is what a session that writes is told first.
func WriterSettings(s *Store) string { return s.e.(*postgres).settings(true) }

// Fetched returns how many blocks of an index this transaction has asked for
// so far, on PostgreSQL.
func Fetched(ctx context.Context, tx *Tx, index string) (n int64, err error) {
	_, err = tx.one(ctx, &db.SQL{SQLite: `SELECT pg_stat_get_xact_blocks_fetched(to_regclass('` + index + `'))`}, nil, &n)
	return n, err
}
