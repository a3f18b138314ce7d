package sandbox

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"till"
)

// engine is one kind of database that a book can live in.
type engine struct {
	name    string
	newBook func(testing.TB) string // the path of a book that does not exist yet
}

// The name of the file has what an address would need to escape.
var sqliteEngine = engine{"sqlite", func(t testing.TB) string { return filepath.Join(t.TempDir(), "a book?.db") }}

// engines returns what every test runs on: SQLite always, and the PostgreSQL
// server that TILL_TEST_POSTGRES_URL names, in a schema of its own per book.
func engines() []engine {
	all := []engine{sqliteEngine}
	if server := postgresServer(); server != "" {
		all = append(all, engine{"postgres", func(t testing.TB) string { return newSchema(t, server) }})
	}
	return all
}

// onEngines runs f, in parallel, on each engine.
func onEngines(t *testing.T, f func(t *testing.T, e engine)) {
	t.Helper()
	t.Parallel()
	for _, e := range engines() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			f(t, e)
		})
	}
}

func postgresServer() string { return os.Getenv("TILL_TEST_POSTGRES_URL") }

// admin is one small pool for all tests: it drops what they leave behind.
var admin = sync.OnceValues(func() (*sql.DB, error) {
	db, err := sql.Open("pgx", postgresServer())
	if err == nil {
		db.SetMaxOpenConns(2)
	}
	return db, err
})

// newSchema returns the URL of a schema whose sibling the book makes. Both
// are dropped when the test has ended.
func newSchema(t testing.TB, server string) string {
	t.Helper()
	db, err := admin()
	if err != nil {
		t.Fatal(err)
	}
	name := "t_" + strings.ReplaceAll(till.NewID(till.TimeOf(time.Now())).String(), "-", "")
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if _, err := db.ExecContext(ctx, `DROP SCHEMA IF EXISTS `+name+`, `+name+`_sandbox CASCADE`); err != nil {
			t.Errorf("drop the schemas: %v", err)
		}
	})
	return withParam(t, server, "search_path", name)
}

// withParam returns the URL with a parameter set.
func withParam(t testing.TB, address, name, value string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}
