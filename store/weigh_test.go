package store_test

import (
	"errors"
	"strings"
	"testing"

	"till"
	"till/store"
	"till/store/storetest"
)

// A change of payments is decided without their documents, and they are neither
// read for it nor lost by it.
func TestAChangeReadsNoDocuments(t *testing.T) {
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
		p := storetest.NewPayment(t, c, client, storetest.Body{Rest: `"metadata":{"note":"` + strings.Repeat("m", 15<<10) + `"}`})
		ref := store.Ref{Client: client.ID, ID: p.ID}
		err := s.Update(t.Context(), func(tx *store.Tx) error {
			l, err := tx.LockSubjects(t.Context(), till.SubjectPayment, []store.Ref{ref}, store.Cached{}, nil)
			if err == nil && (l.Payments[ref] == nil || l.Payments[ref].Document != nil) {
				t.Errorf("what is locked is %+v", l.Payments[ref])
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		storetest.Apply(t, c, s, p, storetest.Succeeded)
		err = s.View(t.Context(), func(tx *store.Tx) error {
			got, err := tx.Payment(t.Context(), ref)
			if err == nil && (string(got.Document) != string(p.Document) || got.Status != till.Success) {
				t.Errorf("after it succeeded: %s, %d bytes of document, want %d", got.Status, len(got.Document), len(p.Document))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// The reader of a list is given what each row weighs, and can stop the reading.
func TestRowsAreWeighedAsTheyAreRead(t *testing.T) {
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
		for range 10 {
			storetest.NewPayment(t, c, client, storetest.Body{Rest: `"metadata":{"note":"` + strings.Repeat("m", 15<<10) + `"}`})
		}
		tooMuch := errors.New("too much")
		err := s.View(t.Context(), func(tx *store.Tx) error {
			for _, limit := range []int{1 << 30, 50 << 10} {
				read := 0
				tx.Weigh(func(bytes int) error {
					if read += bytes; read > limit {
						return tooMuch
					}
					return nil
				})
				rows, _, err := tx.ListPayments(t.Context(), client.ID, store.PaymentFilter{}, store.Page{Limit: 10})
				if limit == 1<<30 && (err != nil || len(rows) != 10 || read < 150<<10 || read > 200<<10) {
					t.Errorf("%d rows of %d bytes, %v", len(rows), read, err)
				}
				if limit == 50<<10 && (!errors.Is(err, tooMuch) || read > limit+20<<10) {
					t.Errorf("stopped after %d bytes: %v", read, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
