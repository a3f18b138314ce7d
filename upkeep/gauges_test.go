package upkeep_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"till"
	"till/books"
	"till/engine"
	counted "till/meter"
	"till/provider"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
	"till/store/webhooks"
	"till/upkeep"
)

// readGauges returns the gauges as name{labels} and value.
func readGauges(t *testing.T, s *store.Store) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	err := s.View(t.Context(), func(tx *store.Tx) error {
		all, err := upkeep.ReadGauges(t.Context(), tx)
		// Through the encoding that the other instances read.
		var decoded []counted.Value
		if err := json.Unmarshal([]byte(upkeep.EncodeGauges(all)), &decoded); err != nil {
			t.Fatal(err)
		}
		for _, g := range decoded {
			out[g.Name+"{"+strings.Join(g.Labels, ",")+"}"] = g.Value
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestGaugesAreTheBooks(t *testing.T) {
	t.Parallel()
	noon := till.TimeOf(time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC))
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		client := storetest.NewClient(t, s, till.Test)
		c := storetest.NewCollector(t, s)
		open := storetest.NewPayment(t, c, client, storetest.Body{})
		paid := storetest.NewPayment(t, c, client, storetest.Body{})
		other := storetest.NewPayment(t, c, client, storetest.Body{})
		storetest.Apply(t, c, s, open, provider.Result{Outcome: provider.Open})
		storetest.Apply(t, c, s, paid, provider.Result{Outcome: provider.Success, Receipt: "R1"})
		currency := open.Amount.Currency
		wrong := till.Money{Minor: other.Amount.Minor + 7, Currency: other.Amount.Currency}
		storetest.Apply(t, c, s, other, provider.Result{Outcome: provider.Success, Receipt: "R2", Amount: wrong})
		clock.Set(noon.Add(time.Hour))
		err := s.Update(t.Context(), func(tx *store.Tx) error {
			for _, x := range []struct {
				from, to till.Time
				sums     []admin.StatementSum
			}{
				{noon.Add(-48 * time.Hour), noon.Add(-24 * time.Hour), []admin.StatementSum{{Class: admin.StatementLines, Count: 5}, {Class: "late", Currency: currency, Count: 9, Minor: 900}}},
				{noon.Add(-24 * time.Hour), noon, []admin.StatementSum{{Class: admin.StatementLines, Count: 5}, {Class: "late", Currency: currency, Count: 2, Minor: 300}, {Class: "broken_line", Count: 1}}},
				// Compared again, within a longer time: it takes the first one's place.
				{noon.Add(-49 * time.Hour), noon.Add(-24 * time.Hour), []admin.StatementSum{{Class: admin.StatementLines, Count: 6}, {Class: "late", Currency: currency, Count: 1, Minor: 100}}},
			} {
				if err := admin.SaveStatement(t.Context(), tx, "mtn", x.from, x.to, x.sums); err != nil {
					return err
				}
			}
			if tx.Shared() {
				return nil
			}
			if err := admin.SaveBackupResult(t.Context(), tx, admin.KindBackup, &admin.BackupResult{EndedAt: noon, Bytes: 77, TookMS: 1500}); err != nil {
				return err
			}
			return admin.SaveBackupProblem(t.Context(), tx, admin.KindDrill, "no")
		})
		if err != nil {
			t.Fatal(err)
		}
		g := readGauges(t, s)
		for name, want := range map[string]float64{
			"open{payment," + storetest.Connection + "}":     2,
			"open_minor{payment,live," + currency + "}":      float64(open.Amount.Minor + other.Amount.Minor),
			"wallets_minor{test," + currency + "}":           float64(paid.Amount.Minor),
			"reserved_minor{test," + currency + "}":          0,
			"owed_minor{test," + currency + "}":              0,
			"suspense_minor{test," + currency + "}":          float64(wrong.Minor),
			"suspense_oldest_seconds{test," + currency + "}": 3600,
			"cases_open{test,mismatch}":                      1,
			"case_oldest_seconds{test,mismatch}":             3600,
			"payouts_held{}":                                 0,
			"restored_timestamp_seconds{}":                   0,
			"gauges_timestamp_seconds{}":                     float64(noon.Add(time.Hour)) / 1e6,

			"statement_until_timestamp_seconds{mtn}":                float64(noon) / 1e6,
			"statement_differences{mtn,late}":                       3,
			"statement_differences{mtn,broken_line}":                1,
			"statement_difference_minor{mtn,late," + currency + "}": 400,
		} {
			if got, found := g[name]; !found || got < want-1 || got > want+1 {
				t.Errorf("%s is %v (%v), want %v", name, got, found, want)
			}
		}
		if _, archived := g["archive_timestamp_seconds{ok}"]; archived != s.Shared() {
			t.Errorf("the archive of the log is shown: %v", archived)
		}
		_, shown := g["backup_timestamp_seconds{ok}"]
		switch {
		case shown == s.Shared():
			t.Errorf("backups are shown: %v", shown)
		case shown && (g["backup_timestamp_seconds{ok}"] != float64(noon)/1e6 || g["backup_bytes{}"] != 77 || g["backup_seconds{}"] != 1.5 ||
			g["drill_timestamp_seconds{ok}"] != 0 || g["drill_timestamp_seconds{failed}"] != float64(noon.Add(time.Hour))/1e6):
			t.Errorf("backups: %v", g)
		}
		if g["seal_lag_seconds{}"] < 3500 {
			t.Errorf("audit rows that nobody sealed for an hour: %v", g["seal_lag_seconds{}"])
		}
		table := map[string]int{}
		for _, m := range counted.Table {
			table[m.Name] = len(strings.Fields(m.Labels))
		}
		for name := range g {
			short, labels, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
			n, found := table[short]
			if given := strings.Count(labels, ",") + 1; !found || n > 0 && n != given || n == 0 && labels != "" {
				t.Errorf("%s is not as the table has it", name)
			}
		}
	})
}

