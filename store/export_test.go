package store

import (
	"context"

	"till/internal/db"
)

// Fetched returns how many blocks of an index this transaction has asked for
// so far, on PostgreSQL.
func Fetched(ctx context.Context, tx *Tx, index string) (n int64, err error) {
	_, err = tx.db.QueryRow(ctx, &db.SQL{SQLite: `SELECT pg_stat_get_xact_blocks_fetched(to_regclass('` + index + `'))`}, nil, &n)
	return n, err
}

// RowsRead returns how much this transaction has read so far: entries of the indexes of a
// table on PostgreSQL, and steps of SQLite's machine, a handful for each row, on a file.
func RowsRead(ctx context.Context, tx *Tx, table string) (n int64, err error) {
	if c, ok := tx.db.Conn().(interface{ Steps() int64 }); ok {
		return c.Steps(), nil
	}
	_, err = tx.db.QueryRow(ctx, &db.SQL{SQLite: `SELECT CAST(sum(pg_stat_get_xact_tuples_returned(indexrelid)) AS BIGINT) FROM pg_index WHERE indrelid = to_regclass('` + table + `')`}, nil, &n)
	return n, err
}
