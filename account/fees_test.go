package account

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"till"
)

func TestFeesAreOffUntilSetAndKeptInTheSession(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	c, text := newClient(t, a, till.Live)
	stranger, _ := newClient(t, a, till.Test)
	fee := func() int64 {
		t.Helper()
		s, err := a.Authenticate(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		return till.FeeFor(s.Fees(), till.PaymentFee, "mtn_momo", till.Money{Minor: 5000, Currency: "XAF"})
	}
	set := func(f till.Fee) {
		t.Helper()
		if err := a.SetFee(t.Context(), c.ID, f, "Ada"); err != nil {
			t.Fatal(err)
		}
	}
	if got := fee(); got != 0 {
		t.Errorf("a new client pays %d", got)
	}
	f := till.Fee{Kind: till.PaymentFee, Method: "mtn_momo", Currency: "XAF", Flat: 10, BasisPoints: 150}
	set(f)
	if got := fee(); got != 85 {
		t.Errorf("the fee is %d, want 85", got)
	}
	f.Flat = 0
	set(f)
	set(till.Fee{Kind: till.PayoutFee, Method: "mtn_momo", Currency: "XAF", Flat: 7})
	if got := fee(); got != 75 {
		t.Errorf("the changed fee is %d, want 75", got)
	}
	schedule, err := a.Fees(t.Context(), c.ID)
	if d := cmp.Diff(schedule, []till.Fee{f, {Kind: till.PayoutFee, Method: "mtn_momo", Currency: "XAF", Flat: 7}}); d != "" || err != nil {
		t.Errorf("the schedule (-got +want), %v\n%s", err, d)
	}
	if others, err := a.Fees(t.Context(), stranger.ID); len(others) != 0 || err != nil {
		t.Errorf("another client pays %v, %v", others, err)
	}
	for range 2 { // the second changes nothing, and is not audited
		if err := a.RemoveFee(t.Context(), c.ID, f, "Ada"); err != nil {
			t.Fatal(err)
		}
	}
	if got := fee(); got != 0 {
		t.Errorf("a removed fee is %d", got)
	}
	if d := cmp.Diff(actions(t, a, c.ID), []string{"client.create", "fee.set", "fee.set", "fee.set", "fee.remove"}); d != "" {
		t.Errorf("audit (-got +want):\n%s", d)
	}
}

// A create call reads the fee from the session: another instance's change is
// seen within a second, without a read of its own.
func TestAFeeIsSeenByAnotherInstanceWithinASecond(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	c, text := newClient(t, a, till.Test)
	other := New(a.store, nil)
	clock := time.Now()
	other.now = func() time.Time { return clock }
	fee := func() int64 {
		t.Helper()
		s, err := other.Authenticate(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		return till.FeeFor(s.Fees(), till.PaymentFee, "mpesa", till.Money{Minor: 5000, Currency: "KES"})
	}
	fee()
	if err := a.SetFee(t.Context(), c.ID, till.Fee{Kind: till.PaymentFee, Method: "mpesa", Currency: "KES", Flat: 10}, "Ada"); err != nil {
		t.Fatal(err)
	}
	if got := fee(); got != 0 {
		t.Errorf("the session was read again: %d", got)
	}
	clock = clock.Add(maxAge)
	if got := fee(); got != 10 {
		t.Errorf("a second later the fee is %d, want 10", got)
	}
}

func TestBadFeesAreRefused(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	c, _ := newClient(t, a, till.Test)
	good := till.Fee{Kind: till.PaymentFee, Method: "mtn_momo", Currency: "XAF", Flat: 10}
	for name, change := range map[string]func(f *till.Fee){
		"no kind":               func(f *till.Fee) { f.Kind = "" },
		"another kind":          func(f *till.Fee) { f.Kind = "tip" },
		"no such method":        func(f *till.Fee) { f.Method = "cash" },
		"a currency not served": func(f *till.Fee) { f.Currency = "KES" },
		"less than nothing":     func(f *till.Fee) { f.Flat = -1 },
		"too much":              func(f *till.Fee) { f.Flat = till.MaxMinor + 1 },
		"a negative part":       func(f *till.Fee) { f.BasisPoints = -1 },
		"more than the whole":   func(f *till.Fee) { f.BasisPoints = till.MaxBasisPoints + 1 },
		"nothing at all":        func(f *till.Fee) { f.Flat = 0 },
	} {
		f := good
		change(&f)
		if code := till.ErrorCode(a.SetFee(t.Context(), c.ID, f, "Ada")); code != till.CodeValidationFailed {
			t.Errorf("%s: %q", name, code)
		}
	}
	wantCode(t, a.RemoveFee(t.Context(), c.ID, till.Fee{Kind: till.PaymentFee, Method: "cash"}, "Ada"), till.CodeValidationFailed)
	wantCode(t, a.SetFee(t.Context(), till.ID{1}, good, "Ada"), till.CodeClientNotFound)
	if _, err := a.Fees(t.Context(), till.ID{1}); till.ErrorCode(err) != till.CodeClientNotFound {
		t.Errorf("the fees of nobody: %v", err)
	}
}
