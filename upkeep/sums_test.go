package upkeep_test

import (
	"testing"
	"time"

	"till"
	"till/books"
	"till/internal/db"
	"till/store"
	"till/store/storetest"
	"till/upkeep"
)

// sumsOf returns what all hours add up to, of a client or over all of a mode.
func sumsOf(t *testing.T, s *store.Store, client till.ID, mode till.Mode) map[string]store.Sum {
	t.Helper()
	out := map[string]store.Sum{}
	err := s.View(t.Context(), func(tx *store.Tx) (err error) {
		nouns := append([]string{"payment"}, store.SumNouns...)
		all, err := tx.ScopeSums(t.Context(), store.Scope{Client: client, Mode: mode}, nouns, 0, 1<<40)
		for _, h := range all {
			k := h.Noun + " " + h.A + " " + h.B
			out[k] = store.Sum{N: out[k].N + h.N, Sum: out[k].Sum + h.Sum.Sum}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func equalSums(t *testing.T, when string, got, want map[string]store.Sum) {
	t.Helper()
	for k, s := range want {
		if got[k] != s {
			t.Errorf("%s: %s is %+v, want %+v", when, k, got[k], s)
		}
	}
	for k, s := range got {
		if _, ok := want[k]; !ok && s != (store.Sum{}) {
			t.Errorf("%s: %s is %+v, want none", when, k, s)
		}
	}
}

// Sums are moved in the commit of the wallet's line, in the hour of that line,
// and the house has the same whether tallies are rolled up or not. Pretend money
// is not added to real money.
func TestSums(t *testing.T) {
	t.Parallel()
	start := till.TimeOf(time.Date(2026, 1, 31, 23, 50, 0, 0, time.UTC))
	storetest.RunAt(t, &start, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		c := storetest.NewCollector(t, s)
		test, live := storetest.NewClient(t, s, till.Test), storetest.NewClient(t, s, till.Live)
		quick, slow, late := storetest.NewPayment(t, c, test, storetest.Body{}), storetest.NewPayment(t, c, test, storetest.Body{}), storetest.NewPayment(t, c, test, storetest.Body{})
		storetest.NewPayment(t, c, live, storetest.Body{})
		clock.Advance(3 * time.Second)
		storetest.Apply(t, c, s, quick, storetest.Succeeded)
		clock.Advance(40 * time.Second)
		storetest.Apply(t, c, s, slow, storetest.Succeeded)
		storetest.Apply(t, c, s, late, storetest.TimedOut)
		clock.Advance(time.Hour)
		storetest.Apply(t, c, s, late, storetest.Succeeded)
		got := sumsOf(t, s, test.ID, till.Test)
		if got["money_in mtn_momo XAF"] != (store.Sum{N: 3, Sum: 15000}) {
			t.Errorf("collected %+v, want 15000 of 3", got["money_in mtn_momo XAF"])
		}
		if a, b := got["approval mtn_momo 5"], got["approval mtn_momo 60"]; a.N != 1 || (a.Sum+500)/1000 != 3 || b.N != 1 || (b.Sum+500)/1000 != 43 {
			t.Errorf("approved %+v and %+v, want one after 3 s and one after 43 s; late money was not approved in time", a, b)
		}
		for range 2 {
			equalSums(t, "the house", sumsOf(t, s, till.House, till.Test), sumsOf(t, s, test.ID, till.Test))
			equalSums(t, "the house, live", sumsOf(t, s, till.House, till.Live), sumsOf(t, s, live.ID, till.Live))
			storetest.RollUp(t, s)
		}
		equalSums(t, "rolled up", sumsOf(t, s, test.ID, till.Test), got)
	})
}

// A database that is older than sums gets them behind the commits, whatever is
// settled meanwhile, and may be filled twice.
func TestSumsOfAnOlderDatabaseAreFilledIn(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		c := storetest.NewCollector(t, s)
		clients := []*till.Client{storetest.NewClient(t, s, till.Test), storetest.NewClient(t, s, till.Live)}
		for _, client := range clients {
			for range 3 {
				storetest.Apply(t, c, s, storetest.NewPayment(t, c, client, storetest.Body{}), storetest.Succeeded)
			}
		}
		storetest.RollUp(t, s)
		err := s.Update(t.Context(), func(tx *store.Tx) error {
			for _, text := range []string{`DELETE FROM counters WHERE client_id = $1 OR noun IN ('money_in', 'approval')`, `DELETE FROM tallies WHERE client_id = $1 OR noun IN ('money_in', 'approval')`} {
				if _, err := tx.DB().Exec(t.Context(), &db.SQL{Name: "forget sums", SQLite: text}, till.House[:]); err != nil {
					return err
				}
			}
			return tx.FillSumsAgain(t.Context(), 0)
		})
		if err != nil {
			t.Fatal(err)
		}
		if r := verify(t, s, books.Options{}); len(r.Problems) > 0 || r.SumsUnfilled != 3 {
			t.Errorf("before: %d unfilled, want two clients and the house; %+v", r.SumsUnfilled, r.Problems)
		}
		storetest.Apply(t, c, s, storetest.NewPayment(t, c, clients[0], storetest.Body{}), storetest.Succeeded)
		for range 2 {
			if err := upkeep.FillSums(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			storetest.RollUp(t, s)
			if r := verify(t, s, books.Options{}); len(r.Problems) > 0 || r.SumsUnfilled != 0 || r.Sums == 0 {
				t.Errorf("after: %d unfilled, %d sums; %+v", r.SumsUnfilled, r.Sums, r.Problems)
			}
			for i, want := range []store.Sum{{N: 4, Sum: 20000}, {N: 3, Sum: 15000}} {
				if got := sumsOf(t, s, clients[i].ID, clients[i].Mode)["money_in mtn_momo XAF"]; got != want {
					t.Errorf("client %d: %+v, want %+v", i, got, want)
				}
				equalSums(t, "the house", sumsOf(t, s, till.House, clients[i].Mode), sumsOf(t, s, clients[i].ID, clients[i].Mode))
			}
			// As at the start of an instance that replaces an older one: the clients are older
			// than the sums.
			startSumsNow(t, s)
			if err := upkeep.FillMixedHours(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if r := verify(t, s, books.Options{}); r.SumsUnfilled != 3 {
				t.Errorf("at a start: %d unfilled, want two clients and the house", r.SumsUnfilled)
			}
		}
		if err := upkeep.FillSums(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	})
}

// Where all clients are younger than the sums, no release without sums has settled
// anything. A start looks at no hour again: it would read all lines of a week.
func TestAStartLooksAtNoHourThatAlwaysHadSums(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		fill := func(want int64) {
			t.Helper()
			if err := upkeep.FillMixedHours(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if r := verify(t, s, books.Options{}); r.SumsUnfilled != want {
				t.Errorf("a start looks at the sums of %d, want %d", r.SumsUnfilled, want)
			}
		}
		fill(0)
		c := storetest.NewCollector(t, s)
		storetest.Apply(t, c, s, storetest.NewPayment(t, c, storetest.NewClient(t, s, till.Test), storetest.Body{}), storetest.Succeeded)
		fill(0)
		startSumsNow(t, s)
		fill(2) // the client and the house
		if err := upkeep.FillSums(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	})
}

// startSumsNow lets the database begin to have sums now, after its clients were made.
func startSumsNow(t *testing.T, s *store.Store) {
	t.Helper()
	err := s.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.DB().Exec(t.Context(), &db.SQL{Name: "start sums", SQLite: `UPDATE schema_migrations SET applied_at = $1 WHERE version = '0039_sums'`}, int64(s.Now()))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func verify(t *testing.T, s *store.Store, o books.Options) books.Report {
	t.Helper()
	o.Key = storetest.ChainKey
	r, err := books.Verify(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
