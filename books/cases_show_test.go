package books_test

import (
	"strings"
	"testing"

	"till"
	"till/books"
	"till/provider"
	"till/store"
	"till/store/storetest"
)

// What a person is shown of a payment or payout says where its money is: what
// the wallet lacked when it was taken back, and both amounts where the operator
// reports another.
func TestShowTellsWhereTheMoneyIs(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		client := storetest.NewClient(t, s, till.Live)
		c, m := storetest.NewCollector(t, s), storetest.NewDisburser(t, s)
		paid := storetest.NewPayment(t, c, client, storetest.Body{})
		storetest.Apply(t, c, s, paid, provider.Result{Outcome: provider.Success, Receipt: "R1", Amount: paid.Amount})
		out := storetest.NewPayout(t, m, client, storetest.Body{Value: "500"}, 0)
		storetest.ApplyPayout(t, m, s, out, provider.Result{Outcome: provider.Success, Receipt: "P1", Amount: till.Money{Minor: 499, Currency: "XAF"}})
		if _, err := books.Adjust(t.Context(), s, newAdjustment(client, s, -4000)); err != nil {
			t.Fatal(err)
		}
		storetest.Apply(t, c, s, paid, provider.Result{Outcome: provider.Reversed, Receipt: "R1", Amount: paid.Amount})
		other := storetest.NewPayment(t, c, client, storetest.Body{Value: "700"})
		storetest.Apply(t, c, s, other, provider.Result{Outcome: provider.Success, Receipt: "R2", Amount: till.Money{Minor: 9, Currency: "XAF"}})

		show := func(id till.ID) *books.CaseDetail {
			f, err := books.SubjectDetail(t.Context(), s, store.Ref{Client: client.ID, ID: id})
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		if f := show(paid.ID); f.Payment == nil || len(f.Transactions) != 2 || len(f.Owed) != 1 || f.Owed[0].Amount != (till.Money{Minor: 4500, Currency: "XAF"}) {
			t.Errorf("the payment that was taken back is shown with %d lines and owed %+v", len(f.Transactions), f.Owed)
		}
		if f := show(other.ID); f.Suspended != (till.Money{Minor: 9, Currency: "XAF"}) || !told(f, "9 XAF instead of 700 XAF") {
			t.Errorf("the payment of another amount is shown with %+v put aside and %+v", f.Suspended, f.Others)
		}
		if f := show(out.ID); f.Payout == nil || !told(f, "499 XAF instead of 500 XAF") {
			t.Errorf("the payout of another amount is shown with %+v", f.Others)
		}
	})
}

// told reports whether an open case says so.
func told(f *books.CaseDetail, text string) bool {
	for _, c := range f.Others {
		if strings.Contains(c.Detail, text) {
			return true
		}
	}
	return false
}
