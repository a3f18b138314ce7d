package admin

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

var selectTurns = db.Define(db.SQL{Name: "turns.select",
	SQLite: `SELECT name, version, lease_until, owner, ran_at, result FROM turns ORDER BY name LIMIT $1`})

var insertTurn = db.Define(db.SQL{Name: "turns.insert",
	SQLite: `INSERT INTO turns (name, version, lease_until, owner, ran_at, result) VALUES ($1, 1, $2, $3, $4, $5) ON CONFLICT (name) DO NOTHING`})

var swapTurn = db.Define(db.SQL{Name: "turns.swap",
	SQLite: `UPDATE turns SET version = version + 1, lease_until = $1, owner = $2, ran_at = $3, result = $4 WHERE name = $5 AND version = $6`})

// maxTurns is how many turns are read.
const maxTurns = 100

// Turn is work that one instance at a time does.
type Turn struct {
	Name       string
	Version    int64 // 0: it was never written
	LeaseUntil till.Time
	Owner      till.ID   // the instance that has the turn, or had it last
	RanAt      till.Time // when the work was last finished; zero: never
	Result     string    // what it found, as JSON
}

// Turns returns every turn that was ever written, by name.
func Turns(ctx context.Context, tx *store.Tx) (map[string]*Turn, error) {
	out := map[string]*Turn{}
	err := tx.DB().Query(ctx, selectTurns, []any{maxTurns}, func(r db.Row) error {
		t := &Turn{}
		err := r.Scan(&t.Name, &t.Version, &t.LeaseUntil, db.ID(&t.Owner), &t.RanAt, &t.Result)
		out[t.Name] = t
		return err
	})
	return out, err
}

// SwapTurn writes a turn if its row is still of the version that was read, moves the
// version on, and reports whether it was.
func SwapTurn(ctx context.Context, tx *store.Tx, t *Turn) (bool, error) {
	var n int64
	var err error
	if t.Version == 0 {
		n, err = tx.DB().Exec(ctx, insertTurn, t.Name, int64(t.LeaseUntil), t.Owner[:], int64(t.RanAt), t.Result)
	} else {
		n, err = tx.DB().Exec(ctx, swapTurn, int64(t.LeaseUntil), t.Owner[:], int64(t.RanAt), t.Result, t.Name, t.Version)
	}
	if n == 1 {
		t.Version++
	}
	return n == 1, err
}
