package seed_test

import (
	"slices"
	"testing"
	"time"

	"till"
	"till/bench/seed"
	"till/store"
	"till/store/matching"
	"till/store/storetest"
)

var noon = till.TimeOf(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

// Seeded rows are counted exactly, and lists and naive lists agree on them.
func TestSeed(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() { // whole books are not made, so none are checked
		t.Run(e.Name, func(t *testing.T) {
			s := storetest.Open(t, e.Config(t))
			client := storetest.NewClient(t, s, till.Test)
			const rows = 3000
			from := noon.Add(-90 * 24 * time.Hour)
			if err := seed.Payments(t.Context(), s, seed.Config{Client: client.ID, Rows: rows, From: from, To: noon}); err != nil {
				t.Fatal(err)
			}
			filters := []store.PaymentFilter{
				{}, {Status: till.Success}, {Status: till.Pending, Method: "mpesa"},
				{Status: till.Expired, From: from.Add(100*time.Hour + time.Second), To: noon.Add(-77*time.Hour - time.Second)},
			}
			err := s.View(t.Context(), func(tx *store.Tx) error {
				for _, f := range filters {
					for _, offset := range []int{0, 7, 1000} {
						page := store.Page{Limit: 5, Offset: offset}
						got, total, err := tx.ListPayments(t.Context(), client.ID, f, page)
						if err != nil {
							return err
						}
						want, n, err := seed.ListNaively(t.Context(), tx, client.ID, f, page)
						if err != nil {
							return err
						}
						ids := make([]till.ID, len(got))
						for i, p := range got {
							ids[i] = p.ID
						}
						if total != n || !slices.Equal(ids, want) {
							t.Errorf("%+v at %d: got %d %v, naively %d %v", f, offset, total, ids, n, want)
						}
						if f == filters[0] && total != rows || total == 0 {
							t.Errorf("%+v: %d payments", f, total)
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Books that are seeded whole verify.
func TestSeedBooks(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		client := storetest.NewClient(t, s, till.Test)
		from := noon.Add(-90 * 24 * time.Hour)
		if err := seed.Payments(t.Context(), s, seed.Config{Client: client.ID, Rows: 500, From: from, To: noon, Books: true}); err != nil {
			t.Fatal(err)
		}
	})
}

// Seeded books hold what a comparison with a statement reads.
func TestSeedLedger(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, e.Config(t))
			client := storetest.NewClient(t, s, till.Test)
			const rows = 500
			from := noon.Add(-time.Hour)
			if err := seed.Payments(t.Context(), s, seed.Config{Client: client.ID, Rows: rows, From: from, To: noon}); err != nil {
				t.Fatal(err)
			}
			if err := seed.Ledger(t.Context(), s, client.ID, from, noon); err != nil {
				t.Fatal(err)
			}
			var own, others []matching.ReconcileRow
			var moved []matching.PostedSubject
			err := s.View(t.Context(), func(tx *store.Tx) (err error) {
				last := till.LastID(noon)
				if own, err = matching.ReconcileRows(t.Context(), tx, till.SubjectPayment, "seed", client.ID, till.ID{}, last, rows+1, nil); err != nil {
					return err
				}
				if others, err = matching.ReconcileRows(t.Context(), tx, till.SubjectPayment, "another", client.ID, till.ID{}, last, rows+1, nil); err != nil {
					return err
				}
				moved, err = matching.PostedSubjects(t.Context(), tx, "seed", client.ID, till.ID{}, last, rows+1)
				return err
			})
			if err != nil || len(own) != rows || len(others) != rows {
				t.Fatalf("%v, %d payments, %d seen from another connection", err, len(own), len(others))
			}
			booked := 0
			for i, c := range own {
				if i > 0 && c.CreatedAt <= own[i-1].CreatedAt || c.Reference.IsZero() {
					t.Errorf("payment %d is %+v", i, c)
				}
				if good := c.Status == till.Success; good != (c.Booked == c.Amount) || good != (c.BookedAt == c.CreatedAt) {
					t.Errorf("payment %d is %s, and booked is %v at %s", i, c.Status, c.Booked, c.BookedAt)
				}
				if c.Status == till.Success {
					booked++
				}
				if o := others[i]; o.ID != c.ID || !o.Booked.IsZero() || !o.Reference.IsZero() {
					t.Errorf("from another connection payment %d is %+v", i, o)
				}
			}
			if booked == 0 || len(moved) != booked {
				t.Errorf("%d payments are booked by %d entries", booked, len(moved))
			}
		})
	}
}
