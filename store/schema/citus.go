package schema

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"till/internal/db"
)

// On Citus a table is in one of three places, which its columns decide (ADR 0071):
//   - A table whose first column is client_id is distributed by it. All rows of a client
//     are on one node.
//   - The tables of legal moves, which never change, are copied to each node: foreign
//     keys of distributed tables refer to them.
//   - Each other table is on the coordinator. It must be known to Citus: a commit that
//     writes a table unknown to Citus and a node's rows is not atomic.

// DefaultShards is into how many parts the clients are divided. It is far above the
// number of nodes that a cluster begins with, because a part is moved as a whole.
const DefaultShards = 32

// maxShards is how many parts there may be. Each is some fifty tables of PostgreSQL.
const maxShards = 1024

// How Citus has a table: "ht" or "hs" is distributed, "nt" copied to each node, "ns" on the
// coordinator. When it copies a table, it takes all that refer to it to the coordinator.
var selectTables = db.Define(db.SQL{Name: "citus.selectTables",
	Postgres: `SELECT c.relname::text, COALESCE((SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = 1), ''),
		COALESCE((SELECT p.partmethod::text || p.repmodel::text FROM pg_dist_partition p WHERE p.logicalrelid::oid = c.oid), '')
		FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace ORDER BY c.relname`})

var selectReferences = db.Define(db.SQL{Name: "citus.selectReferences",
	Postgres: `SELECT c.relname::text, f.relname::text FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class f ON f.oid = k.confrelid
		WHERE k.contype = 'f' AND c.oid <> f.oid AND c.relnamespace = current_schema()::regnamespace`})

var selectWithoutIdentity = db.Define(db.SQL{Name: "citus.selectWithoutIdentity",
	Postgres: `SELECT c.relname::text, COALESCE((SELECT i.relname::text FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
			WHERE x.indrelid = c.oid AND x.indisunique AND x.indpred IS NULL AND x.indexprs IS NULL
			AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = ANY(x.indkey) AND NOT a.attnotnull)
			ORDER BY x.indnatts, i.relname LIMIT 1), '')
		FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace AND c.relreplident = 'd'
		AND NOT EXISTS (SELECT FROM pg_index x WHERE x.indrelid = c.oid AND x.indisprimary) ORDER BY c.relname`})

var selectHolds = db.Define(db.SQL{Name: "citus.selectHolds",
	Postgres: `SELECT (SELECT count(*) FROM pg_trigger WHERE tgname = 'transactions_hold' AND tgrelid = to_regclass('transactions')),
		(SELECT count(*) FROM pg_constraint WHERE conname = 'transactions_wallet' AND conrelid = to_regclass('transactions')),
		(SELECT count(*) FROM pg_constraint WHERE conname = 'transactions_payment' AND conrelid = to_regclass('transactions'))`})

var selectCopied = db.Define(db.SQL{Name: "citus.selectCopied",
	Postgres: `SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND pg_relation_size(c.oid) > 0
		AND c.oid IN (SELECT logicalrelid::oid FROM pg_dist_partition WHERE partmethod = 'h') ORDER BY c.relname`})

var countShards = db.Define(db.SQL{Name: "citus.countShards",
	Postgres: `SELECT count(*) FROM pg_dist_shard WHERE logicalrelid::oid = to_regclass('clients')::oid`})

var selectCluster = db.Define(db.SQL{Name: "citus.selectCluster",
	Postgres: `SELECT current_schema()::text, current_database()::text, (SELECT count(*) FROM pg_extension WHERE extname = 'citus')`})

var selectNodes = db.Define(db.SQL{Name: "citus.selectNodes",
	Postgres: `SELECT count(*) FILTER (WHERE groupid = 0), count(*) FILTER (WHERE groupid <> 0 AND shouldhaveshards) FROM pg_dist_node WHERE isactive`})

// table is one table of the schema.
type table struct {
	name   string
	first  string // its first column
	placed string // how Citus has it; "": not at all
}

