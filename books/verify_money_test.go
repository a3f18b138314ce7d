package books_test

import (
	"path/filepath"
	"testing"

	"till"
	"till/books"
	"till/provider"
	"till/store"
	"till/store/storetest"
)

// newMoneyBooks fills a store, for two clients, with what happens to money
// after it came in: fees, corrections, reversals that the wallet covers, in
// part or not at all, and a repayment. Payments are referred to by their
// reference.
func newMoneyBooks(t *testing.T, path string) *store.Store {
	t.Helper()
	s := storetest.Open(t, store.Config{Path: path})
	c := storetest.NewCollector(t, s)
	fees := []till.Fee{{Kind: till.PaymentFee, Method: "mtn_momo", Currency: "XAF", Flat: 100}}
	for range 2 {
		client := storetest.NewClient(t, s, till.Test)
		paid := func(reference string, fees []till.Fee, words ...provider.Result) *till.Payment {
			p := storetest.NewPayment(t, c, client, storetest.Body{Reference: reference, Fees: fees})
			for _, w := range append([]provider.Result{storetest.Succeeded}, words...) {
				storetest.Apply(t, c, s, p, w)
			}
			return p
		}
		adjust := func(minor int64) {
			if _, err := books.Adjust(t.Context(), s, newAdjustment(client, s, minor)); err != nil {
				t.Fatal(err)
			}
		}
		paid("plain", nil)                       // 5000
		paid("fee", fees)                        // 9900
		paid("covered", nil, storetest.Reversed) // 9900
		part, none := paid("part", fees), paid("none", nil)
		adjust(-18_000)                                    // 1800
		storetest.Apply(t, c, s, part, storetest.Reversed) // 0, owes 3200
		storetest.Apply(t, c, s, none, storetest.Reversed) // owes 8200
		paid("repays", nil)                                // owes 3200
		adjust(200)                                        // owes 3000
		storetest.NewPayment(t, c, client, storetest.Body{Reference: "pending", Fees: fees})
	}
	if _, err := books.ExtendChains(t.Context(), s, storetest.ChainKey); err != nil {
		t.Fatal(err)
	}
	storetest.RollUp(t, s)
	return s
}

func TestVerifyReadsAllMoney(t *testing.T) {
	t.Parallel()
	s := newMoneyBooks(t, filepath.Join(t.TempDir(), "till.db"))
	for _, slice := range []int{1, 2, 3, 10_000} {
		r := verify(t, s, books.Options{Slice: slice})
		for _, p := range r.Problems {
			t.Errorf("slice %d: %+v", slice, p)
		}
		// Per client: 6 credits, 2 fees, 2 adjustments, 2 reversals with a line
		// and one without, 2 repayments.
		if r.Transactions != 28 || r.Entries != 30 || r.Audit != 30 {
			t.Errorf("slice %d: read %d lines, %d entries, %d audit rows; want 28, 30, 30", slice, r.Transactions, r.Entries, r.Audit)
		}
	}
}

// fact names a fact about a payment of the first client, entry its entry.
func fact(reference, fact string) string {
	return ` client_id = ` + firstClient + ` AND fact = '` + fact + `' AND subject_id = ` + of(reference)
}

func entry(reference, kind string) string {
	return `(SELECT entry_id FROM facts WHERE` + fact(reference, kind) + `)`
}

