package store

import (
	"context"

	"till"
	"till/internal/db"
)

var insertFacts = db.Define(db.SQL{Name: "facts.insert",
	SQLite: `INSERT INTO facts (client_id, subject_id, fact, entry_id) VALUES ($1, $2, $3, $4)`,
	Postgres: `INSERT INTO facts (client_id, subject_id, fact, entry_id)
		SELECT u.a1, u.a2, u.a3, u.a4
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::text[]) AS a3, unnest($4::bytea[]) AS a4 LIMIT $5::bigint) AS u`,
	Arrays: true})

// Fact is what becomes of a payment or payout once at most.
type Fact struct {
	Ref     Ref
	Fact    string
	EntryID till.ID
}

// The facts.
const (
	FactMoneyOut = "money_out" // the money of a payout left, in time or late
	FactReversal = "reversal"  // the operator took money back
	FactFee      = "fee"
)

// InsertFacts writes facts down. The database refuses one that is there: the
// whole change that rests on it is not written then.
func (tx *Tx) InsertFacts(ctx context.Context, facts []Fact) error {
	args := make([][]any, len(facts))
	for i := range facts {
		f := &facts[i]
		args[i] = []any{f.Ref.Client[:], f.Ref.ID[:], f.Fact, f.EntryID[:]}
	}
	return tx.db.Defer(insertFacts, args)
}
