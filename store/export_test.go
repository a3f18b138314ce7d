package store

import (
	"context"

	sqlite3 "modernc.org/sqlite/lib"

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

// RowsRead returns how much this transaction has read so far: entries of the indexes of a
// table on PostgreSQL, and steps of SQLite's machine, a handful for each row, on a file.
func RowsRead(ctx context.Context, tx *Tx, table string) (n int64, err error) {
	if ses, ok := tx.ses.(*liteSession); ok {
		for _, st := range ses.c.stmts {
			n += int64(sqlite3.Xsqlite3_stmt_status(ses.c.tls, st.p, sqlite3.SQLITE_STMTSTATUS_VM_STEP, 0))
		}
		return n, nil
	}
	_, err = tx.one(ctx, &db.SQL{SQLite: `SELECT CAST(sum(pg_stat_get_xact_tuples_returned(indexrelid)) AS BIGINT) FROM pg_index WHERE indrelid = to_regclass('` + table + `')`}, nil, &n)
	return n, err
}