// isPlaced reports whether a table is in its place.
func (t *table) isPlaced() bool {
	switch {
	case t.first == "client_id":
		return strings.HasPrefix(t.placed, "h")
	case strings.HasSuffix(t.name, "_moves"):
		return t.placed == "nt"
	}
	return t.placed == "ns"
}

// place returns the command that puts a table in its place.
func (t *table) place(shards int) string {
	switch {
	case t.first == "client_id" && t.name == "clients":
		return fmt.Sprintf(`SELECT create_distributed_table('clients', 'client_id', colocate_with => 'none', shard_count => %d)`, shards)
	case t.first == "client_id":
		return `SELECT create_distributed_table('` + t.name + `', 'client_id', colocate_with => 'clients')`
	case strings.HasSuffix(t.name, "_moves"):
		return `SELECT create_reference_table('` + t.name + `')`
	}
	return `SELECT citus_add_local_table_to_metadata('` + t.name + `')`
}

// unsafeTriggers lets a table keep its triggers. Those of ours read their own row only,
// which is what Citus cannot know.
const unsafeTriggers = `SET LOCAL citus.enable_unsafe_triggers = on`

// Distribute puts each table in its place, unless it is there. It runs one command after
// the other, each in a transaction of its own, and says each before it runs it. What has to
// be run is read from the catalogue, so whatever ended a run, the next one goes on. No
// instance may be running. shards is 0 for as many as there are, or DefaultShards.
func Distribute(ctx context.Context, d *db.DB, shards int, say func(command string)) error {
	database, err := checkCluster(ctx, d, shards)
	if err != nil {
		return err
	}
	run := func(command string) error {
		say(command)
		return d.Update(ctx, db.Foreground, func(tx *db.Tx) error { return tx.Script(ctx, unsafeTriggers+"; "+command) })
	}
	for range stages {
		commands, err := NextCommands(ctx, d, shards)
		if err != nil {
			return err
		}
		for _, command := range commands {
			if err := run(command); err != nil {
				return err
			}
		}
	}
	// Settings of a session do not reach the nodes; those of a database do. Without a limit, a
	// lock that nobody releases would hold up a client for ever.
	if err := run(`ALTER DATABASE "` + strings.ReplaceAll(database, `"`, `""`) + `" SET lock_timeout = '5s'`); err != nil {
		return err
	}
	return d.View(ctx, func(tx *db.Tx) error { return checkPlaces(ctx, tx) })
}

// stages are what Distribute does, in order. Each returns the commands that are left of it.
var stages = []func(ctx context.Context, tx *db.Tx, shards int) ([]string, error){prepare, placements, removals}

// NextCommands returns what Distribute has to run next: what is left of the first stage that
// is not complete. It is empty if nothing is left.
func NextCommands(ctx context.Context, d *db.DB, shards int) (commands []string, err error) {
	err = d.View(ctx, func(tx *db.Tx) error {
		for _, stage := range stages {
			if commands, err = stage(ctx, tx, shards); err != nil || len(commands) > 0 {
				return err
			}
		}
		return nil
	})
	return commands, err
}

// placements returns the commands that put tables in their places.
func placements(ctx context.Context, tx *db.Tx, shards int) (commands []string, err error) {
	tables, err := unplacedOf(ctx, tx)
	for i := range tables {
		commands = append(commands, tables[i].place(cmp.Or(shards, DefaultShards)))
	}
	return commands, err
}

// removals returns the commands that empty the coordinator's own files of distributed tables:
// their rows were copied to the nodes, and nobody reads them here any more.
func removals(ctx context.Context, tx *db.Tx, _ int) (commands []string, err error) {
	err = tx.Query(ctx, selectCopied, nil, func(r db.Row) error {
		var table string
		err := r.Scan(&table)
		commands = append(commands, `SELECT truncate_local_data_after_distributing_table('`+table+`')`)
		return err
	})
	return commands, err
}

