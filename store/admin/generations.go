package admin

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

var selectGenerations = db.Define(db.SQL{Name: "generations.select",
	SQLite: `SELECT generation, key_check, added_at, used_at, retired_at FROM seal_generations ORDER BY generation`})

var insertGeneration = db.Define(db.SQL{Name: "generations.insert",
	SQLite: `INSERT INTO seal_generations (generation, key_check, added_at, used_at, retired_at) VALUES ($1, $2, $3, $4, 0)`})

var useGeneration = db.Define(db.SQL{Name: "generations.use",
	SQLite: `UPDATE seal_generations SET used_at = $1 WHERE generation = $2 AND retired_at = 0`})

var retireGeneration = db.Define(db.SQL{Name: "generations.retire",
	SQLite: `UPDATE seal_generations SET retired_at = $1 WHERE generation = $2 AND retired_at = 0`})

var countSentBefore = db.Define(db.SQL{Name: "generations.countSentBefore",
	SQLite: `SELECT count(*) FROM (SELECT 1 FROM steps WHERE send_started_at > 0 AND subject_id < $1 LIMIT $2) AS s`})

// LevelGenerations is the level from which on other generations than the first may seal.
const LevelGenerations = 2

// Generation is one generation of the installation's secret.
type Generation struct {
	Number    int
	Check     []byte // proves that an instance holds the key
	AddedAt   till.Time
	UsedAt    till.Time // when it was last put into use; zero: never
	RetiredAt till.Time // zero: it is not
}

// Generations returns all that ever were, by number; none if only the first was.
func Generations(ctx context.Context, tx *store.Tx) ([]Generation, error) {
	return db.ReadAll(ctx, tx.DB(), selectGenerations, nil, func(r db.Row) (g Generation, err error) {
		err = r.Scan(&g.Number, &g.Check, &g.AddedAt, &g.UsedAt, &g.RetiredAt)
		return g, err
	})
}

// InsertGeneration records a new generation.
func InsertGeneration(ctx context.Context, tx *store.Tx, g *Generation) error {
	_, err := tx.DB().Exec(ctx, insertGeneration, g.Number, g.Check, int64(g.AddedAt), int64(g.UsedAt))
	return err
}

// UseGeneration puts a generation into use at a time. The one with the latest time seals.
func UseGeneration(ctx context.Context, tx *store.Tx, number int, at till.Time) error {
	_, err := tx.DB().Exec(ctx, useGeneration, int64(at), number)
	return err
}

// RetireGeneration ends a generation.
func RetireGeneration(ctx context.Context, tx *store.Tx, number int) error {
	_, err := tx.DB().Exec(ctx, retireGeneration, int64(tx.Now()), number)
	return err
}

// SentBefore counts, up to a limit, the payments and payouts that were made before a time,
// were sent, and are not over. Their operators may call an address of that time.
func SentBefore(ctx context.Context, tx *store.Tx, at till.Time, limit int) (n int64, err error) {
	first := till.FirstID(at)
	_, err = tx.DB().QueryRow(ctx, countSentBefore, []any{first[:], limit}, &n)
	return n, err
}
