package store

import (
	"context"

	"till/internal/db"
)

var selectSizes = db.Define(db.SQL{Name: "measure.selectSizes",
	SQLite: `SELECT m.tbl_name, sum(d.pgsize) FROM dbstat d JOIN sqlite_master m ON m.name = d.name
		WHERE m.tbl_name NOT LIKE 'sqlite_%' GROUP BY m.tbl_name ORDER BY m.tbl_name`,
	Postgres: `SELECT relname::text, pg_total_relation_size(oid) FROM pg_class
		WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace ORDER BY relname`})

var selectLogBytes = db.Define(db.SQL{Name: "measure.selectLogBytes",
	SQLite:   `SELECT 0`,
	Postgres: `SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint`})

// TableSize is what a table takes on the disk, its indexes included.
type TableSize struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
}

// Sizes measures every table. It reads the whole of a SQLite file, and counts
// the rows of every table: it is for benchmarks.
func (s *Store) Sizes(ctx context.Context) (out []TableSize, err error) {
	err = s.View(ctx, func(tx *Tx) error {
		tx.db.WithoutTimeout()
		err = tx.db.Query(ctx, selectSizes, nil, func(r db.Row) error {
			var t TableSize
			err := r.Scan(&t.Table, &t.Bytes)
			out = append(out, t)
			return err
		})
		for i := range out {
			if err == nil {
				// The only text with a name in it that is not known before.
				count := &db.SQL{Name: "measure.countRows", SQLite: `SELECT count(*) FROM "` + out[i].Table + `"`}
				_, err = tx.db.QueryRow(ctx, count, nil, &out[i].Rows)
			}
		}
		return err
	})
	return out, err
}

// LogBytes returns how much PostgreSQL has written to its log of changes since
// it was made; 0 for a file, whose log is used again and again.
func (s *Store) LogBytes(ctx context.Context) (n int64, err error) {
	err = s.View(ctx, func(tx *Tx) error {
		_, err := tx.db.QueryRow(ctx, selectLogBytes, nil, &n)
		return err
	})
	return n, err
}
