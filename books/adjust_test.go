package books_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"till"
	"till/books"
	"till/ledger"
	"till/store"
	"till/store/auditlog"
	"till/store/storetest"
)

func newAdjustment(client *till.Client, s *store.Store, minor int64) books.Adjustment {
	return books.Adjustment{Client: client.ID, ID: till.NewID(s.Now()), Amount: till.Money{Minor: minor, Currency: "XAF"}, Reason: "a bank slip of Monday", By: "Anne Ndala"}
}

func wallet(t *testing.T, s *store.Store, client *till.Client) (w *ledger.Wallet) {
	t.Helper()
	err := s.View(t.Context(), func(tx *store.Tx) (err error) { w, err = tx.Wallet(t.Context(), client.ID, "XAF"); return err })
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestAnAdjustmentIsALineAndAnAuditRow(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		client := storetest.NewClient(t, s, till.Live)
		up, down := newAdjustment(client, s, 700), newAdjustment(client, s, -200)
		for _, a := range []books.Adjustment{up, down, up, down, down} {
			if _, err := books.Adjust(t.Context(), s, a); err != nil {
				t.Fatal(err)
			}
		}
		w := wallet(t, s, client)
		if w.Balance != 500 || w.LastSequence != 2 {
			t.Errorf("the wallet is %+v, want 500 after two lines", w)
		}
		err := s.View(t.Context(), func(tx *store.Tx) error {
			lines, total, err := tx.ListTransactions(t.Context(), client.ID, store.TransactionFilter{Type: "adjustment"}, store.Page{Limit: 10, Ascending: true})
			if err != nil {
				return err
			}
			var got []string
			for _, l := range lines {
				got = append(got, l.Direction+" "+l.Amount.Value()+" "+l.Reference)
			}
			if d := cmp.Diff(got, []string{"credit 700 " + up.ID.String(), "debit 200 " + down.ID.String()}); d != "" || total != 2 {
				t.Errorf("the statement of %d lines (-got +want)\n%s", total, d)
			}
			audit, err := auditlog.Read(t.Context(), tx, client.ID, 0, 10)
			if len(audit) != 2 || audit[0].Actor != "Anne Ndala" || !strings.Contains(audit[0].Detail, up.ID.String()) || !strings.Contains(audit[1].Detail, "200 XAF debited") ||
				!strings.HasSuffix(audit[1].Detail, down.Reason) {
				t.Errorf("the audit log is %+v", audit)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// The name of a person has a mark since; the same command given again is still
// the same adjustment.
func TestAnAdjustmentFromBeforeNamesWereMarkedIsMadeOnce(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		client := storetest.NewClient(t, s, till.Live)
		a := newAdjustment(client, s, 700)
		if _, err := books.Adjust(t.Context(), s, a); err != nil {
			t.Fatal(err)
		}
		a.By = "person:" + a.By
		if again, err := books.Adjust(t.Context(), s, a); err != nil || !again.Before {
			t.Errorf("it was made before: %t, %v", again.Before, err)
		}
		a.By = "person:Awa"
		if _, err := books.Adjust(t.Context(), s, a); till.ErrorCode(err) != till.CodeKeyReused {
			t.Errorf("another person's is answered %v", err)
		}
	})
}

func TestAnAdjustmentThatCannotBeIsRefusedAndChangesNothing(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		client := storetest.NewClient(t, s, till.Live)
		first := newAdjustment(client, s, 700)
		if _, err := books.Adjust(t.Context(), s, first); err != nil {
			t.Fatal(err)
		}
		err := s.Update(t.Context(), func(tx *store.Tx) error {
			w, err := tx.Wallet(t.Context(), client.ID, "XAF")
			if err != nil {
				return err
			}
			w.Reserved = 300 // a payout is on its way
			return tx.SaveWallets(t.Context(), []*ledger.Wallet{w})
		})
		if err != nil {
			t.Fatal(err)
		}
		before := wallet(t, s, client)
		for name, c := range map[string]struct {
			change func(a *books.Adjustment)
			code   till.Code
			detail string
		}{
			"less than is reserved":     {func(a *books.Adjustment) { a.Amount.Minor = -401 }, till.CodeValidationFailed, "has 400 XAF available, 1 too little"},
			"a wallet that is not":      {func(a *books.Adjustment) { a.Amount.Currency = "EUR" }, till.CodeValidationFailed, `no wallet in "EUR"`},
			"a client that is not":      {func(a *books.Adjustment) { a.Client = till.ID{9} }, till.CodeClientNotFound, "no such client"},
			"nothing":                   {func(a *books.Adjustment) { a.Amount.Minor = 0 }, till.CodeValidationFailed, ""},
			"too much":                  {func(a *books.Adjustment) { a.Amount.Minor = till.MaxMinor + 1 }, till.CodeValidationFailed, ""},
			"too much the other way":    {func(a *books.Adjustment) { a.Amount.Minor = -till.MaxMinor - 1 }, till.CodeValidationFailed, ""},
			"no id":                     {func(a *books.Adjustment) { a.ID = till.ID{} }, till.CodeValidationFailed, ""},
			"no reason":                 {func(a *books.Adjustment) { a.Reason = "" }, till.CodeValidationFailed, ""},
			"no name":                   {func(a *books.Adjustment) { a.By = "" }, till.CodeValidationFailed, ""},
			"an id of another amount":   {func(a *books.Adjustment) { a.ID = first.ID; a.Amount.Minor = 701 }, till.CodeKeyReused, "700 XAF by Anne Ndala"},
			"an id of the other way":    {func(a *books.Adjustment) { a.ID = first.ID; a.Amount.Minor = -700 }, till.CodeKeyReused, "700 XAF"},
			"an id of another reason":   {func(a *books.Adjustment) { a.ID = first.ID; a.Amount.Minor = 700; a.Reason = "none" }, till.CodeKeyReused, ""},
			"an id of another person":   {func(a *books.Adjustment) { a.ID = first.ID; a.Amount.Minor = 700; a.By = "Bob" }, till.CodeKeyReused, ""},
			"an id of another currency": {func(a *books.Adjustment) { a.ID = first.ID; a.Amount = till.Money{Minor: 700, Currency: "KES"} }, till.CodeKeyReused, ""},
		} {
			a := newAdjustment(client, s, -100)
			c.change(&a)
			_, err := books.Adjust(t.Context(), s, a)
			if till.ErrorCode(err) != c.code || !strings.Contains(err.Error(), c.detail) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if d := cmp.Diff(wallet(t, s, client), before); d != "" {
			t.Errorf("a refused adjustment changed the wallet (-got +want)\n%s", d)
		}
		if _, err := books.Adjust(t.Context(), s, newAdjustment(client, s, -400)); err != nil {
			t.Errorf("all that is available: %v", err)
		}
		err = s.Update(t.Context(), func(tx *store.Tx) error { // the books are checked in the end, and nothing stands behind the reserve
			w, err := tx.Wallet(t.Context(), client.ID, "XAF")
			w.Reserved = 0
			return errors.Join(err, tx.SaveWallets(t.Context(), []*ledger.Wallet{w}))
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// D5, D10, D13, D15: the same command at the same moment, and others beside
// it that together want more than there is.
func TestAdjustmentsAtOnceAdjustOnce(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		client := storetest.NewClient(t, s, till.Live)
		same := newAdjustment(client, s, 100)
		var wg sync.WaitGroup
		var news atomic.Int64
		for range 20 {
			wg.Go(func() {
				done, err := books.Adjust(t.Context(), s, same)
				if err != nil {
					t.Error(err)
				}
				if !done.Before {
					news.Add(1)
				}
			})
		}
		wg.Wait()
		if w := wallet(t, s, client); w.Balance != 100 || w.LastSequence != 1 || news.Load() != 1 {
			t.Fatalf("the wallet is %+v after %d adjustments, want one of 100", w, news.Load())
		}
		var taken atomic.Int64
		for range 20 { // 20 times 60 of 100
			a := newAdjustment(client, s, -60)
			wg.Go(func() {
				switch _, err := books.Adjust(t.Context(), s, a); till.ErrorCode(err) {
				case "":
					taken.Add(1)
				case till.CodeValidationFailed:
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if w := wallet(t, s, client); w.Balance != 40 || taken.Load() != 1 {
			t.Errorf("the wallet is %+v after %d debits of 60 from 100", w, taken.Load())
		}
	})
}
