package story

import (
	"cmp"
	"context"
	"slices"

	"till"
	"till/ledger"
	"till/store"
	"till/store/lookup"
)

// amountLines are the types of lines that are found by their amount. A payment or payout
// is found itself, and fees are as many as they are alike.
var amountLines = []ledger.EntryKind{ledger.Adjustment, ledger.CollectionReversal}

// FindLines returns the lines of wallets that a search means, newest first: by the id of
// a line or an adjustment, by a reference as it is written, and of one client by the
// amount of corrections and reversals. A line has no phone, and its receipt finds its
// payment. short says that there may be more.
func FindLines(ctx context.Context, tx *store.Tx, q Search) (out []*ledger.Transaction, short bool, err error) {
	reference := cmp.Or(q.Reference, q.Text)
	if q.ID != nil {
		if out, err = lookup.LinesBy(ctx, tx, q.Client, lookup.FindID, q.ID[:], maxFound); err == nil && len(out) == 0 {
			out, err = lookup.LinesBy(ctx, tx, q.Client, lookup.FindReference, q.ID.String(), maxFound) // an adjustment's line has its id
		}
	} else if reference != "" {
		out, err = lookup.LinesBy(ctx, tx, q.Client, lookup.FindReference, reference, maxFound)
	}
	if len(q.Amounts) > 0 && q.Client != till.House && err == nil {
		var some []*ledger.Transaction
		some, short, err = linesOfAmount(ctx, tx, q)
		out = append(out, some...)
	}
	out = slices.DeleteFunc(out, func(t *ledger.Transaction) bool { return t.CreatedAt < q.Earliest })
	slices.SortFunc(out, func(a, b *ledger.Transaction) int { return slices.Compare(b.ID[:], a.ID[:]) })
	out = slices.CompactFunc(out, func(a, b *ledger.Transaction) bool { return a.ClientID == b.ClientID && a.ID == b.ID })
	if len(out) >= maxFound {
		out, short = out[:maxFound], true
	}
	return out, short, err
}

// linesOfAmount looks through the lines of amountLines. short says that there are too many.
func linesOfAmount(ctx context.Context, tx *store.Tx, q Search) (out []*ledger.Transaction, short bool, err error) {
	for _, kind := range amountLines {
		f := store.TransactionFilter{Type: string(kind), From: q.Earliest}
		if _, n, err := tx.ListTransactions(ctx, q.Client, f, store.Page{}); err != nil || n == 0 {
			if err != nil {
				return nil, false, err
			}
			continue
		} else if n > maxScannedRows {
			short = true
			continue
		}
		for _, amount := range q.Amounts {
			f.Amount, f.Currency = amount.Minor, amount.Currency
			lines, _, err := tx.ListTransactions(ctx, q.Client, f, store.Page{Limit: maxFound})
			if err != nil {
				return nil, false, err
			}
			out = append(out, lines...)
		}
	}
	return out, short, nil
}
