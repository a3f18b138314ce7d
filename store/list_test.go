package store_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"till"
	"till/ledger"
	"till/provider"
	"till/store"
	"till/store/proof"
	"till/store/storetest"
)

// moments returns n ascending times that lie on, just before and just after
// the edges of hours, days and months, and in between, over two years.
func moments(r *rand.Rand, n int) []till.Time {
	begin := time.Date(2025, 11, 28, 22, 0, 0, 0, time.UTC)
	var out []till.Time
	for range n {
		at := begin.Add(time.Duration(r.Int64N(int64(24 * 30 * 24 * time.Hour))))
		switch r.IntN(5) {
		case 0:
			at = time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
		case 1:
			at = at.Truncate(24 * time.Hour)
		case 2:
			at = at.Truncate(time.Hour)
		case 3: // a crowd within a few hours
			at = time.Date(2026, 2, 28, 20, 0, 0, 0, time.UTC).Add(time.Duration(r.Int64N(int64(6 * time.Hour))))
		}
		out = append(out, till.TimeOf(at)+till.Time(r.IntN(5)-2))
	}
	slices.Sort(out)
	return out
}

// market is what a drawn payment is made with.
var listMarkets = []storetest.Body{
	{Method: "mtn_momo", Country: "CG", Phone: "242061234567", Currency: "XAF"},
	{Method: "mtn_momo", Country: "CI", Phone: "2250501234567", Currency: "XOF"},
	{Method: "airtel_money", Country: "CG", Phone: "242041234567", Currency: "XAF"},
}

// newArchive makes a client with many payments of every status over
// two years, beside another client with some, and returns all its rows.
func newArchive(t *testing.T, s *store.Store, clock *storetest.Clock) (client *till.Client, payments []*store.PaymentRow, transactions []*ledger.Transaction) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	c := storetest.NewCollector(t, s)
	client, other := storetest.NewClient(t, s, till.Test), storetest.NewClient(t, s, till.Test)
	var open []*till.Payment
	for i, at := range moments(r, 160) {
		clock.Set(at)
		b := listMarkets[r.IntN(len(listMarkets))]
		b.Reference = fmt.Sprintf("order-%d", i%40)
		open = append(open, storetest.NewPayment(t, c, client, b))
		if r.IntN(8) == 0 {
			storetest.NewPayment(t, c, other, b)
		}
		if i%30 == 29 { // the last ones stay tallied, and what moves later is tallied against them
			storetest.RollUp(t, s)
		}
		if r.IntN(3) > 0 {
			n := r.IntN(len(open))
			word := []provider.Result{storetest.Succeeded, storetest.Succeeded, storetest.Opened, storetest.Declined, storetest.TimedOut}[r.IntN(5)]
			if p := storetest.Apply(t, c, s, open[n], word); p.Status == till.Success {
				open = slices.Delete(open, n, n+1) // the others may still be late money
			}
		}
	}
	payments, transactions = everything(t, s, client.ID)
	if len(payments) != 160 || len(transactions) < 20 {
		t.Fatalf("made %d payments and %d transactions", len(payments), len(transactions))
	}
	return client, payments, transactions
}

// everything reads all rows without the list code: payments by the events of
// their creation, transactions wallet by wallet. The newest come first.
func everything(t *testing.T, s *store.Store, client till.ID) (payments []*store.PaymentRow, transactions []*ledger.Transaction) {
	t.Helper()
	err := s.View(t.Context(), func(tx *store.Tx) error {
		payments, transactions = nil, nil
		events, err := tx.Events(t.Context(), client, 0, 100_000)
		if err != nil {
			return err
		}
		for _, e := range events {
			if e.Kind == till.PaymentPending {
				p, err := tx.Payment(t.Context(), store.Ref{Client: client, ID: e.SubjectID})
				if err != nil {
					return err
				}
				payments = append(payments, p)
			}
		}
		wallets, err := tx.Wallets(t.Context(), client)
		if err != nil {
			return err
		}
		for _, w := range wallets {
			lines, err := proof.Statement(t.Context(), tx, client, w.ID, 0, 100_000)
			if err != nil {
				return err
			}
			for _, l := range lines {
				transactions = append(transactions, &l.Transaction)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(payments, func(a, b *store.PaymentRow) int {
		return -cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), slices.Compare(a.ID[:], b.ID[:]))
	})
	slices.SortFunc(transactions, func(a, b *ledger.Transaction) int {
		return -cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), slices.Compare(a.ID[:], b.ID[:]))
	})
	return payments, transactions
}