// checkCluster says what has to be done first, if Citus is not ready, and returns the
// database's name.
func checkCluster(ctx context.Context, d *db.DB, shards int) (database string, err error) {
	if shards < 0 || shards > maxShards {
		return "", &Error{fmt.Sprintf("the number of shards must be from 1 to %d", maxShards)}
	}
	var schema string
	var extension, coordinators, workers, have int
	err = d.View(ctx, func(tx *db.Tx) error {
		if _, err := tx.QueryRow(ctx, selectCluster, nil, &schema, &database, &extension); err != nil || extension == 0 {
			return err
		}
		if _, err := tx.QueryRow(ctx, selectNodes, nil, &coordinators, &workers); err != nil {
			return err
		}
		_, err := tx.QueryRow(ctx, countShards, nil, &have)
		return err
	})
	switch {
	case err != nil:
		return "", err
	case extension == 0:
		return "", &Error{"this database has no Citus: run CREATE EXTENSION citus on each node first"}
	case schema != "public":
		return "", &Error{"on Citus the tables must be in the schema public, not in " + schema + ": the nodes look for our functions there"}
	case coordinators == 0:
		return "", &Error{"Citus does not know its coordinator: run SELECT citus_set_coordinator_host('HOST', PORT) first"}
	case workers == 0:
		return "", &Error{"Citus has no node to put clients on: run SELECT citus_add_node('HOST', PORT) for each first"}
	case shards != 0 && have > 1 && shards != have:
		return "", &Error{fmt.Sprintf("the clients are divided into %d parts, and their number cannot be changed to %d: leave --shards away", have, shards)}
	}
	return database, nil
}

// prepare returns what has to be changed before tables are distributed. The trigger that
// checks the lines of a statement reads two tables, which no shard can: foreign keys check
// each line. A table without a primary key needs an identity, or its parts could not be moved.
func prepare(ctx context.Context, tx *db.Tx, _ int) (commands []string, err error) {
	var trigger, wallet, payment int
	if _, err := tx.QueryRow(ctx, selectHolds, nil, &trigger, &wallet, &payment); err != nil {
		return nil, err
	}
	if trigger > 0 && wallet == 0 {
		commands = append(commands, `ALTER TABLE transactions ADD CONSTRAINT transactions_wallet FOREIGN KEY (client_id, wallet_id) REFERENCES wallets (client_id, id)`)
	}
	if trigger > 0 && payment == 0 {
		commands = append(commands, `ALTER TABLE transactions ADD CONSTRAINT transactions_payment FOREIGN KEY (client_id, payment_id) REFERENCES payments (client_id, id)`)
	}
	if trigger > 0 {
		commands = append(commands, `DROP TRIGGER transactions_hold ON transactions`)
	}
	err = tx.Query(ctx, selectWithoutIdentity, nil, func(r db.Row) error {
		var table, index string
		err := r.Scan(&table, &index)
		identity := `FULL`
		if index != "" {
			identity = `USING INDEX ` + index
		}
		commands = append(commands, `ALTER TABLE `+table+` REPLICA IDENTITY `+identity)
		return err
	})
	return commands, err
}

// WithoutIdentity returns the tables whose shards could not be moved while they are written.
func WithoutIdentity(ctx context.Context, d *db.DB) (tables []string, err error) {
	err = d.View(ctx, func(tx *db.Tx) error {
		tables = nil
		return tx.Query(ctx, selectWithoutIdentity, nil, func(r db.Row) error {
			var table, index string
			err := r.Scan(&table, &index)
			tables = append(tables, table)
			return err
		})
	})
	return tables, err
}

