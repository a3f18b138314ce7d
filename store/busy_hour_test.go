package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"till"
	"till/bench/seed"
	"till/books"
	"till/ledger"
	"till/provider"
	"till/store"
	"till/store/storetest"
	"till/upkeep"
)

// A page of a busy hour is the page of all rows that match, whatever has changed
// since its parts were counted.
func TestPagesOfABusyHour(t *testing.T) {
	t.Parallel()
	start := till.TimeOf(time.Date(2026, 2, 28, 20, 50, 0, 0, time.UTC))
	storetest.RunAt(t, &start, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		r := rand.New(rand.NewPCG(3, 1))
		c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
		var made []*till.Payment
		words := []provider.Result{storetest.Succeeded, storetest.Succeeded, storetest.Opened, storetest.Declined, storetest.TimedOut}
		grow := func(rows int) {
			for range rows {
				clock.Advance(time.Duration(r.IntN(40)) * time.Second)
				made = append(made, storetest.NewPayment(t, c, client, listMarkets[r.IntN(len(listMarkets))]))
				if r.IntN(3) > 0 {
					storetest.Apply(t, c, s, made[r.IntN(len(made))], words[r.IntN(len(words))])
				}
			}
		}
		for _, change := range []struct {
			name string
			make func()
		}{
			{"before anything is counted", func() { grow(50) }},
			{"counted", func() { split(t, s) }},
			{"rows behind the last part", func() { grow(5) }},
			{"rows that changed", func() {
				for range 12 {
					storetest.Apply(t, c, s, made[r.IntN(len(made))], words[r.IntN(len(words))])
				}
			}},
			{"counted again, in the next hour", func() { grow(60); split(t, s) }},
			{"rolled up", func() { clock.Advance(3 * time.Hour); storetest.RollUp(t, s) }},
			{"rows that changed later", func() {
				for range 6 {
					storetest.Apply(t, c, s, made[r.IntN(len(made))], words[r.IntN(len(words))])
				}
			}},
			{"rolled up again", func() { storetest.RollUp(t, s) }},
		} {
			change.make()
			t.Run(change.name, func(t *testing.T) {
				checkPages(t, s, client.ID)
				if rep, err := books.Verify(t.Context(), s, books.Options{Slice: 7, Key: storetest.ChainKey}); err != nil || len(rep.Problems) > 0 {
					t.Errorf("%v %v", err, rep.Problems)
				}
			})
		}
	})
}

