package books_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"till/books"
	"till/store"
	"till/store/storetest"
)

// What each release has left is migrated and proved right, with all that was in it. 'make
// fixture' makes the files of a release; nobody changes them afterwards.
func TestTheDatabaseOfEveryReleaseIsMigrated(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob("testdata/release-*.json")
	if err != nil || len(found) == 0 {
		t.Fatalf("there is no fixture of a release: %v", err)
	}
	for _, path := range found {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var was map[string]books.Report
		if err := json.Unmarshal(text, &was); err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		for _, e := range storetest.Engines() {
			migrated := func(t *testing.T, distributeFirst bool) {
				t.Parallel()
				config := e.Empty(t)
				storetest.LoadFixture(t, config.Path, filepath.Join("testdata", name))
				s, err := store.Open(t.Context(), config)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				var lacks *store.SchemaError
				if distributeFirst {
					if err := e.Distribute(t, s); err != nil && !errors.As(err, &lacks) {
						t.Fatal(err)
					}
				}
				if _, err := s.Migrate(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := e.Distribute(t, s); err != nil {
					t.Fatal(err)
				}
				// Without a key: the chains are under that of the release's own installation.
				is, err := books.Verify(t.Context(), s, books.Options{})
				if err != nil {
					t.Fatal(err)
				}
				want, found := was[e.Name]
				if !found {
					want = was["postgres"] // of which Citus takes the dump
				}
				for _, p := range is.Problems {
					t.Error(p)
				}
				if is.Clients != want.Clients || is.Payments != want.Payments || is.Payouts != want.Payouts || is.Events != want.Events ||
					is.Transactions != want.Transactions || is.Endpoints != want.Endpoints || is.Audit != want.Audit || want.Payments == 0 {
					t.Errorf("it has %+v, and had %+v", is, want)
				}
			}
			t.Run(name+"/"+e.Name, func(t *testing.T) { migrated(t, false) })
			if e.Name == "citus" { // what a cluster goes through that was there before this release
				t.Run(name+"/distributed", func(t *testing.T) { migrated(t, true) })
			}
		}
	}
}
