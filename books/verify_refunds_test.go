package books_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"till"
	"till/books"
	"till/provider"
	"till/store"
	"till/store/storetest"
)

// newRefundBooks fills a store with refunds in every state, for two clients.
func newRefundBooks(t *testing.T, path string) *store.Store {
	t.Helper()
	s := storetest.Open(t, store.Config{Path: path})
	storetest.AllowRefunds(t, s)
	c, m := storetest.NewCollector(t, s), storetest.NewDisburser(t, s)
	failed := provider.Result{Outcome: provider.Failed, Reason: till.RecipientLimitReached}
	for n := range 2 {
		client := storetest.NewClient(t, s, till.Live)
		for _, p := range []struct {
			reference string
			words     []provider.Result
		}{
			{"back pending", nil},
			{"back paid", []provider.Result{storetest.Opened, storetest.Succeeded}},
			{"back failed", []provider.Result{failed}},
			{"back late", []provider.Result{failed, storetest.Succeeded}},
		} {
			r := storetest.Succeeded
			r.Receipt = fmt.Sprint("R ", n, p.reference)
			paid := storetest.Apply(t, c, s, storetest.NewPayment(t, c, client, storetest.Body{Reference: p.reference}), r)
			made := storetest.NewRefund(t, m, s, client, storetest.RefundBody{PaymentID: paid.ID.String(), Value: "2000", Fee: 50, Rest: `"reference":"` + p.reference + `"`})
			for _, w := range p.words {
				w.Receipt = fmt.Sprint("O ", n, p.reference)
				storetest.ApplyPayout(t, m, s, made, w)
			}
		}
	}
	if _, err := books.ExtendChains(t.Context(), s, storetest.ChainKey); err != nil {
		t.Fatal(err)
	}
	storetest.RollUp(t, s)
	return s
}

// I22: the index that forbids it is dropped first.
func TestVerifyFindsTwoOpenRefunds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "till.db")
	newRefundBooks(t, path)
	storetest.Exec(t, storetest.OpenRaw(t, path), `DROP INDEX payouts_open_refund`)
	s, _ := broken(t, path, `UPDATE payouts SET payment_id = `+given("pending")+`, final_event = NULL WHERE id = `+back("paid"))
	r := verify(t, s, books.Options{})
	if !slices.ContainsFunc(r.Problems, func(p books.Problem) bool { return p.Invariant == "I22" }) {
		t.Errorf("got %+v", r.Problems)
	}
}

// back is a refund of the client that is broken, and given the payment that it gives back.
func back(reference string) string {
	return `(SELECT id FROM payouts WHERE reference = 'back ` + reference + `' AND client_id = ` + firstClient + `)`
}

func given(reference string) string {
	return `(SELECT id FROM payments WHERE reference = 'back ` + reference + `' AND client_id = ` + firstClient + `)`
}

func TestVerifyFindsBrokenRefunds(t *testing.T) {
	t.Parallel()
	template := filepath.Join(t.TempDir(), "template.db")
	s := newRefundBooks(t, template)
	for _, slice := range []int{1, 3, 100} {
		if r := verify(t, s, books.Options{Slice: slice}); !r.Clean() || r.Refunds != 8 || r.Payouts != 8 {
			t.Errorf("slice %d: %d refunds of %d payouts, %+v", slice, r.Refunds, r.Payouts, r.Problems)
		}
	}
	for _, c := range []struct{ invariant, name, sql string }{
		{"I20", "less on its way than open refunds are", `UPDATE refund_sums SET refunding = refunding - 1 WHERE payment_id = ` + given("pending")},
		{"I20", "more refunded than refunds succeeded", `UPDATE refund_sums SET refunded = refunded + 1 WHERE payment_id = ` + given("paid")},
		{"I20", "late money that is not kept", `UPDATE refund_sums SET late = 0 WHERE payment_id = ` + given("late")},
		{"I20", "a failed refund that still counts", `UPDATE refund_sums SET refunding = 2000 WHERE payment_id = ` + given("failed")},
		{"I20", "a refund without sums", `DELETE FROM refund_sums WHERE payment_id = ` + given("paid")},
		{"I20", "sums of another amount", `UPDATE refund_sums SET amount = amount + 1 WHERE payment_id = ` + given("paid")},
		{"I20", "more back than was paid, and everything agrees", `UPDATE payments SET amount = 1999 WHERE id = ` + given("paid") +
			`; UPDATE refund_sums SET amount = 1999 WHERE payment_id = ` + given("paid")},
		{"I20", "sums of no payment", `UPDATE refund_sums SET payment_id = x'01' WHERE payment_id = ` + given("failed")},

		{"I21", "a refund to another number", `UPDATE payouts SET phone = '242069999999' WHERE id = ` + back("paid")},
		{"I21", "a refund in another currency", `UPDATE payouts SET currency = 'XOF' WHERE id = ` + back("failed")},
		{"I21", "a refund by another method", `UPDATE payouts SET method = 'airtel_money' WHERE id = ` + back("paid")},
		{"I21", "a refund in another country", `UPDATE payouts SET country = 'CM' WHERE id = ` + back("paid")},
		{"I21", "a refund of no payment", `UPDATE payouts SET payment_id = x'01' WHERE id = ` + back("failed")},
		{"I21", "a refund of a payment that was credited later", `UPDATE transactions SET created_at = created_at + 1000000000 WHERE money_in = 1 AND payment_id = ` + given("paid")},

		{"I23", "a refund's line without its payment", `UPDATE transactions SET payment_id = NULL WHERE type = 'refund' AND payout_id = ` + back("paid")},
		{"I23", "a refund's line of another payment", `UPDATE transactions SET payment_id = ` + given("late") + ` WHERE type = 'refund' AND payout_id = ` + back("paid")},
		{"I23", "two lines of one refund", `UPDATE transactions SET payout_id = ` + back("paid") + ` WHERE type = 'late_refund' AND payout_id = ` + back("late")},

		{"I2", "a refund that is booked as a payout", `UPDATE transactions SET type = 'payout' WHERE type = 'refund' AND payout_id = ` + back("paid")},
		{"I2", "a refund without its fact", `DELETE FROM facts WHERE fact = 'money_out' AND subject_id = ` + back("paid")},
		{"I6", "an event told as a payout's", `UPDATE events SET kind = 'payout.success' WHERE kind = 'refund.success' AND subject_id = ` + back("paid")},
		{"I10", "a counter of refunds", `UPDATE counters SET n = n + 1 WHERE width = 3 AND noun = 'refund' AND b = 'pending' AND client_id = ` + firstClient},
		{"I10", "a sum of refunds", `UPDATE counters SET sum = sum + 1 WHERE width = 3 AND noun = 'refunded' AND client_id = ` + firstClient},
		{"I14", "a refund that nobody decided", `DELETE FROM audit_seals WHERE client_id = ` + firstClient + `;
			UPDATE audit SET action = 'fee' WHERE action = 'refund' AND subject_id = ` + back("paid")},
	} {
		t.Run(c.invariant+" "+c.name, func(t *testing.T) {
			t.Parallel()
			s, client := broken(t, template, c.sql)
			found := false
			r := verify(t, s, books.Options{Slice: 4})
			for _, p := range r.Problems {
				found = found || p.Invariant == c.invariant && (p.Client == client || p.Client == till.House)
			}
			if !found {
				t.Errorf("got %+v, want %s", r.Problems, c.invariant)
			}
		})
	}
}
