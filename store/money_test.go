package store_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"till"
	"till/books"
	"till/provider"
	"till/store"
	"till/store/storetest"
)

// D10, D13, D15: whatever the program believes, a fee is taken once, money is
// taken back once, and an adjustment is made once.
func TestTheDatabaseRefusesToMoveMoneyTwice(t *testing.T) {
	t.Parallel()
	const unique, check, only, fixed = "unique constraint", "check constraint", "append only", "fixed column"
	payment := func(reference, set string) string {
		return `UPDATE payments SET ` + set + ` WHERE reference = '` + reference + `'`
	}
	refused := []struct{ name, query, want string }{
		{"a second fee", `INSERT INTO facts (client_id, subject_id, fact, entry_id) SELECT client_id, subject_id, fact, randomblob(16) FROM facts WHERE fact = 'fee'`, unique},
		{"a second reversal", `INSERT INTO facts (client_id, subject_id, fact, entry_id) SELECT client_id, subject_id, fact, randomblob(16) FROM facts WHERE fact = 'reversal'`, unique},
		{"a fact of another name", `INSERT INTO facts (client_id, subject_id, fact, entry_id) VALUES (x'01', x'01', 'refund', x'01')`, check},
		{"a changed fact", `UPDATE facts SET entry_id = x'00'`, only},
		{"a deleted fact", `DELETE FROM facts`, only},
		{"an adjustment under an id that is taken", `INSERT INTO adjustments (client_id, id, entry_id, currency, amount, reason, actor, created_at)
			SELECT client_id, id, randomblob(16), currency, amount, reason, actor, created_at FROM adjustments`, unique},
		{"an adjustment of nothing", `INSERT INTO adjustments (client_id, id, entry_id, currency, amount, reason, actor, created_at)
			SELECT client_id, randomblob(16), randomblob(16), currency, 0, reason, actor, created_at FROM adjustments`, check},
		{"a changed adjustment", `UPDATE adjustments SET amount = -amount`, only},
		{"a deleted adjustment", `DELETE FROM adjustments`, only},
		{"a debt of less than nothing", `UPDATE wallets SET owed = -1 WHERE currency = 'XAF'`, check},
		{"a changed fee", payment("pending", "fee = 1"), fixed},
		{"a reversal of an open payment", payment("pending", "reversed_event = 99"), check},
		{"a reversal of a failure", payment("failed", "reversed_event = 99"), check},
		{"a fee of less than nothing in a schedule", `UPDATE client_fees SET flat = -1`, check},
		{"more than the whole in a schedule", `UPDATE client_fees SET basis_points = 10001`, check},
		{"a fee of another kind", `UPDATE client_fees SET kind = 'tip'`, check},
	}
	runVault(t, func(t *testing.T, s *store.Store, client *till.Client, try storetest.Intruder) {
		fee := till.Fee{Kind: till.PaymentFee, Method: "mtn_momo", Currency: "XAF", Flat: 100}
		c := storetest.NewCollector(t, s)
		p := storetest.NewPayment(t, c, client, storetest.Body{Reference: "moved", Fees: []till.Fee{fee}})
		storetest.Apply(t, c, s, p, storetest.Succeeded)
		storetest.Apply(t, c, s, p, storetest.Reversed)
		_, err := books.Adjust(t.Context(), s, books.Adjustment{Client: client.ID, ID: till.NewID(s.Now()),
			Amount: till.Money{Minor: 5, Currency: "XAF"}, Reason: "why", By: "Anne"})
		if err == nil {
			err = s.Update(t.Context(), func(tx *store.Tx) error { return tx.SetClientFee(t.Context(), client.ID, fee) })
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range refused {
			t.Run(c.name, func(t *testing.T) {
				if _, err := try(c.query); err == nil || !strings.Contains(strings.ToLower(err.Error()), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
			})
		}
	})
}

// F30: a reversal whose commit nobody answered for is one debit; a collection
// with a fee is one credit and one fee, and repays once.
func TestMoneyWithAnUnknownCommitMovesOnce(t *testing.T) {
	t.Parallel()
	for name, cut := range outcomes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLink(t)
			client := storetest.NewClient(t, l.straight, till.Test)
			c := storetest.NewCollector(t, l.through)
			fees := []till.Fee{{Kind: till.PaymentFee, Method: "mtn_momo", Currency: "XAF", Flat: 100}}
			apply := func(p *till.Payment, r provider.Result) {
				t.Helper()
				l.proxy.CutNext(cut)
				storetest.Apply(t, c, l.through, p, r)
			}
			wallet := func(balance, owed, lines int64) {
				t.Helper()
				err := l.straight.View(t.Context(), func(tx *store.Tx) error {
					w, err := tx.Wallet(t.Context(), client.ID, "XAF")
					if err == nil && (w.Balance != balance || w.Owed != owed || w.LastSequence != lines) {
						t.Errorf("the wallet is %+v, want %d and %d owed after %d lines", w, balance, owed, lines)
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			p := storetest.NewPayment(t, c, client, storetest.Body{Fees: fees})
			apply(p, storetest.Succeeded)
			wallet(4900, 0, 2)
			apply(p, storetest.Reversed)
			wallet(0, 100, 3)
			apply(storetest.NewPayment(t, c, client, storetest.Body{}), storetest.Succeeded)
			wallet(4900, 0, 5)
		})
	}
}
func TestAnAdjustmentWithAnUnknownCommitAdjustsOnce(t *testing.T) {
	t.Parallel()
	for name, cut := range outcomes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLink(t)
			client := storetest.NewClient(t, l.straight, till.Live)
			a := books.Adjustment{Client: client.ID, ID: till.NewID(l.now()), Amount: till.Money{Minor: 700, Currency: "XAF"}, Reason: "why", By: "Anne"}
			l.proxy.CutNext(cut)
			done, err := books.Adjust(t.Context(), l.through, a)
			if err != nil || done.Before || done.Wallet.Balance != 700 {
				t.Errorf("%+v, %v; want it made", done, err)
			}
			again, err := books.Adjust(t.Context(), l.straight, a)
			if err != nil || !again.Before || again.EntryID != done.EntryID || again.Wallet.LastSequence != 1 {
				t.Errorf("the same again: %+v, %v; want the first", again, err)
			}
			var w int64
			err = l.straight.View(t.Context(), func(tx *store.Tx) error {
				got, err := tx.Wallet(t.Context(), client.ID, "XAF")
				w = got.Balance
				return err
			})
			if err != nil || w != 700 {
				t.Errorf("the wallet has %d, %v; want 700", w, err)
			}
		})
	}
}