// The gauges say when any process verified the books; they are there before the first time.
func TestVerificationsAreShownWhoeverRanThem(t *testing.T) {
	t.Parallel()
	noon := till.TimeOf(time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC))
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		expect := func(when string, sound, broken till.Time, problems float64) {
			t.Helper()
			g := readGauges(t, s)
			for name, want := range map[string]float64{
				"verify_timestamp_seconds{sound}": float64(sound) / 1e6, "verify_timestamp_seconds{broken}": float64(broken) / 1e6, "verify_problems{}": problems,
			} {
				if got, found := g[name]; !found || got != want {
					t.Errorf("%s: %s is %v (%v), want %v", when, name, got, found, want)
				}
			}
		}
		note := func(at till.Time, r books.Report) {
			t.Helper()
			clock.Set(at)
			if err := books.NoteVerification(t.Context(), s, &r, at, false); err != nil {
				t.Fatal(err)
			}
		}
		expect("before the first", 0, 0, 0)
		one, two := noon.Add(time.Hour), noon.Add(2*time.Hour)
		note(one, books.Report{Problems: []books.Problem{{Invariant: "I3"}}, Omitted: 1})
		expect("after a broken one", 0, one, 2)
		note(two, books.Report{})
		expect("after a sound one", two, one, 0)
	})
}

// Test money is a series of its own.
func TestTestMoneyIsApart(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		c := storetest.NewCollector(t, s)
		minor := map[till.Mode]int64{}
		for mode, payments := range map[till.Mode]int{till.Live: 1, till.Test: 2} {
			client := storetest.NewClient(t, s, mode)
			for i := range payments {
				paid, open, other := storetest.NewPayment(t, c, client, storetest.Body{}), storetest.NewPayment(t, c, client, storetest.Body{}), storetest.NewPayment(t, c, client, storetest.Body{})
				receipt := fmt.Sprintf("%s %d", mode, i)
				storetest.Apply(t, c, s, open, provider.Result{Outcome: provider.Open})
				storetest.Apply(t, c, s, paid, provider.Result{Outcome: provider.Success, Receipt: receipt})
				storetest.Apply(t, c, s, other, provider.Result{Outcome: provider.Success, Receipt: receipt + "!", Amount: till.Money{Minor: 9, Currency: paid.Amount.Currency}})
				minor[mode] += paid.Amount.Minor
			}
			insertFailingEndpoint(t, s, client.ID)
		}
		g := readGauges(t, s)
		st, err := books.ReadStatus(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		for mode, n := range map[till.Mode]int64{till.Live: 1, till.Test: 2} {
			for name, want := range map[string]int64{
				"wallets_minor{%s,XAF}": minor[mode], "reserved_minor{%s,XAF}": 0, "owed_minor{%s,XAF}": 0, "suspense_minor{%s,XAF}": 9 * n,
				"cases_open{%s,mismatch}": n, "webhook_endpoints{%s,failing}": 1, "webhook_pending{%s,failing}": 1,
			} {
				name = fmt.Sprintf(name, mode)
				if got, found := g[name]; !found || got != float64(want) {
					t.Errorf("%s is %v (%v), want %d", name, got, found, want)
				}
			}
			p := st.Of(mode)
			if p.Clients != 1 || len(p.Open) != 1 || p.Open[0].N != 2*n || len(p.Cases) != 1 || p.Cases[0].Count != n || len(p.Suspense) != 1 || p.Suspense[0].Minor != 9*n || p.Webhooks.Endpoints != 1 {
				t.Errorf("the status of %s clients: %+v", mode, p)
			}
		}
	})
}

