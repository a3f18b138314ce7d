package ledger_test

import (
	"errors"
	"maps"
	"testing"

	"till"
	"till/ledger"
)

func newPayout() *till.Payout {
	return &till.Payout{ClientID: till.ID{1}, ID: till.ID{2}, Amount: till.Money{Minor: 5000, Currency: "XAF"}, Fee: 75,
		Reference: "refund", ProviderReference: "R1", Connection: "mtn"}
}

// sums returns what an entry moves, by account.
func sums(e *ledger.Entry) map[ledger.Account]int64 {
	m := map[ledger.Account]int64{}
	for _, p := range e.Postings {
		m[p.Account] += p.Amount
	}
	return m
}

func TestEntriesOfPayouts(t *testing.T) {
	t.Parallel()
	p := newPayout()
	wallet, operator, fees, owed := ledger.Account{Kind: ledger.WalletAccount}, ledger.Account{Kind: ledger.OperatorAccount, Connection: "mtn"},
		ledger.Account{Kind: ledger.Fees}, ledger.Account{Kind: ledger.Receivable}
	for _, c := range []struct {
		name  string
		entry ledger.Entry
		kind  string
		want  map[ledger.Account]int64
	}{
		{"a payout", ledger.PayOut(p), "payout", map[ledger.Account]int64{wallet: -5000, operator: 5000}},
		{"its fee", ledger.TakePayoutFee(p), "fee", map[ledger.Account]int64{wallet: -75, fees: 75}},
		{"a late payout that is covered", ledger.PayOutLate(p, 5000), "late_payout", map[ledger.Account]int64{wallet: -5000, operator: 5000}},
		{"one that more than covers it", ledger.PayOutLate(p, 9000), "late_payout", map[ledger.Account]int64{wallet: -5000, operator: 5000}},
		{"a late payout that is covered in part", ledger.PayOutLate(p, 1200), "late_payout", map[ledger.Account]int64{wallet: -1200, owed: -3800, operator: 5000}},
		{"a late payout that is not covered", ledger.PayOutLate(p, 0), "late_payout", map[ledger.Account]int64{owed: -5000, operator: 5000}},
		{"a wallet that is held beyond what it has", ledger.PayOutLate(p, -1), "late_payout", map[ledger.Account]int64{owed: -5000, operator: 5000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := c.entry
			if err := e.Check(); err != nil || string(e.Kind) != c.kind {
				t.Errorf("%s: %v", e.Kind, err)
			}
			got := sums(&e)
			for a, n := range c.want {
				if got[a] != n {
					t.Errorf("%v gets %d, want %d", a, got[a], n)
				}
			}
			if len(got) != len(c.want) || len(e.Postings) != len(c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if e.Subject() != p.ID || !e.PaymentID.IsZero() || e.Reference != p.Reference || e.ProviderReference != p.ProviderReference || e.Currency != "XAF" {
				t.Errorf("it is about %+v", e)
			}
		})
	}
}

// A refund moves the same money as a payout, under its own names, and its entries name the
// payment too.
func TestEntriesOfRefunds(t *testing.T) {
	t.Parallel()
	plain, p := newPayout(), newPayout()
	p.PaymentID = till.ID{3}
	for _, c := range []struct {
		entry, of ledger.Entry
		kind      string
	}{
		{ledger.PayOut(p), ledger.PayOut(plain), "refund"},
		{ledger.TakePayoutFee(p), ledger.TakePayoutFee(plain), "fee"},
		{ledger.PayOutLate(p, 5000), ledger.PayOutLate(plain, 5000), "late_refund"},
		{ledger.PayOutLate(p, 1200), ledger.PayOutLate(plain, 1200), "late_refund"},
		{ledger.PayOutLate(p, 0), ledger.PayOutLate(plain, 0), "late_refund"},
	} {
		e := c.entry
		if err := e.Check(); err != nil || string(e.Kind) != c.kind || !maps.Equal(sums(&e), sums(&c.of)) {
			t.Errorf("%s moves %v, a payout's %v; %v", e.Kind, sums(&e), sums(&c.of), err)
		}
		if e.Subject() != p.ID || e.PayoutID != p.ID || e.PaymentID != p.PaymentID {
			t.Errorf("%s is about %+v", e.Kind, e)
		}
	}
}

func TestAReserveIsHeldAndGivenBack(t *testing.T) {
	t.Parallel()
	w := ledger.Wallet{Balance: 100, UpdatedAt: 1}
	if err := w.Reserve(60, 2); err != nil || w.Reserved != 60 || w.Available() != 40 || w.UpdatedAt != 2 {
		t.Fatalf("%+v, %v", w, err)
	}
	before := w
	for name, err := range map[string]error{
		"more than is left": w.Reserve(41, 3), "less than nothing": w.Reserve(-1, 3),
		"more than is held": w.Release(61, 3), "less than nothing back": w.Release(-1, 3),
	} {
		if !errors.Is(err, ledger.ErrOutOfBounds) || w != before {
			t.Errorf("%s: %v, %+v", name, err, w)
		}
	}
	// What is held cannot be posted away.
	p := newPayout()
	p.Amount.Minor = 41
	e := ledger.PayOut(p)
	if _, err := w.Post(&e); !errors.Is(err, ledger.ErrOutOfBounds) || w != before {
		t.Errorf("a payout of what is held for another: %v, %+v", err, w)
	}
	if err := w.Release(60, 4); err != nil || w.Reserved != 0 || w.Balance != 100 {
		t.Errorf("%+v, %v", w, err)
	}
}

func TestWhatTheWalletLacksIsOwed(t *testing.T) {
	t.Parallel()
	w := ledger.Wallet{Balance: 1300, Reserved: 100, Owed: 10}
	e := ledger.PayOutLate(newPayout(), w.Available())
	e.CreatedAt = 7
	line, err := w.Post(&e)
	if err != nil || line.Amount.Minor != 1200 || line.Direction != "debit" || line.PayoutID != e.PayoutID {
		t.Fatalf("%+v, %v", line, err)
	}
	if w.Balance != 100 || w.Owed != 3810 || w.Available() != 0 || w.UpdatedAt != 7 {
		t.Errorf("the wallet is %+v", w)
	}
	e = ledger.PayOutLate(newPayout(), w.Available())
	if err := w.Owe(&e); err != nil || w.Owed != 8810 || w.Balance != 100 {
		t.Errorf("the wallet is %+v, %v", w, err)
	}
}
