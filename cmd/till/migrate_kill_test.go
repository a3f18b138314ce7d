package main

import (
	"testing"
	"time"

	"till/books"
	"till/store"
	"till/store/storetest"
)

// TestKilledUpgrades kills 'till migrate' in the middle of an upgrade, again and again, until
// it comes to its end: each migration is there whole or not at all, the next run goes on, and
// the books of then are right. TILL_KILLS says how many kills there are.
func TestKilledUpgrades(t *testing.T) {
	t.Parallel()
	want := asked("TILL_KILLS", 2)
	for _, e := range storetest.Engines() {
		if e.Name == "citus" { // its nodes commit by themselves
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			old := func() string {
				t.Helper()
				path := e.Empty(t).Path
				storetest.LoadFixture(t, path, "../../books/testdata/schema-0014")
				return path
			}
			migrate := func(path string) []string { return []string{"migrate", "--database", path} }
			k := &killing{t: t}
			within, kills := 2*time.Second, 0
			for n := 0; kills < want; n++ {
				if n == 20*want {
					t.Fatalf("%d upgrades, and %d kills", n, kills)
				}
				path := old()
				began, before := time.Now(), kills
				for window := within; !killTill(t, window, migrate(path)...); kills++ {
					window += window / 4 // on a busy machine an upgrade takes longer than the one before
				}
				if kills == before { // what a whole upgrade takes
					within = min(within, time.Since(began))
				}
				if code, out := k.run("", migrate(path)...); code != 0 {
					t.Fatalf("after %d kills: %d %s", kills, code, out)
				}
				onStore(t, path, func(s *store.Store) error {
					r, err := books.Verify(t.Context(), s, books.Options{})
					for _, p := range r.Problems {
						t.Error(p)
					}
					if r.Clients != 3 || r.Payments != 38 || r.Payouts != 10 || r.Wallets != 24 {
						t.Errorf("it has %+v", r)
					}
					return err
				})
			}
		})
	}
}
