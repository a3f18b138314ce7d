package store

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"till/internal/db"
)

// SQLite's own table of pages says how many cells a page has: that of a leaf are rows.
var selectTableSizes = db.Define(db.SQL{Name: "plans.selectTableSizes",
	SQLite: `SELECT m.tbl_name, sum(CASE WHEN d.name = m.tbl_name AND d.pagetype = 'leaf' THEN d.ncell ELSE 0 END), sum(d.pgsize)
		FROM dbstat d JOIN sqlite_master m ON m.name = d.name WHERE m.tbl_name NOT LIKE 'sqlite_%' GROUP BY m.tbl_name ORDER BY m.tbl_name`,
	Postgres: `SELECT relname::text, greatest(reltuples, 0)::bigint, pg_total_relation_size(oid) FROM pg_class
		WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace ORDER BY relname`})

// The rows of a distributed table are on the nodes.
var selectSizesOnNodes = db.Define(db.SQL{Name: "plans.selectSizesOnNodes",
	Postgres: `SELECT c.relname::text, greatest(c.reltuples, 0)::bigint,
			CASE WHEN p.partmethod = 'h' THEN coalesce(citus_total_relation_size(c.oid::regclass, false), 0) ELSE pg_total_relation_size(c.oid) END
		FROM pg_class c LEFT JOIN pg_dist_partition p ON p.logicalrelid::oid = c.oid
		WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace ORDER BY c.relname`})

// TableSize is what a table takes on the disk, its indexes included.
type TableSize struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"` // about; 0 where Citus has them on its nodes
	Bytes int64  `json:"bytes"`
}

// TableSizes returns the sizes of all tables. It reads the whole of a SQLite file.
func (s *Store) TableSizes(ctx context.Context) (out []TableSize, err error) {
	err = s.View(ctx, func(tx *Tx) error {
		out = nil
		tx.db.WithoutTimeout()
		q := selectTableSizes
		if s.nodes.known {
			q = selectSizesOnNodes
		}
		return tx.db.Query(ctx, q, nil, func(r db.Row) error {
			var t TableSize
			err := r.Scan(&t.Table, &t.Rows, &t.Bytes)
			out = append(out, t)
			return err
		})
	})
	return out, err
}

var selectParameterTypes = db.Define(db.SQL{Name: "plans.selectParameterTypes",
	Postgres: `SELECT array_to_string(parameter_types::text[], ',') FROM pg_prepared_statements WHERE name = $1`})

// mainReads are the reads that a busy service does most, and those that would hurt it most
// if they read whole tables.
var mainReads = []string{
	"keys.selectKey", "payments.selectByKey", "payments.select", "payouts.select", "clients.lockHeads", "lanes.selectDueSteps", "lanes.selectNextLane",
	"steps.lock", "events.select", "endpoints.selectDueEndpoints", "deliveries.selectDueDeliveries", "wallets.selectOf",
	"audit_chain.selectClientsToChain", "gauges.sumOpenPayments", "cases.list open",
}

// Plan is how the engine runs a statement. It holds no value of a row.
type Plan struct {
	Name  string   `json:"name"`
	Lines []string `json:"lines"`
}

var parameter = regexp.MustCompile(`\$(\d+)`)

// Plans returns the plans of the main reads, as the engine makes them for any arguments.
// The statements do not run.
func (s *Store) Plans(ctx context.Context) (out []Plan, err error) {
	err = s.View(ctx, func(tx *Tx) error {
		out = nil
		if tx.Shared() && !s.nodes.known { // Citus chooses the shard by the arguments
			if err := tx.db.Script(ctx, `SET LOCAL plan_cache_mode = force_generic_plan`); err != nil {
				return err
			}
		}
		byName := map[string]*db.SQL{}
		for _, q := range db.Statements() {
			byName[q.Name] = q
		}
		for i, name := range mainReads {
			q := byName[name]
			if q == nil {
				return fmt.Errorf("there is no statement %s", name)
			}
			p, err := tx.plan(ctx, q, i)
			if err != nil {
				return fmt.Errorf("plan %s: %w", name, err)
			}
			out = append(out, p)
		}
		return nil
	})
	return out, err
}

func (tx *Tx) plan(ctx context.Context, q *db.SQL, number int) (Plan, error) {
	p, text := Plan{Name: q.Name}, q.Text(tx.db.Dialect())
	parameters := 0
	for _, m := range parameter.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1])
		parameters = max(parameters, n)
	}
	if !tx.Shared() {
		explain := &db.SQL{Name: "plans.explain", SQLite: "EXPLAIN QUERY PLAN " + text}
		return p, tx.db.Query(ctx, explain, make([]any, parameters), func(r db.Row) error {
			var id, parent, unused int64
			var line string
			err := r.Scan(&id, &parent, &unused, &line)
			p.Lines = append(p.Lines, line)
			return err
		})
	}
	name := "till_plan_" + strconv.Itoa(number)
	if err := tx.db.Script(ctx, "PREPARE "+name+" AS "+text); err != nil {
		return p, err
	}
	values := slices.Repeat([]string{"NULL"}, parameters)
	if tx.s.nodes.known { // nobody's client has a shard, too, and NULL has none
		var types string
		if _, err := tx.db.QueryRow(ctx, selectParameterTypes, []any{name}, &types); err != nil {
			return p, err
		}
		for i, t := range strings.Split(types, ",") {
			if t == "bytea" {
				values[i] = `'\x00'`
			}
		}
	}
	execute := "EXPLAIN EXECUTE " + name
	if parameters > 0 {
		execute += "(" + strings.Join(values, ", ") + ")"
	}
	err := tx.db.Query(ctx, &db.SQL{Name: "plans.explain", Postgres: execute}, nil, func(r db.Row) error {
		var line string
		err := r.Scan(&line)
		p.Lines = append(p.Lines, line)
		return err
	})
	if err != nil {
		return p, err
	}
	return p, tx.db.Script(ctx, "DEALLOCATE "+name)
}
