package ledger

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"till"
)

// I1 and I3: whatever happens to a wallet, in whatever order, every entry
// balances; the balance is the sum of the wallet's lines; what is owed is the
// sum of the receivable account; and after each repayment there is either
// money available or a debt, never both.
func TestAWalletAndItsDebtAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := Wallet{ID: till.NewID(1), ClientID: till.NewID(2), Currency: "XAF"}
		sums := map[AccountKind]int64{}
		var lines, taken, in, back int64
		at := till.Time(0)
		post := func(e Entry) {
			t.Helper()
			at++
			e.ID, e.CreatedAt = till.NewID(at), at
			if err := e.Check(); err != nil || e.Currency != "XAF" || e.ClientID != w.ClientID {
				t.Fatalf("%+v: %v", e, err)
			}
			for _, p := range e.Postings {
				sums[p.Account.Kind] += p.Amount
			}
			if _, touched := e.WalletAmount(); !touched {
				if err := w.Owe(&e); err != nil {
					t.Fatalf("%+v: %v", e, err)
				}
				return
			}
			line, err := w.Post(&e)
			if err != nil {
				t.Fatalf("%+v posted to %+v: %v", e, w, err)
			}
			if lines++; line.Sequence != lines || line.BalanceAfter != w.Balance || w.UpdatedAt != at {
				t.Errorf("line %d is %+v, the wallet %+v", lines, line, w)
			}
		}
		repay := func() {
			if e, owes := Repay(&w); owes {
				post(e)
			}
			if w.Owed > 0 && w.Available() > 0 {
				t.Errorf("the wallet has %d available and owes %d", w.Available(), w.Owed)
			}
			if _, owes := Repay(&w); owes {
				t.Error("a debt was not paid at once")
			}
		}
		var credited []*till.Payment
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1: // money comes in, with its fee
				p := drawPayment(t)
				p.ClientID, p.Amount.Currency = w.ClientID, "XAF"
				p.Fee = till.Fee{Flat: rapid.Int64Range(0, 100).Draw(t, "flat"), BasisPoints: rapid.Int64Range(0, 10_000).Draw(t, "bp")}.Of(p.Amount.Minor)
				post(Settle(p, rapid.Bool().Draw(t, "late"), 0))
				if p.Fee > 0 {
					post(TakeFee(p))
				}
				in, taken, credited = in+p.Amount.Minor, taken+p.Fee, append(credited, p)
			case 2: // the operator takes some of it back
				if len(credited) == 0 {
					continue
				}
				p := credited[0]
				credited, back = credited[1:], back+p.Amount.Minor
				before := w
				post(Reverse(p, w.Available()))
				if paid := before.Balance - w.Balance; paid != min(p.Amount.Minor, before.Available()) || w.Owed-before.Owed != p.Amount.Minor-paid {
					t.Errorf("%d taken back from %+v leaves %+v", p.Amount.Minor, before, w)
				}
			case 3: // some of it is held for payouts, or no longer
				w.Reserved = rapid.Int64Range(0, w.Balance).Draw(t, "reserved")
			case 4: // a person corrects
				amount := rapid.Int64Range(-w.Available(), 1000).Draw(t, "correction")
				if amount != 0 {
					post(Adjust(&w, amount, "why"))
				}
			}
			repay()
		}
		if w.Balance != sums[WalletAccount] || w.Owed != -sums[Receivable] || sums[Fees] != taken || sums[OperatorAccount] != back-in {
			t.Errorf("the wallet is %+v, the accounts sum to %v, %d came in, %d of it was taken back, %d were fees", w, sums, in, back, taken)
		}
		var all int64
		for _, s := range sums {
			all += s
		}
		if all != 0 {
			t.Errorf("all accounts together hold %d: %v", all, sums)
		}
	})
}

// D9: the direction of a correction is the sign of its amount, and nothing
// else's.
func TestAnAdjustmentMovesTheWayItSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		amount    int64
		direction string
		balance   int64
	}{{25, "credit", 125}, {-25, "debit", 75}, {-100, "debit", 0}} {
		w := Wallet{Currency: "XAF", Balance: 100}
		e := Adjust(&w, c.amount, "A1")
		line, err := w.Post(&e)
		if err != nil || e.Check() != nil || line.Direction != c.direction || line.Amount.Minor != max(c.amount, -c.amount) || w.Balance != c.balance ||
			line.Type != "adjustment" || line.Reference != "A1" || e.sum(Adjustments) != -c.amount {
			t.Errorf("%d: %+v leaves %+v, %v", c.amount, line, w, err)
		}
	}
}

func TestWhatABalanceCannotHoldChangesNothing(t *testing.T) {
	t.Parallel()
	full := Wallet{Currency: "XAF", Balance: 100, Reserved: 60, Owed: 0}
	for name, e := range map[string]Entry{
		"more than is available":  Adjust(&full, -41, ""),
		"more than a wallet has":  Adjust(&full, MaxBalance, ""),
		"a repayment of no debt":  {Currency: "XAF", Postings: []Posting{{Account{Kind: WalletAccount}, -1}, {Account{Kind: Receivable}, 1}}},
		"a debt that is too much": {Currency: "XAF", Postings: []Posting{{Account{Kind: WalletAccount}, 1}, {Account{Kind: Receivable}, -MaxBalance - 1}}},
	} {
		w := full
		if _, err := w.Post(&e); !errors.Is(err, ErrOutOfBounds) {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(w, full); d != "" {
			t.Errorf("%s was refused, and the wallet changed (-got +want)\n%s", name, d)
		}
	}
}

// D16: what an entry is made from does not change with it, nor it with what
// it was made from, nor with another entry.
func TestEntriesShareNothing(t *testing.T) {
	t.Parallel()
	w := Wallet{Currency: "XAF", Balance: 3000, Owed: 1}
	before := w
	var entries []Entry
	for _, amount := range []int64{5000, 7000} {
		p := &till.Payment{Amount: till.Money{Minor: amount, Currency: "XAF"}, Fee: amount / 100, Connection: "mtn"}
		was := *p
		repaid, _ := Repay(&w)
		entries = append(entries, Settle(p, false, 0), TakeFee(p), Reverse(p, w.Available()), repaid, Adjust(&w, amount, ""))
		if d := cmp.Diff(*p, was); d != "" {
			t.Errorf("the payment changed\n%s", d)
		}
		p.Amount.Minor, p.Fee = 1, 1
	}
	if d := cmp.Diff(w, before); d != "" {
		t.Errorf("the wallet changed\n%s", d)
	}
	for i, want := range [][]int64{{-5000, 5000}, {-50, 50}, {5000, -3000, -2000}, {-1, 1}, {-5000, 5000},
		{-7000, 7000}, {-70, 70}, {7000, -3000, -4000}, {-1, 1}, {-7000, 7000}} {
		var got []int64
		for _, p := range entries[i].Postings {
			got = append(got, p.Amount)
		}
		if d := cmp.Diff(got, want); d != "" {
			t.Errorf("entry %d, %s (-got +want)\n%s", i, entries[i].Kind, d)
		}
	}
}
