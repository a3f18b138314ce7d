package store_test

import (
	"fmt"
	"testing"
	"time"

	"till"
	"till/books"
	"till/store"
	"till/store/storetest"
)

// What a wallet held before a moment is what its last line before it says, of
// whatever type, of its own currency and of its own client.
func TestBalancesBefore(t *testing.T) {
	t.Parallel()
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		client, other := storetest.NewClient(t, s, till.Test), storetest.NewClient(t, s, till.Test)
		c := storetest.NewCollector(t, s)
		adjust := func(who *till.Client, minor int64, currency string) {
			t.Helper()
			_, err := books.Adjust(t.Context(), s, books.Adjustment{Client: who.ID, ID: till.NewID(s.Now()), Amount: till.Money{Minor: minor, Currency: currency}, Reason: "a test", By: "Anne"})
			if err != nil {
				t.Fatal(err)
			}
		}
		read := func(currency string, moments ...till.Time) (out []int64) {
			t.Helper()
			err := s.View(t.Context(), func(tx *store.Tx) (err error) {
				out, err = tx.BalancesBefore(t.Context(), client.ID, currency, moments)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		start := clock.Now()
		if got := read("XAF", start, start.Add(time.Hour)); got != nil {
			t.Errorf("a wallet without lines held %v", got)
		}
		clock.Advance(time.Hour)
		adjust(client, 700, "XAF")
		adjust(other, 9_000, "XAF")
		clock.Advance(24 * time.Hour)
		p := storetest.NewPayment(t, c, client, storetest.Body{})
		storetest.Apply(t, c, s, p, storetest.Succeeded)
		paid := clock.Now()
		clock.Advance(24 * time.Hour)
		adjust(client, -200, "XAF")
		adjust(client, 5, "KES")
		end := clock.Now().Add(time.Second)
		held := 700 + p.Amount.Minor
		for _, c := range []struct {
			currency string
			moments  []till.Time
			want     []int64
		}{
			{"XAF", []till.Time{start, start.Add(2 * time.Hour), paid.Add(time.Second), end}, []int64{0, 700, held, held - 200}},
			{"XAF", []till.Time{end}, []int64{held - 200}},
			{"KES", []till.Time{paid, end}, []int64{0, 5}},
			{"XAF", nil, nil},
		} {
			if got := read(c.currency, c.moments...); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%s held %v, want %v", c.currency, got, c.want)
			}
		}
	})
}