func TestVerifyFindsMoneyThatIsBroken(t *testing.T) {
	t.Parallel()
	template := filepath.Join(t.TempDir(), "template.db")
	newMoneyBooks(t, template)
	ofFirst := ` client_id = ` + firstClient

	for _, c := range []struct{ invariant, name, sql string }{
		{"I1", "a fee that went elsewhere", `UPDATE postings SET account = 'adjustments' WHERE kind = 'fee' AND payment_id = ` + of("fee")},
		{"I1", "a collection that is called a fee's", `UPDATE postings SET account = 'fees' WHERE kind = 'collection' AND payment_id = ` + of("plain")},
		{"I1", "a correction by nobody", `DELETE FROM adjustments WHERE amount = 200 AND` + ofFirst},
		{"I1", "a correction the other way", `UPDATE adjustments SET amount = -amount WHERE amount = 200 AND` + ofFirst},
		{"I1", "a correction of another amount", `UPDATE adjustments SET amount = amount + 1 WHERE amount = 200 AND` + ofFirst},
		{"I1", "a correction in another currency", `UPDATE adjustments SET currency = 'KES' WHERE amount = 200 AND` + ofFirst},
		{"I1", "a correction of another time", `UPDATE adjustments SET created_at = created_at + 1 WHERE amount = 200 AND` + ofFirst},
		{"I1", "a correction that moved nothing", `UPDATE adjustments SET entry_id = x'00' WHERE amount = 200 AND` + ofFirst},
		{"I1", "a reversal out of nowhere", `DELETE FROM postings WHERE account = 'receivable' AND entry_id = ` + entry("none", "reversal")},
		{"I1", "a reversal that only the operator saw", `UPDATE postings SET account = 'suspense' WHERE account = 'receivable' AND entry_id = ` + entry("none", "reversal")},

		{"I1", "money out of suspense that was never there", `UPDATE postings SET account = 'suspense', connection = '' WHERE account = 'operator' AND kind = 'collection' AND payment_id = ` + of("plain")},

		{"I2", "a fee that was not taken", `DELETE FROM facts WHERE` + fact("fee", "fee")},
		{"I2", "a fee of another amount", `UPDATE payments SET fee = 99 WHERE id = ` + of("fee")},
		{"I2", "a fee that nobody asked for", `UPDATE payments SET fee = 0 WHERE id = ` + of("fee")},
		{"I2", "a fee that was asked for and not taken", `UPDATE payments SET fee = 1 WHERE id = ` + of("plain")},
		{"I2", "a fee that neither the payment nor a fact tells of", `DELETE FROM facts WHERE` + fact("fee", "fee") + `;
			UPDATE payments SET fee = 0 WHERE id = ` + of("fee")},
		{"I2", "a fee above the amount", `UPDATE payments SET fee = amount + 1 WHERE id = ` + of("pending")},
		{"I2", "a fee less than nothing", `UPDATE payments SET fee = -1 WHERE id = ` + of("pending")},
		{"I2", "a fee of a payment that was never credited", `UPDATE facts SET subject_id = ` + of("pending") + ` WHERE` + fact("fee", "fee")},
		{"I2", "a fee of no payment", `UPDATE facts SET subject_id = x'01' WHERE` + fact("fee", "fee")},
		{"I2", "a fee that is another's", `UPDATE facts SET entry_id = (SELECT entry_id FROM facts WHERE` + fact("part", "fee") + `) WHERE` + fact("fee", "fee")},
		{"I2", "a reversal that took nothing", `DELETE FROM facts WHERE` + fact("covered", "reversal")},
		{"I2", "a reversal that nobody was told of", `UPDATE payments SET reversed_event = NULL WHERE id = ` + of("covered")},
		{"I2", "a reversal of another's money", `UPDATE facts SET subject_id = ` + of("plain") + ` WHERE` + fact("covered", "reversal")},
		{"I2", "a reversal of less", `UPDATE postings SET amount = amount - 1 WHERE account = 'operator' AND entry_id = ` + entry("covered", "reversal")},
		{"I2", "a reversal by another name", `UPDATE facts SET entry_id = (SELECT id FROM transactions WHERE money_in = 1 AND payment_id = ` + of("covered") + `) WHERE` + fact("covered", "reversal")},
		{"I2", "a reversal that says another time", `UPDATE events SET created_at = created_at - 1 WHERE kind = 'payment.reversed' AND subject_id = ` + of("covered") + `;
			UPDATE payments SET updated_at = updated_at - 1 WHERE id = ` + of("covered")},

		{"I3", "a debt that nobody made", `UPDATE wallets SET owed = owed + 1 WHERE currency = 'XAF' AND` + ofFirst},
		{"I3", "a debt that was forgotten", `UPDATE wallets SET owed = 0 WHERE currency = 'XAF' AND` + ofFirst},
		{"I3", "a debt in another currency", `UPDATE wallets SET owed = 5 WHERE currency = 'KES' AND` + ofFirst},
		{"I3", "money that could be paid out beside a debt", `UPDATE wallets SET balance = 10 WHERE currency = 'XAF' AND` + ofFirst},
		{"I3", "a repayment that repaid nothing", `UPDATE postings SET account = 'adjustments' WHERE account = 'receivable' AND amount = 200 AND` + ofFirst},
		{"I3", "a debt in no wallet", `UPDATE postings SET currency = 'EUR' WHERE entry_id = ` + entry("none", "reversal")},

		{"I6", "a reversal told as something else", `UPDATE events SET kind = 'payment.success' WHERE kind = 'payment.reversed' AND subject_id = ` + of("covered")},
		{"I6", "a reversal with another status", `UPDATE events SET status = 'failed' WHERE kind = 'payment.reversed' AND subject_id = ` + of("covered")},
		{"I6", "a reversal that is not in the log", `DELETE FROM events WHERE kind = 'payment.reversed' AND subject_id = ` + of("covered")},
		{"I6", "a reversal with another receipt", `UPDATE events SET provider_reference = 'X' WHERE kind = 'payment.reversed' AND subject_id = ` + of("covered")},

		{"I14", "a reversal without a line that nobody decided", `DELETE FROM audit_seals WHERE` + ofFirst + `;
			UPDATE audit SET action = 'resolve' WHERE action = 'collection_reversal' AND subject_id = ` + of("none")},
		{"I14", "a fee that nobody decided", `DELETE FROM audit_seals WHERE` + ofFirst + `;
			UPDATE audit SET action = 'resolve' WHERE action = 'fee' AND subject_id = ` + of("fee")},
		{"I14", "a repayment that nobody decided", `DELETE FROM audit_seals WHERE` + ofFirst + `;
			UPDATE audit SET action = 'resolve' WHERE action = 'adjustment' AND actor = 'engine' AND` + ofFirst},
		{"I14", "a correction without a name", `UPDATE adjustments SET actor = '' WHERE amount = 200 AND` + ofFirst},
		{"I14", "a correction without a reason", `UPDATE adjustments SET reason = '' WHERE amount = 200 AND` + ofFirst},
	} {
		t.Run(c.invariant+" "+c.name, func(t *testing.T) {
			t.Parallel()
			s, client := broken(t, template, c.sql)
			r := verify(t, s, books.Options{Slice: 4})
			found := false
			for _, p := range r.Problems {
				found = found || p.Invariant == c.invariant
				if p.Client != client && p.Invariant != "pages" { // pages are no client's
					t.Errorf("a fault was reported at a client that has none: %+v", p)
				}
			}
			if !found {
				t.Errorf("got %+v, want %s", r.Problems, c.invariant)
			}
		})
	}
}