// Whatever happens to a client's money, in whatever order, the wallet is what
// a few lines of arithmetic say; the books are checked at the end.
func TestMoneyAddsUpWhateverHappens(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		c := storetest.NewCollector(t, s)
		for seed := range uint64(6) {
			client := storetest.NewClient(t, s, till.Test)
			r := rand.New(rand.NewPCG(seed, 0))
			var credited []*till.Payment
			var balance, owed int64
			take := func(amount int64) { // what is there, and the rest is owed
				covered := min(balance, amount)
				balance, owed = balance-covered, owed+amount-covered
			}
			give := func(amount int64) { // what is owed, and the rest is there
				repaid := min(owed, amount)
				balance, owed = balance+amount-repaid, owed-repaid
			}
			for step := range 30 {
				switch r.IntN(4) {
				case 0, 1:
					fee := till.Fee{Kind: till.PaymentFee, Method: "mtn_momo", Currency: "XAF", Flat: r.Int64N(3) * 50, BasisPoints: r.Int64N(3) * 5000}
					p := storetest.NewPayment(t, c, client, storetest.Body{Fees: []till.Fee{fee}})
					words := [][]provider.Result{{storetest.Succeeded}, {storetest.Declined, storetest.Succeeded}, {storetest.Opened, storetest.Succeeded, storetest.Succeeded}}
					for _, w := range words[r.IntN(len(words))] {
						storetest.Apply(t, c, s, p, w)
					}
					give(5000 - fee.Of(5000))
					credited = append(credited, p)
				case 2:
					if len(credited) == 0 {
						continue
					}
					i := r.IntN(len(credited))
					for range 1 + r.IntN(2) {
						storetest.Apply(t, c, s, credited[i], storetest.Reversed)
					}
					take(5000)
					credited = slices.Delete(credited, i, i+1)
				case 3:
					amount := r.Int64N(9000) - 6000
					_, err := books.Adjust(t.Context(), s, books.Adjustment{Client: client.ID, ID: till.NewID(s.Now()),
						Amount: till.Money{Minor: amount, Currency: "XAF"}, Reason: "why", By: "Anne"})
					switch refused := amount == 0 || -amount > balance; {
					case refused != (err != nil):
						t.Fatalf("seed %d, step %d: %d from %d: %v", seed, step, amount, balance, err)
					case refused:
					case amount < 0:
						balance += amount
					default:
						give(amount)
					}
				}
				err := s.View(t.Context(), func(tx *store.Tx) error {
					w, err := tx.Wallet(t.Context(), client.ID, "XAF")
					if err == nil && (w.Balance != balance || w.Owed != owed) {
						t.Fatalf("seed %d, step %d: the wallet is %+v, want %d and %d owed", seed, step, w, balance, owed)
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
