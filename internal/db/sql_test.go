package db

import "testing"

func TestPlaceholdersAscend(t *testing.T) {
	for text, want := range map[string]bool{
		`SELECT 1`:                                    true,
		`SELECT $1, $2, $1, $3`:                       true,
		`UPDATE t SET a = $1, b = $1`:                 true,
		`UPDATE t SET a = $2 WHERE b=$1`:              false,
		`UPDATE t SET a = $1 WHERE b=$3`:              false,
		`VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11)`: true,
	} {
		if got := placeholdersAscend(text); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a statement whose arguments SQLite would mix up is taken")
		}
	}()
	Define(SQL{Name: "test.mixed", SQLite: `UPDATE t SET a = $2 WHERE b = $1`})
}