// model is the list as anybody would write it: filter everything, cut a page.
func model[T any](all []T, match func(T) bool, page store.Page) (out []T, total int64) {
	for _, x := range all {
		if match(x) {
			out = append(out, x)
		}
	}
	total = int64(len(out))
	if page.Ascending {
		slices.Reverse(out)
	}
	out = out[min(page.Offset, len(out)):]
	return out[:min(page.Limit, len(out))], total
}

func within(at, from, to till.Time) bool {
	return (from.IsZero() || at >= from) && (to.IsZero() || at <= to)
}

func drawPage(t *rapid.T, n int) store.Page {
	return store.Page{
		Limit:     rapid.OneOf(rapid.IntRange(1, 5), rapid.IntRange(1, 200)).Draw(t, "limit"),
		Offset:    rapid.OneOf(rapid.Just(0), rapid.IntRange(0, n+2)).Draw(t, "offset"),
		Ascending: rapid.Bool().Draw(t, "ascending"),
	}
}

// drawDate draws no date, or one on a row, or on an edge near one, or far off.
func drawDate(t *rapid.T, label string, times []till.Time) till.Time {
	at := rapid.SampledFrom(times).Draw(t, label).Std()
	switch rapid.SampledFrom([]string{"none", "row", "hour", "day", "month", "between", "far"}).Draw(t, label+" lies on") {
	case "none":
		return 0
	case "hour":
		at = at.Truncate(time.Hour)
	case "day":
		at = at.Truncate(24 * time.Hour)
	case "month":
		at = time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
	case "between":
		at = at.Add(time.Duration(rapid.Int64Range(-1e12, 1e14).Draw(t, label+" apart")))
	case "far":
		return rapid.SampledFrom([]till.Time{1, till.Time(0).Add(time.Second), mustTime("9999-12-31T23:59:59.999999Z"), mustTime("2100-01-01T00:00:00Z")}).Draw(t, label+" far")
	}
	return max(1, till.TimeOf(at)+till.Time(rapid.IntRange(-2, 2).Draw(t, label+" off by")))
}

func mustTime(s string) till.Time { t, _ := till.ParseTime(s); return t }

func ids[T any](rows []T, id func(T) till.ID) []till.ID {
	out := make([]till.ID, len(rows))
	for i, r := range rows {
		out[i] = id(r)
	}
	return out
}

