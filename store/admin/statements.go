package admin

import (
	"context"
	"time"

	"till"
	"till/internal/db"
	"till/store"
)

var deleteCoveredStatements = db.Define(db.SQL{Name: "statements.deleteCovered",
	SQLite: `DELETE FROM statement_results WHERE connection = $1 AND from_at >= $2 AND to_at <= $3`})

var deleteOldStatements = db.Define(db.SQL{Name: "statements.deleteOld",
	SQLite: `DELETE FROM statement_results WHERE compared_at < $1`})

var insertStatement = db.Define(db.SQL{Name: "statements.insert",
	SQLite: `INSERT INTO statement_results (connection, from_at, to_at, class, currency, compared_at, count, minor) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`})

var sumStatements = db.Define(db.SQL{Name: "gauges.sumStatements",
	SQLite: `SELECT connection, class, currency, max(to_at), max(compared_at), CAST(sum(count) AS BIGINT), CAST(sum(minor) AS BIGINT)
		FROM statement_results GROUP BY connection, class, currency ORDER BY connection, class, currency LIMIT $1`})

// statementsKept is how long the result of a comparison is kept, if none that covers the
// same time takes its place.
const statementsKept = 400 * 24 * time.Hour

// StatementLines is the class of the row that every compared statement has.
const StatementLines = "lines"

// StatementSum is what comparisons have left on a connection, by class and currency.
type StatementSum struct {
	Connection, Class, Currency string
	Until, ComparedAt           till.Time // of the latest
	Count, Minor                int64
}

// SaveStatement records what a comparison has left. It takes the place of earlier
// comparisons within the same time.
func SaveStatement(ctx context.Context, tx *store.Tx, connection string, from, to till.Time, sums []StatementSum) error {
	if _, err := tx.DB().Exec(ctx, deleteOldStatements, int64(tx.Now().Add(-statementsKept))); err != nil {
		return err
	}
	if _, err := tx.DB().Exec(ctx, deleteCoveredStatements, connection, int64(from), int64(to)); err != nil {
		return err
	}
	for _, s := range sums {
		if _, err := tx.DB().Exec(ctx, insertStatement, connection, int64(from), int64(to), s.Class, s.Currency, int64(tx.Now()), s.Count, s.Minor); err != nil {
			return err
		}
	}
	return nil
}

// StatementSums returns what all comparisons have left.
func StatementSums(ctx context.Context, tx *store.Tx) ([]StatementSum, error) {
	return db.ReadAll(ctx, tx.DB(), sumStatements, []any{maxGroups}, func(r db.Row) (StatementSum, error) {
		var s StatementSum
		err := r.Scan(&s.Connection, &s.Class, &s.Currency, &s.Until, &s.ComparedAt, &s.Count, &s.Minor)
		return s, err
	})
}
