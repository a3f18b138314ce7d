package storetest

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"till"
	"till/internal/db"
	"till/store"
	"till/store/schema"
)

// Running all migrations takes longer than most tests. So they run once, and
// each test gets a copy: of a file on SQLite, of a database on PostgreSQL.

// migratedFile returns the bytes of an empty file with this program's schema.
var migratedFile = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "till-template")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "till.db")
	if err := migrate(store.Config{Path: path}); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

func migrate(c store.Config) error {
	s, err := store.Open(context.Background(), c)
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.Migrate(context.Background())
	return err
}

func newFile(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "till.db")
	makeFile(tb, path)
	return path
}

// NewFile makes a file with this program's schema where a test is about to start a
// service, unless there is a file. The folder is made too.
func NewFile(tb testing.TB, path string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		tb.Fatal(err)
	}
	makeFile(tb, path)
}

// makeFile makes a file with this program's schema, unless there is a file.
func makeFile(tb testing.TB, path string) {
	tb.Helper()
	b, err := migratedFile()
	if err != nil {
		tb.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return
	}
	if err == nil {
		_, err = f.Write(b)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		tb.Fatal(err)
	}
}

const (
	templateSchema = "till"
	templateLock   = 4_617_031 // an advisory lock: one process makes the template
)

// template makes a database with this program's schema, unless the server has one
// from another process, and returns its name. While it is copied nobody can
// connect to it, so nobody does: once it has its name, it is complete.
var template = sync.OnceValues(func() (string, error) {
	fingerprint, err := schema.Fingerprint(db.Postgres)
	if err != nil {
		return "", err
	}
	name := "till_test_" + fingerprint
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, testServer())
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx) // and with it the lock
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", templateLock); err != nil {
		return "", err
	}
	var there bool
	err = conn.QueryRow(ctx, "SELECT count(*) > 0 FROM pg_database WHERE datname = $1", name).Scan(&there)
	if err != nil || there {
		return name, err
	}
	unfinished := name + "_unfinished"
	for _, query := range []string{"DROP DATABASE IF EXISTS " + unfinished, "CREATE DATABASE " + unfinished} {
		if _, err := conn.Exec(ctx, query); err != nil {
			return "", err
		}
	}
	url, err := inDatabase(unfinished, templateSchema)
	if err != nil {
		return "", err
	}
	if err := execute(url, "CREATE SCHEMA "+templateSchema); err != nil {
		return "", err
	}
	if err := migrate(store.Config{Path: url}); err != nil {
		return "", err
	}
	_, err = conn.Exec(ctx, "ALTER DATABASE "+unfinished+" RENAME TO "+name)
	return name, err
})

// newDatabase makes a database with this program's schema, dropped when the
// test has ended, and returns its URL.
func newDatabase(tb testing.TB) string {
	tb.Helper()
	copied, err := template()
	if err != nil {
		tb.Fatalf("the template of databases: %v", err)
	}
	name := newName()
	// Files are copied as they are: the other way writes each page to the log too.
	makeUntil(tb, "CREATE DATABASE "+name+" TEMPLATE "+copied+" STRATEGY FILE_COPY", "DROP DATABASE "+name+" WITH (FORCE)")
	url, err := inDatabase(name, templateSchema)
	if err != nil {
		tb.Fatal(err)
	}
	return url
}

// newSchema makes an empty schema, dropped when the test has ended, and
// returns a URL that uses it.
func newSchema(tb testing.TB) string {
	tb.Helper()
	name := newName()
	makeUntil(tb, "CREATE SCHEMA "+name, "DROP SCHEMA "+name+" CASCADE")
	url, err := inDatabase("", name)
	if err != nil {
		tb.Fatal(err)
	}
	return url
}

func testServer() string { return os.Getenv("TILL_TEST_POSTGRES_URL") }

func newName() string {
	return "t_" + strings.ReplaceAll(till.NewID(till.TimeOf(time.Now())).String(), "-", "")
}

// makeUntil runs a statement on the server now, and another when the test has
// ended.
func makeUntil(tb testing.TB, now, end string) {
	tb.Helper()
	if err := execute(testServer(), now); err != nil {
		tb.Fatalf("%s: %v", now, err)
	}
	tb.Cleanup(func() {
		if err := execute(testServer(), end); err != nil {
			tb.Errorf("%s: %v", end, err)
		}
	})
}

func execute(database, query string) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, query)
	return err
}

// inDatabase returns the URL of a schema in a database, "" for the server's own.
func inDatabase(database, schema string) (string, error) {
	u, err := url.Parse(testServer())
	if err != nil {
		return "", err
	}
	if database != "" {
		u.Path = "/" + database
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String(), nil
}
