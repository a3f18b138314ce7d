package store

import (
	"context"

	"till/internal/db"
)

var selectUnmeasured = db.Define(db.SQL{Name: "measure.selectUnmeasured",
	Postgres: `SELECT quote_ident(relname) FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
		AND reltuples < 0 AND pg_relation_size(oid) >= $1 AND relname <> 'steps'`})

// measuredFrom is how many bytes a table must have before it is worth
// measuring: of a few rows, each client would look like one of many.
const measuredFrom = 64 << 10

// Measure makes PostgreSQL look at tables that it has never looked at, and
// returns their names. Until then it guesses, and where several indexes begin
// with the client it may take one that names nothing else: it reads all of the
// client's rows to find one. By itself it looks after a minute, which is
// longest just when a new installation is tried out. The queue of steps is left
// out: seen when it is empty, it would be thought to stay so.
func (s *Store) Measure(ctx context.Context) (measured []string, err error) {
	if !s.Shared() {
		return nil, nil
	}
	err = s.View(ctx, func(tx *Tx) error {
		return tx.rows(ctx, selectUnmeasured, []any{measuredFrom}, func(r row) error {
			var name string
			err := r.Scan(&name)
			measured = append(measured, name)
			return err
		})
	})
	for _, name := range measured {
		if err == nil {
			err = s.Update(ctx, func(tx *Tx) error { return tx.ses.script(ctx, "ANALYZE "+name) })
		}
	}
	return measured, err
}
