package console

import (
	"context"
	"slices"

	"till"
	"till/books"
	"till/store"
	"till/webhook"
)

// openCases returns the open cases of the merchant, the longest open first.
func (v *visit) openCases(ctx context.Context, tx *store.Tx) ([]*store.Case, error) {
	return tx.Cases(ctx, store.CaseFilter{Client: v.client.ID, Limit: books.MaxCases})
}

// examined returns what is to be examined: each payment, or payout, that has an open
// case and that the person may see, ended or not. Whatever counts them counts these.
func (v *visit) examined(cases []*store.Case, payouts bool) (refs []store.Ref) {
	for _, c := range cases {
		ref := store.Ref{Client: v.client.ID, ID: c.SubjectID}
		switch {
		case c.Payout != payouts, c.SubjectID.IsZero(), c.Kind == webhook.CaseExhausted, c.Kind == webhook.CaseDisabled:
		case slices.Contains(refs, ref), c.SubjectID.Time() < v.earliest():
		default:
			refs = append(refs, ref)
		}
	}
	return refs
}

// openState is the state of a list that shows what has not ended.
const openState = "open"

// maxOpenRead is how far a list of what is open can be turned.
const maxOpenRead = 5_000

// listOpen reads a page of the payments that have not ended, of either status.
func (v *visit) listOpen(ctx context.Context, tx *store.Tx, f store.PaymentFilter, page store.Page) ([]*store.PaymentRow, int64, error) {
	var all []*store.PaymentRow
	var total int64
	until := min(page.Offset+page.Limit, maxOpenRead)
	for _, status := range []till.Status{till.Pending, till.Processing} {
		f.Status = status
		rows, n, err := tx.ListPayments(ctx, v.client.ID, f, store.Page{Limit: until})
		if err != nil {
			return nil, 0, err
		}
		all, total = append(all, rows...), total+n
	}
	slices.SortFunc(all, func(a, b *store.PaymentRow) int { return slices.Compare(b.ID[:], a.ID[:]) })
	all = all[:min(len(all), until)]
	return all[min(len(all), page.Offset):], total, nil
}