// unplacedOf returns the tables that are not in their places, in an order in which it takes
// them: clients before all that is placed beside them, and each table behind those that its
// foreign keys refer to.
func unplacedOf(ctx context.Context, tx *db.Tx) ([]table, error) {
	var waiting []table
	err := tx.Query(ctx, selectTables, nil, func(r db.Row) error {
		var t table
		err := r.Scan(&t.name, &t.first, &t.placed)
		if !t.isPlaced() {
			waiting = append(waiting, t)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	refersTo := map[string][]string{}
	for _, t := range waiting {
		if t.name != "clients" { // a database that has it distributed is recognised
			refersTo[t.name] = []string{"clients"}
		}
	}
	err = tx.Query(ctx, selectReferences, nil, func(r db.Row) error {
		var from, to string
		err := r.Scan(&from, &to)
		refersTo[from] = append(refersTo[from], to)
		return err
	})
	return inOrder(waiting, refersTo), err
}

// inOrder returns tables so that each comes behind those that it refers to. Those that
// refer to each other keep their order at the end.
func inOrder(waiting []table, refersTo map[string][]string) (out []table) {
	for len(waiting) > 0 {
		ready := slices.IndexFunc(waiting, func(t table) bool {
			return !slices.ContainsFunc(waiting, func(other table) bool { return slices.Contains(refersTo[t.name], other.name) })
		})
		ready = max(0, ready)
		out = append(out, waiting[ready])
		waiting = slices.Delete(waiting, ready, ready+1)
	}
	return out
}

// IsDistributed reports whether Citus knows a table of the schema.
func IsDistributed(ctx context.Context, d *db.DB) (yes bool, err error) {
	err = d.View(ctx, func(tx *db.Tx) error {
		n, err := distributedTables(ctx, tx)
		yes = n > 0
		return err
	})
	return yes, err
}

// Place is how much of a schema Citus has distributed.
type Place int

// What Distribute has done to a database.
const (
	OneServer Place = iota // nothing, or only what comes before
	InPart                 // some tables are in their places: a run was interrupted
	Placed                 // all are
)

// PlaceOf reads how much of a schema is distributed.
func PlaceOf(ctx context.Context, d *db.DB) (place Place, err error) {
	err = d.View(ctx, func(tx *db.Tx) error {
		place = OneServer
		if n, err := distributedTables(ctx, tx); err != nil || n == 0 {
			return err
		}
		rest, err := unplacedOf(ctx, tx)
		if place = InPart; len(rest) == 0 {
			place = Placed
		}
		return err
	})
	return place, err
}

// distributedTables returns how many tables of the schema Citus knows.
func distributedTables(ctx context.Context, tx *db.Tx) (n int, err error) {
	if _, err := tx.QueryRow(ctx, tableExists, []any{"pg_dist_partition"}, &n); err != nil || n == 0 {
		return 0, err
	}
	_, err = tx.QueryRow(ctx, countDistributed, nil, &n)
	return n, err
}

// applyOnCitus is apply on a distributed database. It puts the tables that the migration
// has made in their places.
func (m *migration) applyOnCitus(ctx context.Context, tx *db.Tx, ran *bool) (err error) {
	if err := tx.Script(ctx, unsafeTriggers); err != nil {
		return err
	}
	if *ran, err = m.apply(ctx, tx); err != nil || !*ran {
		return err
	}
	tables, err := unplacedOf(ctx, tx)
	for i := range tables {
		if err == nil {
			err = tx.Script(ctx, tables[i].place(DefaultShards))
		}
	}
	return err
}

// errDistributed says that this program took the database for one server.
var errDistributed = &Error{"the database was distributed by Citus while this program ran: start it again"}

// checkPlaces rejects a database that is distributed in part, and one that was distributed
// while this program ran: it sends what is no transaction there.
func checkPlaces(ctx context.Context, tx *db.Tx) error {
	n, err := distributedTables(ctx, tx)
	if err != nil || n == 0 {
		return err
	}
	if tx.Dialect() != db.Citus {
		return errDistributed
	}
	rest, err := unplacedOf(ctx, tx)
	if err == nil && len(rest) > 0 {
		err = &Error{"Citus does not have the table " + rest[0].name + " in its place: stop all instances and run 'till migrate --citus'"}
	}
	return err
}
