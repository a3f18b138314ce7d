package store_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"till/internal/db"
	"till/store"
	"till/store/storetest"
)

// onCitus runs f on a distributed database, if there is a cluster.
func onCitus(t *testing.T, f func(t *testing.T, config store.Config)) {
	t.Helper()
	for _, e := range storetest.Engines() {
		if e.Name == "citus" {
			f(t, e.Config(t))
		}
	}
}

// Citus refuses some statements only when it plans them. Each statement of the program is
// planned here. A write that is sent to several shards would lock rows of several nodes in
// any order, so there is none.
func TestCitusPlansEveryStatement(t *testing.T) {
	t.Parallel()
	onCitus(t, func(t *testing.T, config store.Config) {
		conn, err := pgx.Connect(t.Context(), config.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		texts, oneShard := map[string]string{}, map[string]bool{}
		for _, q := range db.Statements() {
			texts[q.Name] = q.Text(db.Citus)
			oneShard[q.Name] = strings.HasPrefix(q.Name, "verify.") && !overAllClients[q.Name]
			if q.CitusArrays {
				texts[q.Name+" of arrays"] = q.Text(db.Postgres)
			}
			if q.OneClient != "" {
				texts[q.Name+" of one client"] = q.OneClient
				oneShard[q.Name+" of one client"] = true
			}
		}
		store.ListTexts(true, func(name, text string) { texts["list "+name] = db.OfClient(text, "$1") })
		n := 0
		for name, text := range texts {
			if strings.HasPrefix(text, "SET ") || strings.HasPrefix(text, "PRAGMA") || strings.Contains(text, "FROM sqlite_") || strings.Contains(text, "FROM dbstat") || strings.Contains(text, "FROM pragma_") {
				continue
			}
			n++
			plan, err := explainCitus(t, conn, fmt.Sprintf("p%d", n), text)
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, text)
				continue
			}
			if !reads.MatchString(text) && manyTasks(plan) && !writesEverywhere[name] {
				t.Errorf("%s writes to several shards:\n%s\n%s", name, text, plan)
			}
			if oneShard[name] && (!strings.Contains(plan, "Task Count: 1\n") || strings.Contains(plan, "Distributed Subplan")) {
				t.Errorf("%s is not sent to one shard:\n%s\n%s", name, text, plan)
			}
			if os.Getenv("TILL_SHOW_PLANS") != "" && manyTasks(plan) {
				t.Logf("several shards: %s: %.150s", name, text)
			}
		}
		if n < 400 {
			t.Errorf("only %d statements were planned", n)
		}
	})
}

var reads = regexp.MustCompile(`^(SELECT|WITH \w+ AS MATERIALIZED \(SELECT)`)

// writesEverywhere are the writes of several shards: what 'till migrate' and the first start
// of a release fill in.
var writesEverywhere = map[string]bool{"receipts.fillPaymentReceipts": true, "receipts.fillPayoutReceipts": true,
	"receipts.fillPaymentReceiptsOfOperators": true, "receipts.fillPayoutReceiptsOfOperators": true, "sums.armFills": true}

// Citus plans no INSERT into a table of the coordinator of a SELECT over all clients that has
// a parameter: 'till migrate' would fail on every distributed database. This runs without a
// cluster, too.
func TestWhatFillsInReceiptsHasNoParameter(t *testing.T) {
	t.Parallel()
	n := 0
	for _, q := range db.Statements() {
		text := q.Text(db.Citus)
		if !strings.HasPrefix(text, "INSERT INTO operator_receipts") || !writesEverywhere[q.Name] {
			continue
		}
		n++
		if strings.Contains(text, "$") {
			t.Errorf("%s has a parameter:\n%s", q.Name, text)
		}
	}
	if n != 4 {
		t.Errorf("%d such statements", n)
	}
}

func manyTasks(plan string) bool {
	return strings.Contains(plan, "Task Count: ") && !strings.Contains(plan, "Task Count: 1\n")
}

// explainCitus returns the plan of a statement for some client.
func explainCitus(t *testing.T, conn *pgx.Conn, name, text string) (string, error) {
	t.Helper()
	d, err := conn.Prepare(t.Context(), name, text)
	if err != nil {
		return "", err
	}
	values := make([]string, len(d.ParamOIDs))
	for i, oid := range d.ParamOIDs {
		switch oid {
		case pgtype.ByteaOID:
			values[i] = `'\x0190a0a0a0a0a0a0a0a0a0a0a0a0a0a0'`
		case pgtype.Int8OID, pgtype.Int4OID, pgtype.NumericOID:
			values[i] = "1"
		case pgtype.TextOID, pgtype.VarcharOID:
			values[i] = "'x'"
		default:
			values[i] = "NULL"
		}
	}
	query := "EXPLAIN EXECUTE " + name
	if len(values) > 0 {
		query += "(" + strings.Join(values, ", ") + ")"
	}
	rows, err := conn.Query(t.Context(), query, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return "", err
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return strings.Join(plan, "\n"), err
}

// Citus commits a node first and then the coordinator, unless it knows all tables that
// were written: then it prepares on the node.
func TestACommitOverCoordinatorAndNodeIsPrepared(t *testing.T) {
	t.Parallel()
	onCitus(t, func(t *testing.T, config store.Config) {
		c, err := pgx.ParseConfig(config.Path)
		if err != nil {
			t.Fatal(err)
		}
		var prepared int
		c.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
			if strings.Contains(n.Message, "PREPARE TRANSACTION") {
				prepared++
			}
		}
		conn, err := pgx.ConnectConfig(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		for _, query := range []string{"SET citus.log_remote_commands = on", "BEGIN",
			`UPDATE connections SET fingerprint = '' WHERE name = ''`, `UPDATE client_heads SET last_time = 0 WHERE client_id = '\x00'`, "COMMIT"} {
			if _, err := conn.Exec(t.Context(), query); err != nil {
				t.Fatal(err)
			}
		}
		if prepared == 0 {
			t.Error("the node was not prepared")
		}
	})
}

// A second run finds all tables in place, and a start picks the dialect by itself.
func TestDistributingAgainChangesNothing(t *testing.T) {
	t.Parallel()
	onCitus(t, func(t *testing.T, config store.Config) {
		s := storetest.Open(t, config)
		var said []string
		if err := s.Distribute(t.Context(), 4, func(command string) { said = append(said, command) }); err != nil {
			t.Fatal(err)
		}
		if len(said) != 1 || !strings.HasPrefix(said[0], "ALTER DATABASE") {
			t.Errorf("said %q", said)
		}
		storetest.Raw(t, config.Path, `CREATE TABLE stranger (client_id BYTEA PRIMARY KEY)`)
		if d := refusal(t, s.CheckSchema(t.Context())); !strings.Contains(d, "stranger") {
			t.Errorf("a table out of place is refused with %q", d)
		}
	})
}
