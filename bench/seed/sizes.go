package seed

import (
	"context"

	"till/internal/db"
	"till/store"
)

var selectSizes = &db.SQL{Name: "seed.selectSizes",
	SQLite: `SELECT m.tbl_name, sum(d.pgsize) FROM dbstat d JOIN sqlite_master m ON m.name = d.name
		WHERE m.tbl_name NOT LIKE 'sqlite_%' GROUP BY m.tbl_name ORDER BY m.tbl_name`,
	Postgres: `SELECT relname::text, pg_total_relation_size(oid) FROM pg_class
		WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace ORDER BY relname`}

var selectLogBytes = &db.SQL{Name: "seed.selectLogBytes",
	SQLite:   `SELECT 0`,
	Postgres: `SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint`}

// TableSize is what a table takes on the disk, its indexes included.
type TableSize struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
}

// Sizes measures every table. It reads the whole of a SQLite file and counts the
// rows of every table.
func Sizes(ctx context.Context, s *store.Store) (out []TableSize, err error) {
	err = s.View(ctx, func(tx *store.Tx) error {
		tx.DB().WithoutTimeout()
		err = tx.DB().Query(ctx, selectSizes, nil, func(r db.Row) error {
			var t TableSize
			err := r.Scan(&t.Table, &t.Bytes)
			out = append(out, t)
			return err
		})
		for i := range out {
			if err == nil {
				count := &db.SQL{Name: "seed.countRows", SQLite: `SELECT count(*) FROM "` + out[i].Table + `"`}
				_, err = tx.DB().QueryRow(ctx, count, nil, &out[i].Rows)
			}
		}
		return err
	})
	return out, err
}

// LogBytes returns how much PostgreSQL has written to its log of changes since
// it was made; 0 for a file, whose log is used again and again.
func LogBytes(ctx context.Context, s *store.Store) (n int64, err error) {
	err = s.View(ctx, func(tx *store.Tx) error {
		_, err := tx.DB().QueryRow(ctx, selectLogBytes, nil, &n)
		return err
	})
	return n, err
}
