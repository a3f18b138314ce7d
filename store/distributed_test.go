package store_test

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"till/internal/db"
	"till/store"
	"till/store/storetest"
)

// global are the tables that do not belong to a client. On Citus they are on the
// coordinator, but for the tables of moves, which each node has; see schema.Distribute.
var global = map[string]string{
	"installation":        "one row, read at start",
	"connections":         "a handful of rows, read at start",
	"restores":            "a row for each time that an old database was put back",
	"schema_migrations":   "read at start",
	"payment_moves":       "eight rows that never change: a reference table",
	"payout_moves":        "seven rows that never change: a reference table",
	"operator_health":     "a few sums of the last minutes",
	"operator_breakers":   "a row per operator",
	"operator_budgets":    "two rows per operator that limits us",
	"operator_tokens":     "a few rows per operator, written once an hour",
	"operator_cases":      "a row per operator that refuses us",
	"operator_references": "the look-up from what an operator repeats to its payment",
	"operator_receipts":   "whose an operator's receipt is, over all clients",
	"strays":              "money whose client nobody may know, found by what an operator repeats",
	"people":              "who signs in to the console, whatever the client",
	"passkeys":            "a few rows per person",
	"recovery_codes":      "the same",
	"invitations":         "found by the hash of a token, which names no client",
	"sessions":            "the same",
	"seal_generations":    "the generations of the installation's secret: a few rows",
	"turns":               "whose turn it is to do what one instance does: a few rows",
	"instances":           "the instances that run: a few rows",
	"certificates":        "a few rows per name of the service: a reference table",
	"backup_results":      "the last backup and the last drill: two rows",
	"connection_markets":  "what operators say of our accounts: a row per connection",
	"statement_results":   "what the comparisons of operators' statements have left: some rows a day",
	"guesses":             "counts by the hash of a login or an address",
	"used_once":           "what counts once, by its hash",
	"verifications":       "a row for each run of verify",
	"key_clients":         "the look-up from a key's id to its client",
	"pay_tokens":          "the look-up from a page's address to its client",
	"page_blocks":         "numbers that pages never ask, by their MACs",
	"page_switches":       "a few rows, and one is of all clients",
	"payout_holds":        "a few rows, and those of all clients must not be on one node",
}

