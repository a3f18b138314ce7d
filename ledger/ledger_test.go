package ledger

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"till"
)

func drawPayment(t *rapid.T) *till.Payment {
	return &till.Payment{
		ClientID: till.NewID(1), ID: till.NewID(2),
		Amount:     till.Money{Minor: rapid.Int64Range(1, 999_999_999_999_999).Draw(t, "amount"), Currency: rapid.SampledFrom([]string{"XAF", "KES"}).Draw(t, "currency")},
		Reference:  rapid.StringMatching(`[a-z]{0,8}`).Draw(t, "reference"),
		Connection: rapid.SampledFrom([]string{"mtn", "airtel"}).Draw(t, "connection"), ProviderReference: "R1",
	}
}

func sumOf(e *Entry, kind AccountKind) (sum int64) {
	for _, p := range e.Postings {
		if p.Account.Kind == kind {
			sum += p.Amount
		}
	}
	return sum
}

// I1 and I2: whatever comes in, the entry balances, and the wallet gets
// exactly what the payment asked for.
func TestEveryEntryBalances(t *testing.T) {
	t.Parallel()
	t.Run("settle", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			p := drawPayment(t)
			late := rapid.Bool().Draw(t, "late")
			suspended := rapid.OneOf(rapid.Just(int64(0)), rapid.Just(p.Amount.Minor), rapid.Int64Range(1, 999_999_999_999_999)).Draw(t, "suspended")
			e := Settle(p, late, suspended)
			if err := e.Check(); err != nil {
				t.Fatalf("%+v: %v", e, err)
			}
			if amount, ok := e.WalletAmount(); !ok || amount != p.Amount.Minor || e.Currency != p.Amount.Currency {
				t.Errorf("the wallet gets %d %s, %v; want %v", amount, e.Currency, ok, p.Amount)
			}
			if want := (map[bool]EntryKind{false: Collection, true: LateCollection})[late]; e.Kind != want {
				t.Errorf("the kind is %s, want %s", e.Kind, want)
			}
			// What was put aside before is used up, and the operator's account
			// ends where one movement of money leaves it.
			if got := sumOf(&e, SuspenseAccount); got != -suspended {
				t.Errorf("suspense gets %d, want %d", got, -suspended)
			}
			if got := sumOf(&e, OperatorAccount); got != suspended-p.Amount.Minor {
				t.Errorf("the operator gets %d, want %d", got, suspended-p.Amount.Minor)
			}
			for _, posting := range e.Postings {
				if (posting.Account.Kind == OperatorAccount) != (posting.Account.Connection == p.Connection) {
					t.Errorf("%+v: the operator's account, and no other, is its connection's", posting)
				}
			}
			if e.PaymentID != p.ID || e.ClientID != p.ClientID || e.Reference != p.Reference || e.ProviderReference != p.ProviderReference {
				t.Errorf("%+v is not the payment's", e)
			}
		})
	})
	t.Run("suspend", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			p := drawPayment(t)
			reported := till.Money{Minor: rapid.Int64Range(1, 999_999_999_999_999).Draw(t, "reported"), Currency: rapid.SampledFrom([]string{"XAF", "KES"}).Draw(t, "in")}
			e := Suspend(p, reported)
			if err := e.Check(); err != nil {
				t.Fatalf("%+v: %v", e, err)
			}
			if _, touched := e.WalletAmount(); touched || e.Currency != reported.Currency || sumOf(&e, SuspenseAccount) != reported.Minor {
				t.Errorf("%+v: want %v put aside, and no wallet touched", e, reported)
			}
			if _, err := (&Wallet{}).Post(&e); err == nil {
				t.Error("money that was put aside was posted to a wallet")
			}
		})
	})
}

func TestCheckRefusesWhatDoesNotBalance(t *testing.T) {
	t.Parallel()
	wallet, operator := Account{Kind: WalletAccount}, Account{Kind: OperatorAccount, Connection: "mtn"}
	for _, c := range []struct {
		name     string
		postings []Posting
		balanced bool
	}{
		{"two sides that sum to zero", []Posting{{operator, -5}, {wallet, 5}}, true},
		{"three sides that sum to zero", []Posting{{operator, -7}, {Account{Kind: SuspenseAccount}, 2}, {wallet, 5}}, true},
		{"no side", nil, false},
		{"one side", []Posting{{wallet, 5}}, false},
		{"one side of nothing", []Posting{{wallet, 0}}, false},
		{"two sides of nothing", []Posting{{operator, 0}, {wallet, 0}}, false},
		{"an empty side beside two", []Posting{{operator, -5}, {wallet, 5}, {Account{Kind: SuspenseAccount}, 0}}, false},
		{"one franc too many", []Posting{{operator, -5}, {wallet, 6}}, false},
		{"two credits", []Posting{{operator, 5}, {wallet, 5}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := Entry{Postings: c.postings}
			if err := e.Check(); (err == nil) != c.balanced || err != nil && !errors.Is(err, errUnbalanced) {
				t.Errorf("got %v, want balanced %v", err, c.balanced)
			}
		})
	}
}

