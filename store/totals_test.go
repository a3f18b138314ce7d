package store_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"till"
	"till/store"
	"till/store/storetest"
)

// A total is the sum of its hours, wherever it begins and ends (zones of whole and of
// half hours begin their days at any hour of UTC), whether tallies are rolled up or not,
// of a client and of the house.
func TestTotalsAreTheSumsOfTheirHours(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, e.Config(t))
			client := storetest.NewClient(t, s, till.Test)
			// Two months with a change of month in them, a payment or more each few hours.
			start := till.TimeOf(time.Date(2026, 1, 20, 5, 0, 0, 0, time.UTC))
			first := store.HourOf(start)
			count(t, s, client.ID, start, 9*24)
			if _, err := rollUp(t, s, client.ID, start.Add(8*24*time.Hour)); err != nil {
				t.Fatal(err)
			}
			err := s.View(t.Context(), func(tx *store.Tx) error {
				for _, scope := range []store.Scope{{Client: client.ID, Mode: till.Test}, {Mode: till.Test}, {Mode: till.Live}} {
					for _, from := range []int64{first - 3, first, first + 17, first + 18, first + 19, first + 20, first + 42, first + 43, first + 9*24 - 1} {
						for _, hours := range []int64{0, 1, 5, 23, 24, 25, 48, 66, 67, 68, 7 * 24, 8*24 + 11, 40 * 24} {
							compareTotals(t, tx, scope, from, from+hours-1)
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

// count counts payments, each third hour one more.
func count(t *testing.T, s *store.Store, client till.ID, start till.Time, hours int) {
	t.Helper()
	var c store.CounterDelta
	for h := 0; h < hours; h += 3 {
		at := start.Add(time.Duration(h) * time.Hour)
		p := &till.Payment{ClientID: client, Method: "mtn_momo", CreatedAt: at}
		c.AddPayment(p, till.Success, int64(h+1))
		c.AddPayment(p, till.Failed, 2)
		c.AddMoney(client, at, "collection", till.Money{Minor: 500, Currency: "XAF"}, "airtel_money", at)
	}
	if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.AddCounts(t.Context(), &c) }); err != nil {
		t.Fatal(err)
	}
}

func rollUp(t *testing.T, s *store.Store, client till.ID, before till.Time) (n int, err error) {
	t.Helper()
	err = s.Update(context.Background(), func(tx *store.Tx) (err error) {
		n, err = tx.RollUp(t.Context(), client, before, 10_000)
		return err
	})
	return n, err
}

func compareTotals(t *testing.T, tx *store.Tx, scope store.Scope, from, to int64) {
	t.Helper()
	nouns := [2]string{store.CountedPayments, store.SumIn}
	add := func(sums []store.HourSum) map[string]store.Sum {
		out := map[string]store.Sum{}
		for _, h := range sums {
			k := h.Noun + " " + h.A + " " + h.B
			out[k] = store.Sum{N: out[k].N + h.N, Sum: out[k].Sum + h.Sum.Sum}
		}
		return out
	}
	hours, err := tx.ScopeSums(t.Context(), scope, nouns[:], from, to)
	if err != nil {
		t.Fatal(err)
	}
	total, err := tx.Totals(t.Context(), scope, nouns, from, to)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := add(total), add(hours); !maps.Equal(got, want) {
		t.Errorf("%s: hours %d to %d add up to %v, their total is %v", scope.Mode, from, to, want, got)
	}
}