func split(t *testing.T, s *store.Store) {
	t.Helper()
	if err := upkeep.SplitHours(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// checkPages compares drawn pages with the rows.
func checkPages(t *testing.T, s *store.Store, client till.ID) {
	t.Helper()
	payments, transactions := everything(t, s, client)
	var paid, posted []till.Time
	for _, p := range payments {
		paid = append(paid, p.CreatedAt)
	}
	for _, x := range transactions {
		posted = append(posted, x.CreatedAt)
	}
	rapid.Check(t, func(rt *rapid.T) {
		f := store.PaymentFilter{
			Status: rapid.SampledFrom(slices.Concat([]till.Status{""}, till.Statuses)).Draw(rt, "status"),
			Method: rapid.SampledFrom([]string{"", "mtn_momo", "airtel_money"}).Draw(rt, "method"),
			From:   drawDate(rt, "from", paid), To: drawDate(rt, "to", paid),
		}
		page := drawPage(rt, len(payments))
		got, total, err := listPayments(t, s, client, f, page)
		want, count := model(payments, func(p *store.PaymentRow) bool {
			return (f.Status == "" || p.Status == f.Status) && (f.Method == "" || p.Method == f.Method) && within(p.CreatedAt, f.From, f.To)
		}, page)
		if err != nil || total != count {
			rt.Errorf("total %d, want %d, %v", total, count, err)
		}
		id := func(p *store.PaymentRow) till.ID { return p.ID }
		if d := gocmp.Diff(ids(got, id), ids(want, id)); d != "" {
			rt.Errorf("page (-got +want)\n%s", d)
		}
	})
	if len(posted) == 0 {
		return
	}
	rapid.Check(t, func(rt *rapid.T) {
		f := store.TransactionFilter{
			Currency: rapid.SampledFrom([]string{"", "XAF", "XOF"}).Draw(rt, "currency"),
			From:     drawDate(rt, "from", posted), To: drawDate(rt, "to", posted),
		}
		page := drawPage(rt, len(transactions))
		err := s.View(t.Context(), func(tx *store.Tx) error {
			got, total, err := tx.ListTransactions(t.Context(), client, f, page)
			want, count := model(transactions, func(x *ledger.Transaction) bool {
				return (f.Currency == "" || x.Amount.Currency == f.Currency) && within(x.CreatedAt, f.From, f.To)
			}, page)
			id := func(x *ledger.Transaction) till.ID { return x.ID }
			if d := gocmp.Diff(ids(got, id), ids(want, id)); err == nil && (d != "" || total != count) {
				rt.Errorf("total %d, want %d; page (-got +want)\n%s", total, count, d)
			}
			return err
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

func listPayments(t *testing.T, s *store.Store, client till.ID, f store.PaymentFilter, page store.Page) (rows []*store.PaymentRow, total int64, err error) {
	err = s.View(t.Context(), func(tx *store.Tx) (err error) {
		rows, total, err = tx.ListPayments(t.Context(), client, f, page)
		return err
	})
	return rows, total, err
}

// What a page of a busy hour reads does not grow with the hour: a page's rows, half
// a part that is skipped or counted, and the edges of a range of time.
func TestAPageOfABusyHourReadsFewRows(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			const rows, part = 40_000, 500
			config := e.Config(t)
			config.PartRows = part
			s := storetest.Open(t, config)
			client := storetest.NewClient(t, s, till.Test)
			from := noon.Add(-40 * 60 * time.Second)
			to := from.Add(60 * time.Second)
			if err := seed.Payments(t.Context(), s, seed.Config{Client: client.ID, Rows: rows, From: from, To: to}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.AnalyzeNewTables(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := upkeep.SplitOldHours(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			lo, hi := from.Add(7*time.Second)+123_456, to.Add(-11*time.Second)-654_321
			for _, f := range []store.PaymentFilter{{}, {Status: till.Success}, {Status: till.Processing}, {Method: "mtn_momo"}, {Status: till.Success, Method: "airtel_money"},
				{From: lo, To: hi}, {Status: till.Success, From: lo, To: hi}, {Method: "mpesa", From: lo, To: hi}} {
				for _, ascending := range []bool{false, true} {
					checkReads(t, s, client.ID, f, ascending, part, store.IsPostgres(config.Path))
				}
			}
		})
	}
}

// checkReads fails if a page anywhere in a list reads more than a few parts have.
func checkReads(t *testing.T, s *store.Store, client till.ID, f store.PaymentFilter, ascending bool, part int64, postgres bool) {
	t.Helper()
	_, total, err := listPayments(t, s, client, f, store.Page{Limit: 1})
	if err != nil || total == 0 {
		t.Fatalf("%d rows, %v", total, err)
	}
	limit := 12 * part // of entries
	if !postgres {
		limit *= 10 // of steps
	}
	for _, share := range []int64{0, 3, 5, 8, 11, 16} {
		offset := min(total/16*share+part/2, total-20)
		err := s.View(t.Context(), func(tx *store.Tx) error {
			before, err := store.RowsRead(t.Context(), tx, "payments")
			if err != nil {
				return err
			}
			if _, _, err := tx.ListPayments(t.Context(), client, f, store.Page{Limit: 20, Offset: int(offset), Ascending: ascending}); err != nil {
				return err
			}
			after, err := store.RowsRead(t.Context(), tx, "payments")
			if n := after - before; n > limit {
				t.Errorf("%s read %d, at most %d", fmt.Sprintf("%+v at %d, ascending %v", f, offset, ascending), n, limit)
			} else if testing.Verbose() {
				t.Logf("%+v at %d: %d", f, offset, n)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
