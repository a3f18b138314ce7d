package store

import (
	"context"

	"till"
)

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
	return tx.set(ctx, `INSERT INTO facts (client_id, subject_id, fact, entry_id) VALUES (?, ?, ?, ?)`, args)
}
