package till_test

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"till"
)

func TestAFeeIsRoundedHalfUpAndNeverAboveTheAmount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                      string
		flat, basisPoints, amount int64
		want                      int64
	}{
		{"off", 0, 0, 5000, 0},
		{"flat alone", 25, 0, 5000, 25},
		{"a part without remainder", 0, 150, 5000, 75},
		{"a half goes up", 0, 150, 5100, 77},
		{"just under a half goes down", 0, 1, 4999, 0},
		{"exactly a half goes up", 0, 1, 5000, 1},
		{"just over a half goes up", 0, 1, 5001, 1},
		{"both, and only the part is rounded", 10, 150, 5100, 87},
		{"the whole amount", 0, 10_000, 5000, 5000},
		{"flat above the amount", 6000, 0, 5000, 5000},
		{"together above the amount", 4000, 5000, 5000, 5000},
		{"exactly the amount", 2500, 5000, 5000, 5000},
		{"the smallest amount", 0, 4999, 1, 0},
		{"the smallest amount at a half", 0, 5000, 1, 1},
		{"the largest amount", 0, 10_000, till.MaxMinor, till.MaxMinor},
		{"the largest of everything", till.MaxMinor, 10_000, till.MaxMinor, till.MaxMinor},
		{"one basis point of the largest", 0, 1, till.MaxMinor, 100_000_000_000},
		{"all but one basis point of the largest", 0, 9999, till.MaxMinor, 999_899_999_999_999},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := (till.Fee{Flat: c.flat, BasisPoints: c.basisPoints}).Of(c.amount); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// Against arithmetic that cannot overflow.
func TestAFeeIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := till.Fee{
			Flat:        rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 1000), rapid.Int64Range(0, till.MaxMinor)).Draw(t, "flat"),
			BasisPoints: rapid.Int64Range(0, till.MaxBasisPoints).Draw(t, "basis points"),
		}
		amount := rapid.OneOf(rapid.Int64Range(1, 20_001), rapid.Int64Range(1, till.MaxMinor)).Draw(t, "amount")
		want := new(big.Int).Mul(big.NewInt(amount), big.NewInt(f.BasisPoints))
		want.Add(want, big.NewInt(till.MaxBasisPoints/2)).Div(want, big.NewInt(till.MaxBasisPoints)).Add(want, big.NewInt(f.Flat))
		if want.Cmp(big.NewInt(amount)) > 0 {
			want.SetInt64(amount)
		}
		if got := f.Of(amount); got != want.Int64() || got < 0 || got > amount {
			t.Errorf("%+v of %d is %d, want %s", f, amount, got, want)
		}
	})
}

func TestAFeeIsTakenForWhatItNames(t *testing.T) {
	t.Parallel()
	schedule := []till.Fee{
		{Kind: till.PaymentFee, Method: "mtn_momo", Currency: "XAF", Flat: 10},
		{Kind: till.PayoutFee, Method: "mtn_momo", Currency: "XAF", Flat: 20},
		{Kind: till.PaymentFee, Method: "mtn_momo", Currency: "UGX", Flat: 30},
	}
	for _, c := range []struct {
		kind             till.FeeKind
		method, currency string
		want             int64
	}{
		{till.PaymentFee, "mtn_momo", "XAF", 10}, {till.PayoutFee, "mtn_momo", "XAF", 20}, {till.PaymentFee, "mtn_momo", "UGX", 30},
		{till.PayoutFee, "mtn_momo", "UGX", 0}, {till.PaymentFee, "airtel_money", "XAF", 0}, {till.PaymentFee, "mtn_momo", "XOF", 0},
	} {
		if got := till.FeeFor(schedule, c.kind, c.method, till.Money{Minor: 5000, Currency: c.currency}); got != c.want {
			t.Errorf("%s by %s in %s: got %d, want %d", c.kind, c.method, c.currency, got, c.want)
		}
	}
}
