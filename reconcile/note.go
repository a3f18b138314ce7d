package reconcile

import (
	"context"
	"math/big"

	"till/store"
	"till/store/admin"
)

// NoteStatement records what a comparison has left, for those who watch over it. a is nil
// if the statement was not applied.
func Note(ctx context.Context, s *store.Store, connection string, r *Result, a *ApplyResult) error {
	left := map[Class]int64{}
	for _, sum := range r.Sums {
		left[sum.Class] += sum.Count
	}
	if a != nil {
		for class, n := range a.settled {
			left[class] -= n
		}
	}
	sums := []admin.StatementSum{{Class: admin.StatementLines, Count: r.Lines}}
	for _, sum := range r.Sums {
		// How much of a class was settled is not known by currency: until the statement is
		// compared again, the class counts as a whole, or not at all.
		if sum.Class.Difference() && left[sum.Class] > 0 {
			sums = append(sums, admin.StatementSum{Class: string(sum.Class), Currency: sum.Currency, Count: min(sum.Count, left[sum.Class]), Minor: apart(&sum.Operator, &sum.Ours)})
		}
	}
	_, err := store.RetryUnknown(ctx, s.UpdateBackground, func(tx *store.Tx, _ bool) error {
		return admin.SaveStatement(ctx, tx, connection, r.From, r.To, sums)
	})
	return err
}

// maxApart is the largest difference that is recorded: a gauge is exact up to it.
const maxApart = 1 << 53

// apart returns how far two sums lie apart.
func apart(a, b *big.Int) int64 {
	d := new(big.Int).Sub(a, b)
	if d.Abs(d).Cmp(big.NewInt(maxApart)) > 0 {
		return maxApart
	}
	return d.Int64()
}
