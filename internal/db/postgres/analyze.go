package postgres

import (
	"context"

	"till/internal/db"
)

// minAnalyzedSize is how many bytes a table must have to be analyzed. Statistics
// of a few rows would mislead the planner about the number of clients.
const minAnalyzedSize = 64 << 10

// The queue of steps is left out: analyzed while it is empty, it would be planned
// as if it always were.
var tablesWithoutStatistics = db.Define(db.SQL{Name: "postgres.tablesWithoutStatistics",
	Postgres: `SELECT quote_ident(relname) FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
		AND reltuples < 0 AND pg_relation_size(oid) >= $1 AND relname <> 'steps'`})

// AnalyzeNewTables runs ANALYZE on tables without statistics and returns their
// names. Without statistics the planner may choose an index that names only the
// client, and read all of the client's rows to find one. PostgreSQL itself
// analyzes a new table after a minute.
func AnalyzeNewTables(ctx context.Context, d *db.DB) (analyzed []string, err error) {
	err = d.View(ctx, func(tx *db.Tx) error {
		analyzed = nil
		return tx.Query(ctx, tablesWithoutStatistics, []any{minAnalyzedSize}, func(r db.Row) error {
			var name string
			err := r.Scan(&name)
			analyzed = append(analyzed, name)
			return err
		})
	})
	for _, name := range analyzed {
		if err == nil {
			err = d.Update(ctx, db.Foreground, func(tx *db.Tx) error { return tx.Script(ctx, "ANALYZE "+name) })
		}
	}
	return analyzed, err
}