// I3: however a wallet is posted to, its balance is the sum of its lines, the
// lines are numbered without a gap, and the balance stays within bounds; what
// would leave them changes nothing.
func TestAWalletIsTheSumOfItsLines(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := Wallet{ID: till.NewID(1), ClientID: till.NewID(2), Currency: "XAF"}
		var lines []Transaction
		var sum int64
		edges := rapid.SampledFrom([]int64{1, MaxBalance, -MaxBalance, MaxBalance - 1, -1})
		for i := range rapid.IntRange(1, 40).Draw(t, "postings") {
			amount := rapid.OneOf(rapid.Int64Range(-1000, 1000).Filter(func(n int64) bool { return n != 0 }), edges).Draw(t, "amount")
			if rapid.IntRange(0, 5).Draw(t, "reserve") == 0 {
				w.Reserved = rapid.Int64Range(0, w.Balance).Draw(t, "reserved")
			}
			before := w
			e := Entry{ID: till.NewID(till.Time(i + 1)), Kind: Collection, Currency: "XAF", CreatedAt: till.Time(i + 1),
				Postings: []Posting{{Account{Kind: OperatorAccount}, -amount}, {Account{Kind: WalletAccount}, amount}}}
			line, err := w.Post(&e)
			fits := sum+amount >= w.Reserved && sum+amount <= MaxBalance
			if fits != (err == nil) {
				t.Fatalf("%d posted to %d with %d reserved: %v", amount, sum, w.Reserved, err)
			}
			if err != nil {
				if d := cmp.Diff(w, before); d != "" || !errors.Is(err, ErrOutOfBounds) {
					t.Errorf("refused with %v, and the wallet changed (-got +want)\n%s", err, d)
				}
				continue
			}
			sum += amount
			lines = append(lines, line)
			signed := line.Amount.Minor
			if line.Direction == "debit" {
				signed = -signed
			}
			if signed != amount || line.Amount.Minor <= 0 || line.BalanceAfter != sum || line.Sequence != int64(len(lines)) || line.WalletID != w.ID || line.ID != e.ID {
				t.Errorf("line %d is %+v after %d was posted, want balance %d", len(lines), line, amount, sum)
			}
			if w.Balance != sum || w.LastSequence != int64(len(lines)) || w.UpdatedAt != e.CreatedAt || w.Available() != sum-w.Reserved || w.Available() < 0 {
				t.Errorf("the wallet is %+v, want balance %d after %d lines", w, sum, len(lines))
			}
		}
	})
}

// A wallet that differs from its last line takes no line, no debt and no reserve, and pays
// none of its debt: each of them refuses by itself. What a payout held is given back, so
// that its repair finds no reserve of a payout that is over.
func TestABrokenWalletTakesNothing(t *testing.T) {
	t.Parallel()
	broken := Wallet{Currency: "XAF", Balance: 100, Reserved: 10, Owed: 5, LastSequence: 3, Broken: true}
	credit := Adjust(&broken, 1, "")
	debt := Entry{Currency: "XAF", Postings: []Posting{{Account{Kind: OperatorAccount}, 1}, {Account{Kind: Receivable}, -1}}}
	for name, try := range map[string]func(w *Wallet) error{
		"a line":    func(w *Wallet) error { _, err := w.Post(&credit); return err },
		"a debt":    func(w *Wallet) error { return w.Owe(&debt) },
		"a reserve": func(w *Wallet) error { return w.Reserve(1, 1) },
	} {
		w := broken
		w.Broken = false
		if err := try(&w); err != nil {
			t.Fatalf("%s of a sound wallet: %v", name, err)
		}
		w = broken
		if err := try(&w); !errors.Is(err, ErrBroken) {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(w, broken); d != "" {
			t.Errorf("%s was refused, and the wallet changed (-got +want)\n%s", name, d)
		}
	}
	// Not even a line that is out of bounds as well says so: the first thing to do is to repair.
	tooMuch := Adjust(&broken, MaxBalance, "")
	if _, err := broken.Post(&tooMuch); !errors.Is(err, ErrBroken) {
		t.Errorf("a line that is too much: %v", err)
	}
	if e, owes := Repay(&broken); owes {
		t.Errorf("its debt is paid by %+v", e)
	}
	if err := broken.Release(10, 1); err != nil || broken.Reserved != 0 {
		t.Errorf("a reserve is given back with %v, %d stays", err, broken.Reserved)
	}
}
