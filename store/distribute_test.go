package store_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"till"
	"till/store"
	"till/store/storetest"
)

// Whatever command ends a distribution, the next run goes on with it. The catalogue of Citus
// is a table here, and what only Citus can do is noted in it; the rest is PostgreSQL's.
// TestADistributionThatIsKilledGoesOn does the same on a cluster.
func TestWhatIsLeftOfADistribution(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		if e.Name != "postgres" { // a file has no nodes, and a cluster has its own catalogue
			continue
		}
		c := e.Config(t)
		s := storetest.Open(t, c)
		storetest.NewClient(t, s, till.Test)
		conn, err := pgx.Connect(t.Context(), c.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		must := func(query string, args ...any) {
			t.Helper()
			if _, err := conn.Exec(t.Context(), query, args...); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
		}
		must(`CREATE TABLE pg_dist_partition (logicalrelid regclass PRIMARY KEY, partmethod "char", repmodel "char")`)
		said := map[string]int{}
		for n := 0; ; n++ {
			left, err := store.NextCommands(t.Context(), s)
			if err != nil || n > 200 {
				t.Fatal(n, err)
			}
			if len(left) == 0 {
				break
			}
			command := left[0] // and then it is killed
			if said[command]++; said[command] > 1 {
				t.Fatalf("the next run begins with %s again", command)
			}
			runAsCitus(t, must, command)
		}
		var truncated, constraints, there int
		for _, table := range []string{"payments", "payouts"} { // which refer to what is copied
			if said["SELECT create_distributed_table('"+table+"', 'client_id', colocate_with => 'clients')"] == 0 {
				t.Errorf("%s was not distributed", table)
			}
		}
		for command := range said {
			truncated += strings.Count(command, "truncate_local")
			constraints += strings.Count(command, "ADD CONSTRAINT")
		}
		if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM clients`).Scan(&there); err != nil || there != 0 || truncated == 0 || constraints != 2 {
			t.Errorf("%d rows stayed on the coordinator after %d truncations, %d foreign keys: %v", there, truncated, constraints, err)
		}
	}
}

var (
	placed    = regexp.MustCompile(`^SELECT (create_distributed_table|create_reference_table|citus_add_local_table_to_metadata)\('(\w+)'`)
	truncated = regexp.MustCompile(`^SELECT truncate_local_data_after_distributing_table\('(\w+)'\)$`)
)

// runAsCitus runs a command, or notes what it does.
func runAsCitus(t *testing.T, must func(query string, args ...any), command string) {
	t.Helper()
	if m := placed.FindStringSubmatch(command); m != nil {
		how := map[string]string{"create_distributed_table": `'h', 's'`, "create_reference_table": `'n', 't'`, "citus_add_local_table_to_metadata": `'n', 's'`}[m[1]]
		must(fmt.Sprintf(`INSERT INTO pg_dist_partition VALUES ('%s', %s) ON CONFLICT (logicalrelid) DO UPDATE SET partmethod = excluded.partmethod, repmodel = excluded.repmodel`, m[2], how))
		if m[1] == "create_reference_table" { // Citus takes what refers to it to the coordinator
			must(`INSERT INTO pg_dist_partition SELECT conrelid, 'n', 's' FROM pg_constraint WHERE contype = 'f' AND confrelid = '` + m[2] + `'::regclass ON CONFLICT DO NOTHING`)
		}
	} else if m := truncated.FindStringSubmatch(command); m != nil {
		must(`TRUNCATE ` + m[1] + ` CASCADE`)
	} else {
		must(command)
	}
}

// An instance has readers and writers for each node that clients are on. The coordinator has
// placements too, of tables that are not distributed, and is not counted.
func TestTheCoordinatorIsNoNodeOfClients(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		if e.Name != "postgres" {
			continue
		}
		c := e.Config(t)
		storetest.Open(t, c)
		for _, query := range []string{`CREATE TABLE pg_dist_partition (logicalrelid regclass)`, `INSERT INTO pg_dist_partition VALUES ('clients')`,
			`CREATE TABLE pg_dist_shard (shardid BIGINT, logicalrelid regclass)`, `INSERT INTO pg_dist_shard VALUES (1, 'clients'), (2, 'clients'), (3, 'people')`,
			`CREATE TABLE pg_dist_placement (shardid BIGINT, groupid INTEGER)`, `INSERT INTO pg_dist_placement VALUES (1, 1), (2, 2), (3, 0)`} {
			storetest.Raw(t, c.Path, query)
		}
		s, err := store.Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if n := store.Writers(s); n != 2*6 {
			t.Errorf("%d writers for two nodes", n)
		}
	}
}
