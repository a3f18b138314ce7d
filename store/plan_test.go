package store_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"till"
	"till/store"
	"till/store/storetest"
)

// PostgreSQL keeps the plan that it has made for a statement. One that is made
// while a table is empty, as the queue of steps is every night, must be good
// when it no longer is: rows are found by their keys.
func TestPlansMadeOfEmptyTablesAreByKey(t *testing.T) {
	t.Parallel()
	eachPostgres(t, func(t *testing.T, config store.Config, s, _ *store.Store) {
		useSets(t, s)
		empty := storetest.Engines()[1].Config(t)
		empty.Now = config.Now
		storetest.Open(t, empty)
		conn, err := pgx.Connect(t.Context(), empty.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		// Sizes are known for the tables: that they are empty.
		if _, err := conn.Exec(t.Context(), store.WriterSettings(s)+"SET plan_cache_mode = force_generic_plan;"); err != nil {
			t.Fatal(err)
		}
		vacuumAll(t, conn)
		// Open cases are few, and all that the index of them has.
		texts := slices.DeleteFunc(store.SetTexts(), func(text string) bool { return strings.HasPrefix(text, "UPDATE cases") })
		for _, verb := range []string{"SELECT u.nth", "UPDATE payments", "UPDATE steps", "DELETE FROM steps", "UPDATE attempts"} {
			if !strings.Contains(strings.Join(texts, "\n"), verb) {
				t.Errorf("no set begins with %s: the test does not see what it must", verb)
			}
		}
		for i, text := range texts {
			checkPlan(t, conn, fmt.Sprintf("p%d", i), text)
		}
	})
}

// useSets lets payments live in batches.
func useSets(t *testing.T, s *store.Store) {
	t.Helper()
	const payments = 40
	client := storetest.NewClient(t, s, till.Test)
	sv := newService(t, s, newOperator(t, nil), client, true)
	var all sync.WaitGroup
	for range payments {
		all.Go(func() {
			if _, err := sv.create(newKey()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	sv.awaitSuccess(t, s, payments)
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
func checkPlan(t *testing.T, conn *pgx.Conn, name, text string) {
	t.Helper()
	d, err := conn.Prepare(t.Context(), name, text)
	if err != nil {
		t.Errorf("%v: %s", err, text)
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
			t.Errorf("a table is read from end to end:\n%s\n\n%s", text, strings.Join(plan, "\n"))
			return
		}
	}
}
