package store

import (
	"context"

	"till"
	"till/internal/db"
)

const undecidedSums = `SELECT p.connection, p.currency, count(*), CAST(sum(p.amount) AS BIGINT) FROM steps s JOIN `

const ofUndecided = ` p ON p.client_id = s.client_id AND p.id = s.subject_id
		WHERE s.restored = 1 AND s.kind = $1 AND s.late_from = 0 AND s.late_reads = 0 GROUP BY p.connection, p.currency ORDER BY p.connection, p.currency`

var sumUndecidedPayments = db.Define(db.SQL{Name: "restores.sumUndecidedPayments", SQLite: undecidedSums + `payments` + ofUndecided})

var sumUndecidedPayouts = db.Define(db.SQL{Name: "restores.sumUndecidedPayouts", SQLite: undecidedSums + `payouts` + ofUndecided})

var sumStraysSince = db.Define(db.SQL{Name: "restores.sumStraysSince",
	SQLite: `SELECT connection, direction, coalesce(currency, ''), coalesce(why, ''), CASE WHEN confirmed_at IS NULL THEN 0 ELSE 1 END AS confirmed,
			count(*), CAST(coalesce(sum(minor), 0) AS BIGINT)
		FROM strays WHERE (standing = 1 AND why IS NULL) OR (why IS NOT NULL AND seen_at >= $1)
		GROUP BY connection, direction, coalesce(currency, ''), coalesce(why, ''), CASE WHEN confirmed_at IS NULL THEN 0 ELSE 1 END
		ORDER BY connection, direction, 3, 4, 5`})

// UndecidedSum is how many payments or payouts of a connection are undecided, and their
// money.
type UndecidedSum struct {
	Kind       till.SubjectKind
	Connection string
	Count      int
	Amount     till.Money
}

// StrayMoney is how many strays of a connection are alike, and their money. Without a
// currency it is unknown.
type StrayMoney struct {
	Connection, Direction string
	Why                   string // what they were closed for; "" while they are open
	Confirmed             bool
	Count                 int
	Amount                till.Money
}

// SumUndecided adds up all of what Undecided lists, by connection and currency.
func (tx *Tx) SumUndecided(ctx context.Context, kind till.SubjectKind) ([]UndecidedSum, error) {
	q := sumUndecidedPayments
	if kind == till.SubjectPayout {
		q = sumUndecidedPayouts
	}
	return db.ReadAll(ctx, tx.db, q, []any{string(kind)}, func(r db.Row) (UndecidedSum, error) {
		u := UndecidedSum{Kind: kind}
		err := r.Scan(&u.Connection, &u.Amount.Currency, &u.Count, &u.Amount.Minor)
		return u, err
	})
}

// SumStrays adds up all open strays, and those closed ones that were seen from a time on.
func (tx *Tx) SumStrays(ctx context.Context, from till.Time) ([]StrayMoney, error) {
	return db.ReadAll(ctx, tx.db, sumStraysSince, []any{int64(from)}, func(r db.Row) (StrayMoney, error) {
		var s StrayMoney
		confirmed := 0
		err := r.Scan(&s.Connection, &s.Direction, &s.Amount.Currency, &s.Why, &confirmed, &s.Count, &s.Amount.Minor)
		s.Confirmed = confirmed == 1
		return s, err
	})
}
