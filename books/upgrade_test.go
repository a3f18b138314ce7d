package books_test

import (
	"testing"

	"till/books"
	"till/store"
	"till/store/storetest"
)

// Databases that an earlier release left are opened, migrated and proved right.
// Both files under testdata were written by the release whose last migration was
// 0014: a test client with every story of the sandbox, fees, payouts, a cancelled
// one, an adjustment, keys, two endpoints of which one fails, and a live client on
// simulated operators.
func TestADatabaseOfAnEarlierReleaseIsMigrated(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			config := e.Empty(t)
			storetest.LoadFixture(t, config.Path, "testdata/schema-0014")
			s, err := store.Open(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			applied, err := s.Migrate(t.Context())
			if err != nil || len(applied) == 0 {
				t.Fatalf("applied %v, %v", applied, err)
			}
			if err := e.Distribute(t, s); err != nil {
				t.Fatal(err)
			}
			r := verify(t, s, books.Options{})
			for _, p := range r.Problems {
				t.Error(p)
			}
			if r.Clients != 3 || r.Payments != 38 || r.Payouts != 10 || r.Events < 136 || r.Wallets != 24 || r.Transactions < 60 {
				t.Errorf("%+v", r)
			}
			// Its audit chains, which are plain, go on under the key.
			if _, err := books.ExtendChains(t.Context(), s, storetest.ChainKey); err != nil {
				t.Fatal(err)
			}
			if r := verify(t, s, books.Options{Heads: heads(t, s)}); !r.Clean() || r.ChainLinks != r.Audit || r.Heads != 3 {
				t.Errorf("%d of %d rows are sealed, %d heads, %v", r.ChainLinks, r.Audit, r.Heads, r.Problems)
			}
		})
	}
}