// I10: whatever is asked for, the total is the number of rows that match and
// the page is the page of them.
func TestListsAgreeWithAllRows(t *testing.T) {
	t.Parallel()
	start := till.TimeOf(time.Date(2025, 11, 1, 0, 0, 0, 0, time.UTC))
	storetest.RunAt(t, &start, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		client, payments, transactions := newArchive(t, s, clock)
		paymentID := func(p *store.PaymentRow) till.ID { return p.ID }
		transactionID := func(x *ledger.Transaction) till.ID { return x.ID }
		var paid, posted []till.Time
		for _, p := range payments {
			paid = append(paid, p.CreatedAt)
		}
		for _, x := range transactions {
			posted = append(posted, x.CreatedAt)
		}

		t.Run("payments", func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				f := store.PaymentFilter{
					Status: rapid.SampledFrom(slices.Concat([]till.Status{"", ""}, till.Statuses)).Draw(rt, "status"),
					Method: rapid.SampledFrom([]string{"", "", "mtn_momo", "airtel_money", "nobody's"}).Draw(rt, "method"),
					From:   drawDate(rt, "from", paid), To: drawDate(rt, "to", paid),
				}
				switch rapid.IntRange(0, 9).Draw(rt, "narrow") {
				case 0:
					f.Reference = fmt.Sprintf("order-%d", rapid.IntRange(0, 41).Draw(rt, "reference"))
				case 1:
					f.Key = mustID(rapid.SampledFrom(payments).Draw(rt, "key").IdempotencyKey)
				}
				page := drawPage(rt, len(payments))
				var got []*store.PaymentRow
				var total int64
				err := s.View(t.Context(), func(tx *store.Tx) (err error) {
					got, total, err = tx.ListPayments(t.Context(), client.ID, f, page)
					return err
				})
				if err != nil {
					rt.Fatal(err)
				}
				want, count := model(payments, func(p *store.PaymentRow) bool {
					return (f.Status == "" || p.Status == f.Status) && (f.Method == "" || p.Method == f.Method) && within(p.CreatedAt, f.From, f.To) &&
						(f.Reference == "" || p.Reference == f.Reference) && (f.Key == nil || p.IdempotencyKey == f.Key.String())
				}, page)
				if total != count {
					rt.Errorf("total %d, want %d", total, count)
				}
				if d := gocmp.Diff(ids(got, paymentID), ids(want, paymentID)); d != "" {
					rt.Errorf("page (-got +want)\n%s", d)
				}
			})
		})
		t.Run("transactions", func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				f := store.TransactionFilter{
					Type:     rapid.SampledFrom([]string{"", "", "collection", "late_collection", "payout"}).Draw(rt, "type"),
					Currency: rapid.SampledFrom([]string{"", "", "XAF", "XOF", "KES"}).Draw(rt, "currency"),
					From:     drawDate(rt, "from", posted), To: drawDate(rt, "to", posted),
				}
				switch rapid.IntRange(0, 9).Draw(rt, "narrow") {
				case 0:
					f.Reference = fmt.Sprintf("order-%d", rapid.IntRange(0, 41).Draw(rt, "reference"))
				case 1:
					f.PaymentID = rapid.SampledFrom(payments).Draw(rt, "payment").ID
				}
				page := drawPage(rt, len(transactions))
				var got []*ledger.Transaction
				var total int64
				err := s.View(t.Context(), func(tx *store.Tx) (err error) {
					got, total, err = tx.ListTransactions(t.Context(), client.ID, f, page)
					return err
				})
				if err != nil {
					rt.Fatal(err)
				}
				references := map[till.ID]string{}
				for _, p := range payments {
					references[p.ID] = p.Reference
				}
				want, count := model(transactions, func(x *ledger.Transaction) bool {
					return (f.Type == "" || x.Type == f.Type) && (f.Currency == "" || x.Amount.Currency == f.Currency) && within(x.CreatedAt, f.From, f.To) &&
						(f.Reference == "" || references[x.PaymentID] == f.Reference) && (f.PaymentID.IsZero() || x.PaymentID == f.PaymentID)
				}, page)
				if total != count {
					rt.Errorf("total %d, want %d", total, count)
				}
				if d := gocmp.Diff(ids(got, transactionID), ids(want, transactionID)); d != "" {
					rt.Errorf("page (-got +want)\n%s", d)
				}
			})
		})
		t.Run("pages partition the set", func(t *testing.T) {
			for _, limit := range []int{3, 50} {
				for _, ascending := range []bool{false, true} {
					var seen []till.ID
					for offset := 0; ; offset += limit {
						var page []*store.PaymentRow
						err := s.View(t.Context(), func(tx *store.Tx) (err error) {
							page, _, err = tx.ListPayments(t.Context(), client.ID, store.PaymentFilter{}, store.Page{Limit: limit, Offset: offset, Ascending: ascending})
							return err
						})
						if err != nil {
							t.Fatal(err)
						}
						if len(page) == 0 {
							break
						}
						seen = append(seen, ids(page, paymentID)...)
					}
					want := ids(payments, paymentID)
					if ascending {
						slices.Reverse(want)
					}
					if d := gocmp.Diff(seen, want); d != "" {
						t.Errorf("limit %d, ascending %v (-got +want)\n%s", limit, ascending, d)
					}
				}
			}
		})
	})
}

