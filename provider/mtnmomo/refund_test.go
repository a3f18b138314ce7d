package mtnmomo_test

import (
	"testing"
	"time"

	"till"
	"till/provider"
	"till/provider/mtnmomo"
	"till/provider/providertest"
)

// Only payments of the account's country, and nothing unless the configuration says so: that MTN
// bounds the sum is not published.
func TestCanRefund(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mtnmomo.SimConfig{}, nil)
	p := w.Payouts().(provider.Refunder)
	if p.Traits().RefundsBounded {
		t.Error("refunds are on by default")
	}
	for _, c := range []struct {
		country  string
		minor    int64
		currency string
		want     bool
	}{{"CG", 2500, "XAF", true}, {"CG", 1, "XAF", true}, {"CG", 2501, "XAF", false}, {"CG", 0, "XAF", false}, {"CM", 2500, "XAF", false}, {"CG", 5, "XOF", false}} {
		o := provider.Original{Method: "mtn_momo", Country: c.country, Amount: till.Money{Minor: 2500, Currency: "XAF"}}
		if got := p.CanRefund(o, till.Money{Minor: c.minor, Currency: c.currency}); got != c.want {
			t.Errorf("%d %s in %s: %v", c.minor, c.currency, c.country, got)
		}
		if w.Payments().(provider.Refunder).CanRefund(o, o.Amount) {
			t.Error("collections refund")
		}
	}
}

// A payment that MTN does not know, or not as paid, is told apart from other failures.
func TestARefundOfWhatMTNDoesNotKnow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mtnmomo.SimConfig{}, nil)
	known := paid(t, w.sim, "242061234567", till.Money{Minor: 2500, Currency: "XAF"})
	other := *known
	other.Reference = providertest.NewReference()
	for want, of := range map[provider.OriginalState]*provider.Original{"": known, provider.NotPaidThere: &other} {
		r := newRequest(w.clock, known.Phone)
		r.Refund = of
		if got, err := w.Payouts().Submit(t.Context(), r); err != nil || got.Outcome != provider.Accepted {
			t.Fatal(got, err)
		}
		w.clock.Advance(time.Minute)
		got, err := w.Payouts().Check(t.Context(), provider.Query{Reference: r.Reference, Amount: r.Amount, Refund: r.Refund})
		if err != nil || got.Original != want || (got.Outcome == provider.Success) != (want == "") {
			t.Errorf("%+v, %v; want that it shows %q", got, err, want)
		}
		// A transfer of the same reference is another request.
		if got, err := w.Payouts().Check(t.Context(), provider.Query{Reference: r.Reference, Amount: r.Amount}); err != nil || got.Outcome != provider.NotFound {
			t.Errorf("as a transfer it is %+v, %v", got, err)
		}
	}
}
