package store_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"till/internal/db"
	"till/internal/db/postgres"
	"till/store"
	"till/store/storetest"
)

// gaugeStatements are what upkeep.ReadGauges reads beside the statements "gauges.…".
var gaugeStatements = []string{
	"cases.countOpenKinds", "operator_cases.selectOpen", "holds.select", "restores.selectOpenRestores", "instances.select", "instances.selectStates", "backups.selectResult", "turns.select",
	"verifications.selectLast", "verifications.selectLastWith", "markets.selectReads",
}

// shortTables stay short, or hold only what is open: a gauge may read them from end to end.
// Everything else grows with the years.
var shortTables = []string{
	"steps", "wallets", "client_heads", "webhook_endpoints", "tallies", "statement_results", "instances", "turns", "restores", "payout_holds", "operator_cases", "backup_results", "verifications", "clients", "connection_markets",
}

// openIndexes hold only what is open, or was ever set aside.
var openIndexes = []string{"strays_standing", "postings_suspense", "cases_open", "restores_open"}

func isGauge(q *db.SQL) bool {
	return strings.HasPrefix(q.Name, "gauges.") || slices.Contains(gaugeStatements, q.Name)
}

var liteScan = regexp.MustCompile(`^SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?`)

// aliasOf finds the table behind each name in a statement.
var aliasOf = regexp.MustCompile(`(?:FROM|JOIN) (\w+)(?: (?:AS )?(\w+))?`)

// checkGaugePlan fails for a line of a plan that reads a long table from end to end.
func checkGaugePlan(t *testing.T, q *db.SQL, table, index string, plan []string) {
	t.Helper()
	if slices.Contains(shortTables, table) || slices.Contains(openIndexes, index) {
		return
	}
	t.Errorf("%s reads %s from end to end (%s):\n%s", q.Name, table, index, strings.Join(plan, "\n"))
}

// What the gauges read is limited by what is open, on both engines: by no plan is a table
// that grows with the years read from end to end.
func TestGaugesReadWhatIsOpen(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "till.db")
		storetest.Open(t, store.Config{Path: path})
		raw := storetest.OpenRaw(t, path)
		found := map[string]bool{}
		for _, q := range db.Statements() {
			if !isGauge(q) {
				continue
			}
			found[q.Name] = true
			rows, err := raw.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+placeholder.ReplaceAllString(q.SQLite, "1"))
			if err != nil {
				t.Fatal(q.Name, err)
			}
			var plan []string
			for rows.Next() {
				var id, parent, unused int
				var line string
				if err := rows.Scan(&id, &parent, &unused, &line); err != nil {
					t.Fatal(err)
				}
				plan = append(plan, line)
			}
			if err := rows.Err(); err != nil {
				t.Fatal(err)
			}
			rows.Close()
			for _, line := range plan {
				if m := liteScan.FindStringSubmatch(line); m != nil && !strings.Contains(line, "CONSTANT ROW") {
					checkGaugePlan(t, q, tableOf(q.SQLite, m[1]), m[2], plan)
				}
			}
		}
		for _, name := range gaugeStatements {
			if !found[name] {
				t.Errorf("there is no statement %s", name)
			}
		}
	})
	eachPostgres(t, func(t *testing.T, config store.Config, _, _ *store.Store) {
		conn, err := pgx.Connect(t.Context(), config.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		if _, err := conn.Exec(t.Context(), postgres.Settings(nil, db.Read)+"SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;"); err != nil {
			t.Fatal(err)
		}
		for i, q := range db.Statements() {
			if isGauge(q) {
				checkGaugeOnPostgres(t, conn, fmt.Sprintf("g%d", i), q)
			}
		}
	})
}

// tableOf returns the table that a statement calls so; the name itself for a table without
// another name, and "" for a subquery, whose own line says what it reads.
func tableOf(text, name string) string {
	for _, m := range aliasOf.FindAllStringSubmatch(text, -1) {
		if m[2] == name || m[1] == name {
			return m[1]
		}
	}
	return shortTables[0]
}

var pgScan = regexp.MustCompile(`(Seq Scan|Index Scan|Index Only Scan|Bitmap Heap Scan)(?: Backward)?(?: using (\S+))? on (\w+)`)

// checkGaugeOnPostgres looks for scans without a condition on their index.
func checkGaugeOnPostgres(t *testing.T, conn *pgx.Conn, name string, q *db.SQL) {
	t.Helper()
	d, err := conn.Prepare(t.Context(), name, q.Text(db.Postgres))
	if err != nil {
		t.Fatalf("%s: %v", q.Name, err)
	}
	nulls := strings.TrimSuffix(strings.Repeat("NULL, ", len(d.ParamOIDs)), ", ")
	if nulls != "" {
		nulls = "(" + nulls + ")"
	}
	rows, err := conn.Query(t.Context(), "EXPLAIN EXECUTE "+name+nulls, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatalf("%s: %v", q.Name, err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range plan {
		m := pgScan.FindStringSubmatch(line)
		if m == nil || strings.Contains(line, "Bitmap Index Scan") || i+1 < len(plan) && strings.Contains(plan[i+1], "Index Cond:") {
			continue
		}
		checkGaugePlan(t, q, m[3], m[2], plan)
	}
}
