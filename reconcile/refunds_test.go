package reconcile_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"till"
	"till/provider"
	"till/reconcile"
	"till/store"
	"till/store/storetest"
)

// A statement's lines about refunds: money that went out to who had paid. What the operator says
// of one that is open here is applied, and moves what went back of its payment; a line that is
// nobody's, as of a refund that somebody made in the operator's portal, is kept as a stray.
func TestReconcileRefunds(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		storetest.AllowRefunds(t, s)
		d := newStatementTest(t, s)
		var want []string
		payments := map[string]*till.Payment{}
		refund := func(class reconcile.Class, name string, words ...provider.Result) *till.Payout {
			p := d.pay("of "+name, paidUnder("R "+name))
			d.of(p, "R "+name, "5000", "Done")
			r := storetest.NewRefund(t, d.master, s, d.client, storetest.RefundBody{PaymentID: p.ID.String(), Value: "2000"})
			for _, w := range words {
				storetest.ApplyPayout(t, d.master, s, r, w)
			}
			payments[name], d.payouts[name], d.about[r.ID.String()] = p, r, name
			want = append(want, "matched of "+name, string(class)+" "+name)
			return r
		}
		d.out(refund(reconcile.Matched, "given back", paidUnder("P1")), "P1", "2000", "Done")
		d.out(refund(reconcile.Late, "open", storetest.Opened), "P2", "2000", "Done")
		d.out(refund(reconcile.Late, "failed", storetest.Declined), "P3", "2000", "Done")
		d.out(refund(reconcile.MatchedLate, "paid late", storetest.Declined, paidUnder("P4")), "P4", "2000", "Done")
		d.out(refund(reconcile.OpenHere, "refused there", storetest.Opened), "", "2000", "Refused")
		d.out(refund(reconcile.AmountDiffers, "of another amount", paidUnder("P5")), "P5", "1999", "Done")
		refund(reconcile.MissingAtOperator, "missing", paidUnder("P6"))
		d.line("portal", "", "P7", "5000", "XAF", "Done", "D")
		want = append(want, fmt.Sprintf("missing_here line %d", len(d.lines)+1))
		slices.Sort(want)
		r, found := d.reconcile()
		if diff := cmp.Diff(found, want); diff != "" {
			t.Fatalf("(-got +want)\n%s", diff)
		}
		d.apply(r)
		for name, want := range map[string]till.RefundSums{
			"given back":    {Amount: 5000, Refunded: 2000},
			"open":          {Amount: 5000, Refunded: 2000},
			"failed":        {Amount: 5000, Late: 2000},
			"paid late":     {Amount: 5000, Late: 2000},
			"refused there": {Amount: 5000},
			"missing":       {Amount: 5000, Refunded: 2000},
		} {
			if got := storetest.RefundSums(t, s, payments[name]); got != want {
				t.Errorf("%s: the sums are %+v, want %+v", name, got, want)
			}
		}
		if diff := cmp.Diff(d.cases(), map[string]string{"of another amount": "amount_differs"}); diff != "" {
			t.Errorf("the cases (-got +want)\n%s", diff)
		}
	})
}