// TestEveryKeyContainsTheClient reads the catalogue: on an engine that is
// distributed by client_id, a unique key or a foreign key without it cannot
// be.
func TestEveryKeyContainsTheClient(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "till.db")
	storetest.Open(t, store.Config{Path: path})
	db := storetest.OpenRaw(t, path)
	column := func(query string, args ...any) (out []string) {
		rows, err := db.QueryContext(t.Context(), query, args...)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var s string
			if err := rows.Scan(&s); err != nil {
				t.Fatal(err)
			}
			out = append(out, s)
		}
		return out
	}
	tables := column(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`)
	if len(tables) < 15 {
		t.Fatalf("only %d tables", len(tables))
	}
	for _, table := range tables {
		if global[table] != "" {
			if first := column(`SELECT name FROM pragma_table_info(?) WHERE cid = 0`, table); first[0] == "client_id" {
				t.Errorf("table %s is led by client_id, so Citus would distribute it by it", table)
			}
			continue
		}
		if first := column(`SELECT name FROM pragma_table_info(?) WHERE cid = 0`, table); first[0] != "client_id" {
			t.Errorf("table %s is not led by client_id", table)
		}
		for _, index := range column(`SELECT name FROM pragma_index_list(?) WHERE "unique" = 1`, table) {
			if columns := column(`SELECT name FROM pragma_index_info(?)`, index); columns[0] != "client_id" {
				t.Errorf("unique key %s of %s is %v, not led by client_id", index, table, columns)
			}
		}
		for _, key := range column(`SELECT DISTINCT id FROM pragma_foreign_key_list(?)`, table) {
			target := column(`SELECT DISTINCT "table" FROM pragma_foreign_key_list(?) WHERE CAST(id AS TEXT) = ?`, table, key)[0]
			columns := column(`SELECT "from" FROM pragma_foreign_key_list(?) WHERE CAST(id AS TEXT) = ? ORDER BY seq`, table, key)
			if !slices.Contains(columns, "client_id") && global[target] == "" {
				t.Errorf("foreign key %v of %s to %s is without client_id", columns, table, target)
			}
		}
	}
}

// forbidden are what no statement may need to be correct on an engine that is
// distributed, or has no such thing.
var forbidden = regexp.MustCompile(`(?i)\b(LISTEN|NOTIFY|pg_advisory\w*|nextval|SERIAL|AUTOINCREMENT|GENERATED|TRUNCATE|SAVEPOINT)\b`)

// everywhere are the statements that look at all clients at once, each with
// the reason why that is right. They only read, or are SQLite's own.
var everywhere = []string{
	`FROM steps WHERE lane = $1`,                                // what is due: each shard answers for itself
	`SELECT lane FROM steps`,                                    // the same
	`FROM steps WHERE held_at > 0`,                              // what waits because payouts are held: the same
	`FROM (SELECT e.*, h.last_event`,                            // which endpoints have something to be sent: the same
	`FROM cases`,                                                // the attention list of the whole service
	`FROM webhook_deliveries WHERE status = 'pending' LIMIT $1`, // what waits, for the doctor
	`FROM steps WHERE held_at >= 0`,                             // how much is open, for the house
	`FROM steps WHERE send_started_at > 0 AND subject_id`,       // what a replaced generation is needed for
	`FROM webhook_endpoints WHERE length(`,                      // how many values each generation sealed
	`FROM clients GROUP BY mode`,                                // the same
	`FROM client_heads h`,                                       // which audit logs are not sealed yet
	`FROM clients WHERE client_id > $1`,                         // the list of clients
	`FROM clients c CROSS JOIN`,                                 // a look over all clients, for the house's people
	`FROM clients c, LATERAL`,                                   // the same
	`FROM steps s JOIN payments p`,                              // at start, when a connection has changed
	`FROM steps s JOIN payouts p`,                               // the same
	`SELECT count(*) FROM pg_class`,                             // the catalogue
	`FROM pg_class c WHERE`,                                     // the same
	`FROM pg_constraint k`,                                      // the same
	`FROM pg_trigger WHERE`,                                     // the same
	`FROM pg_extension WHERE`,                                   // the same
	`FROM pg_dist_node WHERE`,                                   // the nodes of Citus
	`FROM pg_dist_placement`,                                    // the same
	`FROM pg_dist_node n`,                                       // the same
	`FROM pg_dist_shard s`,                                      // what is due on one node
	`FROM pg_dist_shard WHERE`,                                  // into how many parts clients are divided
	`FROM steps WHERE due_at >= $2`,                             // what is due in all lanes: each shard answers for itself
	`SELECT quote_ident(relname)`,                               // the same
	`SELECT count(*) FROM sqlite_master`,                        // the catalogue
	`SELECT name FROM sqlite_schema WHERE type`,
	`FROM pg_dist_partition`,   // the catalogue of Citus
	`current_setting(`,         // the server's own state
	`FROM pg_stat_replication`, // the same
	`FROM dbstat`,              // sizes, for benchmarks
	`pg_total_relation_size(`,  // the same
	`pg_prepared_statements`,   // the session's own statements
	`FROM pg_stat_activity`,    // the server's own sessions
}

// TestStatementsStayInsideAClient reads all statements: all but the listed ones
// name the client, so that an engine distributed by client_id runs them on one
// node.
func TestStatementsStayInsideAClient(t *testing.T) {
	t.Parallel()
	all := db.Statements()
	if len(all) < 200 {
		t.Errorf("only %d statements were found", len(all))
	}
	for _, q := range all {
		for _, text := range []string{q.SQLite, q.Postgres, q.Citus} {
			if m := forbidden.FindString(text); m != "" {
				t.Errorf("%s needs %s: %.80s", q.Name, m, text)
			}
			if readsGlobal(text) {
				continue
			}
			complete := strings.HasPrefix(text, "INSERT") || strings.Contains(text, "WHERE") || strings.Contains(text, "UPDATE")
			if complete && !strings.Contains(text, "client_id") && !slices.ContainsFunc(everywhere, func(s string) bool { return strings.Contains(text, s) }) {
				t.Errorf("%s does not name the client: %.100s", q.Name, text)
			}
		}
	}
}

// globalRead finds a table that does not belong to a client.
var globalRead = regexp.MustCompile(`\b(FROM|INTO|UPDATE)\s+(` + strings.Join(slices.Collect(maps.Keys(global)), "|") + `)\b`)

func readsGlobal(text string) bool { return globalRead.MatchString(text) }
