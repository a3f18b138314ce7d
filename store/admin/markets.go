package admin

import (
	"context"
	"strings"
	"time"

	"till"
	"till/internal/db"
	"till/store"
)

var selectMarkets = db.Define(db.SQL{Name: "markets.select",
	SQLite: `SELECT connection, account, read_at, tried_at, failing_since, problem, markets FROM connection_markets ORDER BY connection LIMIT $1`})

var selectMarketReads = db.Define(db.SQL{Name: "markets.selectReads",
	SQLite: `SELECT connection, account, read_at, tried_at, failing_since, problem, '' FROM connection_markets ORDER BY connection LIMIT $1`})

var saveMarkets = db.Define(db.SQL{Name: "markets.save",
	SQLite: `INSERT INTO connection_markets (connection, account, read_at, tried_at, failing_since, problem, markets) VALUES ($1, $2, $3, $4, 0, '', $5)
		ON CONFLICT (connection) DO UPDATE SET account = excluded.account, read_at = excluded.read_at, tried_at = excluded.tried_at,
			failing_since = 0, problem = '', markets = excluded.markets`})

var saveMarketsProblem = db.Define(db.SQL{Name: "markets.saveProblem",
	SQLite: `INSERT INTO connection_markets (connection, account, read_at, tried_at, failing_since, problem, markets) VALUES ($1, $2, 0, $3, $4, $5, '')
		ON CONFLICT (connection) DO UPDATE SET tried_at = excluded.tried_at, problem = excluded.problem,
			failing_since = CASE WHEN connection_markets.failing_since = 0 THEN excluded.failing_since ELSE connection_markets.failing_since END`})

var deleteMarkets = db.Define(db.SQL{Name: "markets.delete",
	SQLite: `DELETE FROM connection_markets WHERE connection = $1`})

// The limits of what is kept of connections' markets.
const (
	maxMarketRows    = 1000
	maxMarketProblem = 500
)

// MaxMarketsAge is how old may be what an operator said of an account, before a person is told.
const MaxMarketsAge = 24 * time.Hour

// ConnectionMarkets is what the operator of a connection last said of its account.
type ConnectionMarkets struct {
	Connection   string
	Account      string    // the fingerprint of the account that was asked
	ReadAt       till.Time // zero: never
	TriedAt      till.Time
	FailingSince till.Time // zero: the last read went well
	Problem      string
	Markets      string // as JSON; "" before the first time
}

// Old reports whether nobody has read it for a day.
func (c *ConnectionMarkets) Old(now till.Time) bool {
	since := c.ReadAt
	if since.IsZero() {
		since = c.FailingSince
	}
	return now.Sub(since) > MaxMarketsAge
}

// Markets returns what all operators said.
func Markets(ctx context.Context, tx *store.Tx) ([]ConnectionMarkets, error) {
	return readMarkets(ctx, tx, selectMarkets)
}

// MarketReads is Markets without what they said.
func MarketReads(ctx context.Context, tx *store.Tx) ([]ConnectionMarkets, error) {
	return readMarkets(ctx, tx, selectMarketReads)
}

func readMarkets(ctx context.Context, tx *store.Tx, q *db.SQL) ([]ConnectionMarkets, error) {
	return db.ReadAll(ctx, tx.DB(), q, []any{maxMarketRows}, func(r db.Row) (ConnectionMarkets, error) {
		var c ConnectionMarkets
		err := r.Scan(&c.Connection, &c.Account, &c.ReadAt, &c.TriedAt, &c.FailingSince, &c.Problem, &c.Markets)
		return c, err
	})
}

// SaveMarkets records what an operator said just now.
func SaveMarkets(ctx context.Context, tx *store.Tx, connection, account, markets string) error {
	_, err := tx.DB().Exec(ctx, saveMarkets, connection, account, int64(tx.Now()), int64(tx.Now()), markets)
	return err
}

// SaveMarketsProblem records that an operator could not be asked, or was not understood. What
// it said before stays, and so does the account of which it said that.
func SaveMarketsProblem(ctx context.Context, tx *store.Tx, connection, account, problem string) error {
	_, err := tx.DB().Exec(ctx, saveMarketsProblem, connection, account, int64(tx.Now()), int64(tx.Now()), strings.ToValidUTF8(problem[:min(len(problem), maxMarketProblem)], ""))
	return err
}

// DeleteMarkets forgets a connection that is not configured any more.
func DeleteMarkets(ctx context.Context, tx *store.Tx, connection string) error {
	_, err := tx.DB().Exec(ctx, deleteMarkets, connection)
	return err
}