// Of a crowd within an hour each kind is read as far as the hour has of it, and
// no kind less far: also where one kind has nearly all, and where a page reaches
// over the hour's edge.
func TestPagesWithinAnHour(t *testing.T) {
	t.Parallel()
	start := till.TimeOf(time.Date(2026, 2, 28, 20, 50, 0, 0, time.UTC))
	storetest.RunAt(t, &start, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
		var want []till.ID
		for i := range 20 { // the first five of them before the hour
			market := listMarkets[0]
			if i%7 == 3 {
				market = listMarkets[2]
			}
			want = append(want, storetest.NewPayment(t, c, client, market).ID)
			clock.Advance(2 * time.Minute)
		}
		for _, edge := range []till.Time{0, 1} { // the last moment of the hour, and the first of the next
			clock.Set(till.TimeOf(time.Date(2026, 2, 28, 21, 59, 59, 999999000, time.UTC)) + edge)
			want = append(want, storetest.NewPayment(t, c, client, listMarkets[0]).ID)
		}
		for _, ascending := range []bool{true, false} {
			if !ascending {
				slices.Reverse(want)
			}
			for _, limit := range []int{1, 4} {
				for offset := range want {
					var got []*store.PaymentRow
					err := s.View(t.Context(), func(tx *store.Tx) (err error) {
						got, _, err = tx.ListPayments(t.Context(), client.ID, store.PaymentFilter{Status: till.Pending},
							store.Page{Limit: limit, Offset: offset, Ascending: ascending})
						return err
					})
					if err != nil {
						t.Fatal(err)
					}
					page := want[offset:min(offset+limit, len(want))]
					if d := gocmp.Diff(ids(got, func(p *store.PaymentRow) till.ID { return p.ID }), page); d != "" {
						t.Fatalf("%d at %d, ascending %v (-got +want)\n%s", limit, offset, ascending, d)
					}
				}
			}
		}
	})
}

