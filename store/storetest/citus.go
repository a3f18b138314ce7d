package storetest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"till/internal/db"
	"till/store"
	"till/store/schema"
)

// A test on Citus gets a copy of a distributed database: the same copy on each node of
// the cluster that TILL_TEST_CITUS_URL names. The catalogue of Citus is copied with the
// tables, and nodes connect to the database of their own name.

// citusShards is into how many parts tests divide the clients.
const citusShards = 4

func citusServer() string { return os.Getenv("TILL_TEST_CITUS_URL") }

// citusNodes returns the URLs of the coordinator and of the other nodes, in no database.
var citusNodes = sync.OnceValues(func() (nodes []*url.URL, err error) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, citusServer())
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, `SELECT nodename, nodeport FROM pg_dist_node WHERE isactive ORDER BY groupid`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var host string
		var port int
		if err := rows.Scan(&host, &port); err != nil {
			return nil, err
		}
		u, err := url.Parse(citusServer())
		if err != nil {
			return nil, err
		}
		u.Host = net.JoinHostPort(host, strconv.Itoa(port))
		nodes = append(nodes, u)
	}
	return nodes, rows.Err()
})

// inCitus returns the URL of a node's database.
func inCitus(node *url.URL, database string) string {
	u := *node
	u.Path = "/" + database
	return u.String()
}

// onNodes runs statements on each node, in the database postgres, where no Citus is.
func onNodes(queries ...string) error {
	nodes, err := citusNodes()
	if err != nil {
		return err
	}
	for _, node := range nodes {
		for _, query := range queries {
			if err := execute(inCitus(node, "postgres"), query); err != nil {
				return fmt.Errorf("%s: %w", query, err)
			}
		}
	}
	return nil
}

// citusTemplate makes a distributed database with this program's schema, unless the
// cluster has one from another process, and returns its name. Once nobody may connect to
// it, it is complete.
var citusTemplate = sync.OnceValues(func() (string, error) {
	fingerprint, err := schema.Fingerprint(db.Citus)
	if err != nil {
		return "", err
	}
	name := "till_test_" + fingerprint
	nodes, err := citusNodes()
	if err != nil {
		return "", err
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, inCitus(nodes[0], "postgres"))
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx) // and with it the lock
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", templateLock); err != nil {
		return "", err
	}
	var there bool
	err = conn.QueryRow(ctx, "SELECT count(*) > 0 FROM pg_database WHERE datname = $1 AND NOT datallowconn", name).Scan(&there)
	if err != nil || there {
		return name, err
	}
	if err := onNodes("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)"); err != nil {
		return "", err
	}
	// In the order of the guide: the tables and functions are there before Citus is.
	if err := onNodes("CREATE DATABASE " + name); err != nil {
		return "", err
	}
	if err := migrate(store.Config{Path: inCitus(nodes[0], name)}); err != nil {
		return "", err
	}
	if err := joinNodes(name); err != nil {
		return "", err
	}
	if err := distribute(store.Config{Path: inCitus(nodes[0], name), PlainSQL: true}); err != nil {
		return "", err
	}
	// The coordinator comes last: it says that all are complete.
	for i := len(nodes) - 1; i >= 0; i-- {
		for _, query := range []string{"ALTER DATABASE " + name + " WITH ALLOW_CONNECTIONS false",
			"SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = '" + name + "'"} {
			if err := execute(inCitus(nodes[i], "postgres"), query); err != nil {
				return "", err
			}
		}
	}
	return name, nil
})

// makeCluster makes a database of a name on each node, without tables, in which the
// coordinator knows the others.
func makeCluster(name string) error {
	if err := onNodes("CREATE DATABASE " + name); err != nil {
		return err
	}
	return joinNodes(name)
}

// joinNodes adds Citus to a database that is on each node, and names the nodes.
func joinNodes(name string) error {
	nodes, err := citusNodes()
	if err != nil {
		return err
	}
	for _, node := range nodes {
		if err := execute(inCitus(node, name), "CREATE EXTENSION citus"); err != nil {
			return err
		}
	}
	for i, node := range nodes {
		query := fmt.Sprintf("SELECT citus_add_node('%s', %s)", node.Hostname(), node.Port())
		if i == 0 {
			query = fmt.Sprintf("SELECT citus_set_coordinator_host('%s', %s)", node.Hostname(), node.Port())
		}
		if err := execute(inCitus(nodes[0], name), query); err != nil {
			return err
		}
	}
	return nil
}

func distribute(c store.Config) error {
	if err := migrate(c); err != nil {
		return err
	}
	s, err := store.Open(context.Background(), c)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Distribute(context.Background(), citusShards, func(string) {})
}

// newCitus makes a distributed database, dropped on each node when the test has ended,
// and returns its URL.
func newCitus(tb testing.TB) string {
	tb.Helper()
	copied, err := citusTemplate()
	if err != nil {
		tb.Fatalf("the template of distributed databases: %v", err)
	}
	nodes, err := citusNodes()
	if err != nil {
		tb.Fatal(err)
	}
	name := newName()
	dropAtEnd(tb, name)
	if err := onNodes("CREATE DATABASE "+name+" TEMPLATE "+copied+" STRATEGY FILE_COPY",
		"ALTER DATABASE "+name+" SET lock_timeout = '5s'"); err != nil { // a copy has no settings
		tb.Fatal(err)
	}
	return inCitus(nodes[0], name)
}

// SetOnNodes changes a setting of a distributed database on each node, for connections that
// are made from now on. Those of a session do not reach the nodes.
func SetOnNodes(tb testing.TB, database, setting string) {
	tb.Helper()
	u, err := url.Parse(database)
	if err == nil {
		err = onNodes("ALTER DATABASE " + strings.TrimPrefix(u.Path, "/") + " SET " + setting)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// newEmptyCitus makes a database without tables on each node, dropped when the test has
// ended, and returns its URL.
func newEmptyCitus(tb testing.TB) string {
	tb.Helper()
	name := newName()
	dropAtEnd(tb, name)
	if err := makeCluster(name); err != nil {
		tb.Fatal(err)
	}
	nodes, err := citusNodes()
	if err != nil {
		tb.Fatal(err)
	}
	return inCitus(nodes[0], name)
}

func dropAtEnd(tb testing.TB, name string) {
	tb.Cleanup(func() {
		err := onNodes("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)")
		for range 20 { // a process of Citus may have it open just now
			if err == nil {
				return
			}
			time.Sleep(500 * time.Millisecond)
			err = onNodes("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)")
		}
		tb.Error(err)
	})
}

// Distribute distributes a database that was Empty, if the engine is Citus.
func (e Engine) Distribute(tb testing.TB, s *store.Store) error {
	tb.Helper()
	if e.Name != "citus" {
		return nil
	}
	return s.Distribute(context.WithoutCancel(tb.Context()), citusShards, func(string) {})
}