// insertFailingEndpoint gives a client an endpoint that nothing reaches.
func insertFailingEndpoint(t *testing.T, s *store.Store, client till.ID) {
	t.Helper()
	err := s.Update(t.Context(), func(tx *store.Tx) error {
		e := till.Endpoint{ID: till.NewID(tx.Now()), ClientID: client, URL: "https://one.example.com/", Enabled: true, FailingSince: tx.Now(), Failures: till.FailingAfter, CreatedAt: tx.Now(), UpdatedAt: tx.Now()}
		return webhooks.InsertEndpoint(t.Context(), tx, &webhooks.Endpoint{Endpoint: e, Secret: []byte("sealed")})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Refunds are not counted among payouts, and what is refunded stands beside what was collected.
func TestRefundsHaveGaugesOfTheirOwn(t *testing.T) {
	t.Parallel()
	noon := till.TimeOf(time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC))
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		storetest.AllowRefunds(t, s)
		client := storetest.NewClient(t, s, till.Test)
		m := counted.New(counted.Config{Connections: []string{storetest.Connection}, Methods: []string{"mtn_momo"}})
		c, d := storetest.NewCollector(t, s), storetest.NewDisburser(t, s, func(c *engine.Config) { c.Meter = m })
		pay := func(value, receipt string) *till.Payment {
			p := storetest.NewPayment(t, c, client, storetest.Body{Value: value})
			storetest.Apply(t, c, s, p, provider.Result{Outcome: provider.Success, Receipt: receipt})
			return p
		}
		refund := func(p *till.Payment, value string, r provider.Result) {
			storetest.ApplyPayout(t, d, s, storetest.NewRefund(t, d, s, client, storetest.RefundBody{PaymentID: p.ID.String(), Value: value}), r)
		}
		done := provider.Result{Outcome: provider.Success, Receipt: "B1"}
		refund(pay("8000", "R1"), "3000", done)
		clock.Set(noon.Add(25 * time.Hour)) // that one was more than a day ago
		done.Receipt = "B2"
		refund(pay("5000", "R2"), "2000", done)
		refund(pay("4000", "R3"), "1000", provider.Result{Outcome: provider.Open})
		storetest.NewPayout(t, d, client, storetest.Body{Value: "100"}, 0)
		clock.Set(noon.Add(26 * time.Hour))
		g := readGauges(t, s)
		for name, want := range map[string]float64{
			"open{refund," + storetest.Connection + "}": 1, "open{payout," + storetest.Connection + "}": 1,
			"open_minor{refund,live,XAF}": 1000, "open_minor{payout,live,XAF}": 100, "refunding_minor{live,XAF}": 1000,
			"refunded_day_minor{test,XAF}": 2000, "collected_week_minor{test,XAF}": 17000,
		} {
			if got, found := g[name]; !found || got != want {
				t.Errorf("%s is %v (%v), want %v", name, got, found, want)
			}
		}
		clock.Set(noon.Add(10 * 24 * time.Hour))
		if g := readGauges(t, s); g["collected_week_minor{test,XAF}"] != 0 || g["refunded_day_minor{test,XAF}"] != 0 {
			t.Errorf("ten days later: %v", g)
		}
		page := httptest.NewRecorder()
		m.Handler().ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
		for _, want := range []string{`till_moves_total{kind="refund",method="mtn_momo",status="pending"} 3`, `till_moves_total{kind="refund",method="mtn_momo",status="success"} 2`,
			`till_moves_total{kind="payout",method="mtn_momo",status="pending"} 1`, `till_moves_total{kind="payout",method="mtn_momo",status="success"} 0`} {
			if !strings.Contains(page.Body.String(), want+"\n") {
				t.Errorf("%s is not counted", want)
			}
		}
	})
}
