package books_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"till"
	"till/books"
	counted "till/meter"
	"till/provider"
	"till/store"
	"till/store/storetest"
)

// readGauges returns the gauges as name{labels} and value.
func readGauges(t *testing.T, s *store.Store) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	err := s.View(t.Context(), func(tx *store.Tx) error {
		all, err := books.ReadGauges(t.Context(), tx)
		// Through the encoding that the other instances read.
		var decoded []counted.Value
		if err := json.Unmarshal([]byte(books.EncodeGauges(all)), &decoded); err != nil {
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
				sums     []store.StatementSum
			}{
				{noon.Add(-48 * time.Hour), noon.Add(-24 * time.Hour), []store.StatementSum{{Class: store.StatementLines, Count: 5}, {Class: "late", Currency: currency, Count: 9, Minor: 900}}},
				{noon.Add(-24 * time.Hour), noon, []store.StatementSum{{Class: store.StatementLines, Count: 5}, {Class: "late", Currency: currency, Count: 2, Minor: 300}, {Class: "broken_line", Count: 1}}},
				// Compared again, within a longer time: it takes the first one's place.
				{noon.Add(-49 * time.Hour), noon.Add(-24 * time.Hour), []store.StatementSum{{Class: store.StatementLines, Count: 6}, {Class: "late", Currency: currency, Count: 1, Minor: 100}}},
			} {
				if err := tx.SaveStatement(t.Context(), "mtn", x.from, x.to, x.sums); err != nil {
					return err
				}
			}
			if tx.Shared() {
				return nil
			}
			if err := tx.SaveBackupResult(t.Context(), store.KindBackup, &store.BackupResult{EndedAt: noon, Bytes: 77, TookMS: 1500}); err != nil {
				return err
			}
			return tx.SaveBackupProblem(t.Context(), store.KindDrill, "no")
		})
		if err != nil {
			t.Fatal(err)
		}
		g := readGauges(t, s)
		for name, want := range map[string]float64{
			"open{payment," + storetest.Connection + "}": 2,
			"open_minor{payment," + currency + "}":       float64(open.Amount.Minor + other.Amount.Minor),
			"wallets_minor{" + currency + "}":            float64(paid.Amount.Minor),
			"reserved_minor{" + currency + "}":           0,
			"owed_minor{" + currency + "}":               0,
			"suspense_minor{" + currency + "}":           float64(wrong.Minor),
			"suspense_oldest_seconds{" + currency + "}":  3600,
			"cases_open{mismatch}":                       1,
			"case_oldest_seconds{mismatch}":              3600,
			"payouts_held{}":                             0,
			"restored_timestamp_seconds{}":               0,
			"gauges_timestamp_seconds{}":                 float64(noon.Add(time.Hour)) / 1e6,

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

// Whoever verified the books, the gauges say it; they are there before the first time.
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
