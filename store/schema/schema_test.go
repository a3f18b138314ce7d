package schema

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"till/internal/db"
)

// The texts of released migrations never change: databases keep their checksums. A new
// migration adds a line per engine to the list.
func TestChecksums(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("testdata/checksums.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, d := range []db.Dialect{db.SQLite, db.Postgres} {
		all, err := migrations(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range all {
			fmt.Fprintf(&got, "%s %s %s\n", folder(d), m.version, m.checksum())
		}
	}
	if got.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

// Each new migration says whether the release before may run on it.
func TestMigrationsSayWhatTheyMeanToOldPrograms(t *testing.T) {
	t.Parallel()
	for _, d := range []db.Dialect{db.SQLite, db.Postgres} {
		all, err := migrations(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range all {
			first, _, _ := strings.Cut(m.parts[0], "\n")
			if why, stops := strings.CutPrefix(first, "-- stop: "); m.version >= firstFlagged && !m.rolling() && (!stops || why == "") {
				t.Errorf("%s %s: its first line is neither '-- rolling' nor '-- stop: WHY'", folder(d), m.version)
			}
		}
	}
}