// Of a crowd within a moment, one in each microsecond, none is given twice or
// left out where a stretch is cut in two.
func TestPagesWithinAMoment(t *testing.T) {
	t.Parallel()
	start := till.TimeOf(time.Date(2026, 2, 28, 20, 50, 0, 0, time.UTC))
	storetest.RunAt(t, &start, func(t *testing.T, s *store.Store, _ *storetest.Clock) {
		c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
		var all []*till.Payment // the clock stands: each is a microsecond after the one before
		for i := range 30 {
			all = append(all, storetest.NewPayment(t, c, client, listMarkets[i%3]))
		}
		f := store.PaymentFilter{Status: till.Pending, From: all[2].CreatedAt, To: all[27].CreatedAt}
		want := all[2:28]
		if f.To-f.From != till.Time(len(want)-1) {
			t.Fatalf("%d payments in %d microseconds", len(want), f.To-f.From)
		}
		for _, ascending := range []bool{true, false} {
			if !ascending {
				slices.Reverse(want)
			}
			for offset := range want {
				var got []*store.PaymentRow
				err := s.View(t.Context(), func(tx *store.Tx) (err error) {
					got, _, err = tx.ListPayments(t.Context(), client.ID, f, store.Page{Limit: 2, Offset: offset, Ascending: ascending})
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				page := want[offset:min(offset+2, len(want))]
				if d := gocmp.Diff(ids(got, func(p *store.PaymentRow) till.ID { return p.ID }), ids(page, func(p *till.Payment) till.ID { return p.ID })); d != "" {
					t.Fatalf("at %d, ascending %v (-got +want)\n%s", offset, ascending, d)
				}
			}
		}
	})
}

// F29: pages read while rows are inserted. Each page and its total come from
// one snapshot, and oldest first nothing is skipped or shown twice.
func TestPagingWhileRowsAreInserted(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
		for range 5 {
			storetest.NewPayment(t, c, client, storetest.Body{})
		}
		done := make(chan struct{})
		var writers sync.WaitGroup
		for range 2 {
			writers.Go(func() {
				for range 25 {
					p := storetest.NewPayment(t, c, client, storetest.Body{})
					storetest.Apply(t, c, s, p, storetest.Succeeded)
				}
			})
		}
		go func() { writers.Wait(); close(done) }()

		var seen []till.ID
		var before int64
		const limit = 7
		for alive := true; alive; {
			select {
			case <-done:
				alive = false // one last round sees the rest
			default:
			}
			for {
				var page []*store.PaymentRow
				var total, again int64
				err := s.View(t.Context(), func(tx *store.Tx) (err error) {
					if page, total, err = tx.ListPayments(t.Context(), client.ID, store.PaymentFilter{}, store.Page{Limit: limit, Offset: len(seen), Ascending: true}); err != nil {
						return err
					}
					again = 0
					for _, status := range till.Statuses {
						_, n, err := tx.ListPayments(t.Context(), client.ID, store.PaymentFilter{Status: status}, store.Page{Limit: 1})
						if err != nil {
							return err
						}
						again += n
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if total != again {
					t.Errorf("in one snapshot the total is %d, and %d over the statuses", total, again)
				}
				if total < before {
					t.Errorf("the total went from %d to %d", before, total)
				}
				if want := min(limit, int(total)-len(seen)); len(page) != want {
					t.Errorf("%d of %d seen, and the page has %d rows, not %d", len(seen), total, len(page), want)
				}
				before = total
				for _, p := range page {
					seen = append(seen, p.ID)
				}
				if len(page) == 0 {
					break
				}
			}
		}
		all, _ := everything(t, s, client.ID)
		want := ids(all, func(p *store.PaymentRow) till.ID { return p.ID })
		slices.Reverse(want)
		if d := gocmp.Diff(seen, want); d != "" {
			t.Errorf("read page by page (-got +want)\n%s", d)
		}
	})
}

func TestListEdges(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		c, client, other := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test), storetest.NewClient(t, s, till.Test)
		p := storetest.NewPayment(t, c, client, storetest.Body{})
		for _, q := range []struct {
			name   string
			client till.ID
			f      store.PaymentFilter
			page   store.Page
			n      int
			total  int64
		}{
			{"a date copied from a payment includes it", client.ID, store.PaymentFilter{From: p.CreatedAt, To: p.CreatedAt}, store.Page{Limit: 50}, 1, 1},
			{"a microsecond later does not", client.ID, store.PaymentFilter{From: p.CreatedAt + 1}, store.Page{Limit: 50}, 0, 0},
			{"a microsecond earlier does not", client.ID, store.PaymentFilter{To: p.CreatedAt - 1}, store.Page{Limit: 50}, 0, 0},
			{"from after to is an empty page", client.ID, store.PaymentFilter{From: p.CreatedAt, To: p.CreatedAt - 1}, store.Page{Limit: 50}, 0, 0},
			{"an offset beyond the end keeps the total", client.ID, store.PaymentFilter{}, store.Page{Limit: 50, Offset: 1 << 40}, 0, 1},
			{"an offset at the end keeps the total", client.ID, store.PaymentFilter{}, store.Page{Limit: 50, Offset: 1}, 0, 1},
			{"a client without payments has an empty page", other.ID, store.PaymentFilter{}, store.Page{Limit: 50}, 0, 0},
			{"another client's payment is not found by its key", other.ID, store.PaymentFilter{Key: mustID(p.IdempotencyKey)}, store.Page{Limit: 50}, 0, 0},
		} {
			err := s.View(t.Context(), func(tx *store.Tx) error {
				rows, total, err := tx.ListPayments(t.Context(), q.client, q.f, q.page)
				if len(rows) != q.n || total != q.total {
					t.Errorf("%s: %d rows of %d, want %d of %d", q.name, len(rows), total, q.n, q.total)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

func mustID(s string) *till.ID { id, _ := till.ParseID(s); return &id }
