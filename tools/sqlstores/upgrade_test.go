package sqlstores

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	till "github.com/till-project/till/sdk/go"
	"github.com/till-project/till/sdk/go/sqlstore"
)

// TestTablesOfTheFirstRelease installs over tables that lack a column: what is in them
// stays, and the column is there.
func TestTablesOfTheFirstRelease(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s := sqlstore.New(db, sqlstore.SQLite)
	for _, statement := range []string{"", "ALTER TABLE till_outbox DROP COLUMN details",
		"INSERT INTO till_outbox VALUES ('k-1', 'payment', 'o-1', 1, '{}', 'refused', 1, 0, 0, 0, NULL, '', 'validation_failed', 1)", "", ""} {
		if statement == "" {
			err = s.Install(t.Context())
		} else {
			_, err = db.Exec(statement)
		}
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	row, err := s.Newest(t.Context(), till.KindPayment, "o-1")
	if err != nil || row == nil || row.Problem != "validation_failed" || row.Details != "" {
		t.Fatalf("%+v, %v", row, err)
	}
	if ok, err := s.Settle(t.Context(), till.Settlement{Key: "k-1", Details: till.Ptr(strings.Repeat("x", 99))}); !ok || err != nil {
		t.Error(ok, err)
	}
}
