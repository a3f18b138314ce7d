package store_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"till/internal/db"
	"till/internal/db/postgres"
	"till/store"
	"till/store/proof"
	"till/store/storetest"
)

// PostgreSQL keeps the plan that it has made for a statement. One that is made
// while a table is empty, as the queue of steps is every night, must be good
// when it no longer is: rows are found by their keys.
func TestPlansMadeOfEmptyTablesAreByKey(t *testing.T) {
	t.Parallel()
	eachPostgres(t, func(t *testing.T, config store.Config, s, _ *store.Store) {
		empty := storetest.Engines()[1].Config(t)
		empty.Now = config.Now
		storetest.Open(t, empty)
		conn, err := pgx.Connect(t.Context(), empty.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		// Sizes are known for the tables: that they are empty.
		if _, err := conn.Exec(t.Context(), postgres.Settings(nil, db.Write)+"SET plan_cache_mode = force_generic_plan;"); err != nil {
			t.Fatal(err)
		}
		vacuumAll(t, conn)
		for i, q := range db.Statements() {
			// Open cases are few, and all that the index of them has.
			if q.Arrays && !strings.HasPrefix(q.Name, "cases.close") && q.Name != "payouts.selectOpenCasesOf" {
				checkPlan(t, conn, fmt.Sprintf("p%d", i), q)
			}
		}
	})
}

// vacuumAll measures all tables of the schema.
func vacuumAll(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	rows, err := conn.Query(t.Context(), `SELECT quote_ident(relname) FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if _, err := conn.Exec(t.Context(), "VACUUM ANALYZE "+table); err != nil {
			t.Fatal(err)
		}
	}
}

var scan = regexp.MustCompile(`(Seq Scan|Index Scan|Index Only Scan|Bitmap Heap Scan)( using \S+)? on `)

// checkPlan fails if a plan reads a table otherwise than by conditions on an
// index.
func checkPlan(t *testing.T, conn *pgx.Conn, name string, q *db.SQL) {
	t.Helper()
	text := q.Text(db.Postgres)
	d, err := conn.Prepare(t.Context(), name, text)
	if err != nil {
		t.Errorf("%s: %v", q.Name, err)
		return
	}
	nulls := strings.TrimSuffix(strings.Repeat("NULL, ", len(d.ParamOIDs)), ", ")
	rows, err := conn.Query(t.Context(), "EXPLAIN EXECUTE "+name+"("+nulls+")", pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range plan {
		if scan.MatchString(line) && (i+1 == len(plan) || !strings.Contains(plan[i+1], "Index Cond:")) {
			t.Errorf("%s reads a table from end to end:\n%s\n\n%s", q.Name, text, strings.Join(plan, "\n"))
			return
		}
	}
}

// A slice of a verification may take any time: it is no request that waits.
func TestAVerificationHasNoTimeout(t *testing.T) {
	t.Parallel()
	eachPostgres(t, func(t *testing.T, _ store.Config, s, _ *store.Store) {
		var timeout string
		err := s.View(t.Context(), func(tx *store.Tx) error {
			if err := proof.PreferIndexes(t.Context(), tx); err != nil {
				return err
			}
			q := &db.SQL{Name: "test.timeout", Postgres: `SELECT current_setting('statement_timeout')`}
			return tx.DB().Query(t.Context(), q, nil, func(r db.Row) error { return r.Scan(&timeout) })
		})
		if err != nil || timeout != "0" {
			t.Errorf("the timeout of a statement is %q: %v", timeout, err)
		}
	})
}
