package store_test

import (
	"database/sql"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"till/internal/db"
	"till/store"
	"till/store/storetest"
)

// fewRows is how SQLite says that it finds rows by an index that has few of them.
var fewRows = regexp.MustCompile(`client_id=\? AND (reference|provider_reference|idempotency_key|payment_id|payout_id|subject_id)=\?`)

// A client with a million rows that looks for one of them must not wait until all were
// walked in the order of their ids.
func TestAFewRowsAreFoundByTheirIndex(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "till.db")
	storetest.Open(t, store.Config{Path: path})
	raw, checked := storetest.OpenRaw(t, path), 0
	check := func(name, text string) {
		if !strings.Contains(text, "few AS MATERIALIZED") && name != "audit.selectActs" {
			return
		}
		checked++
		if all := explain(t, raw, name, text); !fewRows.MatchString(all) {
			t.Errorf("%s walks more than it needs:\n%s\n\n%s", name, text, all)
		}
	}
	store.ListTexts(false, check)
	for _, q := range db.Statements() {
		check(q.Name, q.SQLite)
	}
	if checked < 20 {
		t.Errorf("only %d statements were looked at", checked)
	}
}

// Lists of payouts do not walk over refunds, nor those of refunds over payouts.
func TestListsOfPayoutsAndOfRefundsWalkTheirOwn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "till.db")
	storetest.Open(t, store.Config{Path: path})
	raw, checked := storetest.OpenRaw(t, path), map[string]int{}
	store.ListTexts(false, func(name, text string) {
		noun := strings.Fields(name)[1]
		if noun != "payout" && noun != "refund" || !strings.HasPrefix(name, "page ") || strings.Contains(text, "few AS MATERIALIZED") {
			return
		}
		own := map[string]string{"payout": "INDEX payouts_plain", "refund": "INDEX payouts_refund"}[noun]
		plan := explain(t, raw, name, text)
		if checked[noun]++; !strings.Contains(plan, own) {
			t.Errorf("%s does not go by an index of its own:\n%s\n\n%s", name, text, plan)
		}
	})
	if checked["payout"] < 12 || checked["refund"] < 12 {
		t.Errorf("%v statements were looked at", checked)
	}
}

// explain returns how SQLite answers a statement.
func explain(t *testing.T, raw *sql.DB, name, text string) string {
	t.Helper()
	rows, err := raw.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+placeholder.ReplaceAllString(text, "1"))
	if err != nil {
		t.Fatal(name, err)
	}
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var line string
		if err := rows.Scan(&id, &parent, &unused, &line); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, line)
	}
	return strings.Join(plan, "\n")
}
