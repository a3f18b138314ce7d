package story

import (
	"context"
	"slices"

	"till"
	"till/ledger"
	"till/store"
)

// amountLines are the types of lines that are found by their amount. A payment or payout
// is found itself, and fees are as many as they are alike.
var amountLines = []ledger.EntryKind{ledger.Adjustment, ledger.CollectionReversal}

// FindLines returns the lines of wallets that a search means, newest first: by the id of
// a line or an adjustment, by a reference as it is written, and of one client by the
// amount of corrections and reversals. A line has no phone, and its receipt finds its
// payment. short says that there may be more.
func FindLines(ctx context.Context, tx *store.Tx, q Search) (out []*ledger.Transaction, short bool, err error) {
	switch {
	case q.ID != nil:
		if out, err = tx.LinesBy(ctx, q.Client, store.FindID, q.ID[:], MaxFound); err == nil && len(out) == 0 {
			out, err = tx.LinesBy(ctx, q.Client, store.FindReference, q.ID.String(), MaxFound) // an adjustment's line has its id
		}
	case q.Reference != "":
		out, err = tx.LinesBy(ctx, q.Client, store.FindReference, q.Reference, MaxFound)
	case len(q.Amounts) > 0 && q.Client != till.House:
		out, err = linesOfAmount(ctx, tx, q)
	}
	out = slices.DeleteFunc(out, func(t *ledger.Transaction) bool { return t.CreatedAt < q.Earliest })
	slices.SortFunc(out, func(a, b *ledger.Transaction) int { return slices.Compare(b.ID[:], a.ID[:]) })
	if short = len(out) >= MaxFound; short {
		out = out[:MaxFound]
	}
	return out, short, err
}

func linesOfAmount(ctx context.Context, tx *store.Tx, q Search) (out []*ledger.Transaction, err error) {
	for _, kind := range amountLines {
		f := store.TransactionFilter{Type: string(kind), From: q.Earliest}
		if _, n, err := tx.ListTransactions(ctx, q.Client, f, store.Page{}); err != nil || n == 0 {
			if err != nil {
				return nil, err
			}
			continue
		} else if n > maxScannedRows {
			return nil, ErrTooManyRows
		}
		for _, amount := range q.Amounts {
			f.Amount, f.Currency = amount.Minor, amount.Currency
			lines, _, err := tx.ListTransactions(ctx, q.Client, f, store.Page{Limit: MaxFound})
			if err != nil {
				return nil, err
			}
			out = append(out, lines...)
		}
	}
	return out, nil
}
