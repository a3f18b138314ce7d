package subject

import (
	"context"
	"slices"

	"till/books"
	"till/checkout"
	"till/console/shell"
	"till/store"
	"till/webhook"
)

// OpenCases returns the open cases of the merchant, the longest open first.
func OpenCases(v *shell.Visit, ctx context.Context, tx *store.Tx) ([]*store.Case, error) {
	return tx.Cases(ctx, store.CaseFilter{Client: v.Client.ID, Limit: books.MaxCases})
}

// Examined returns what is to be examined in a list: each payment, payout or refund that has
// an open case and that the person may see, ended or not. Whatever counts them counts these.
func Examined(v *shell.Visit, cases []*store.Case, list string) (refs []store.Ref) {
	for _, c := range cases {
		ref := store.Ref{Client: v.Client.ID, ID: c.SubjectID}
		switch {
		case listOf(c.Noun()) != list, c.SubjectID.IsZero(), c.Kind == webhook.CaseExhausted, c.Kind == webhook.CaseDisabled, checkout.IsCase(c.Kind):
		case slices.Contains(refs, ref), c.SubjectID.Time() < v.Earliest():
		default:
			refs = append(refs, ref)
		}
	}
	return refs
}

// OpenState is the state of a list that shows what has not ended.
const OpenState = "open"
