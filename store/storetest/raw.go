package storetest

import (
	"compress/gzip"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // the engine behind database/sql

	"till/store"
)

// OpenRaw opens a connection of its own to a store's file, past the store:
// the way in which a test breaks what the store would never write.
func OpenRaw(tb testing.TB, path string) *sql.DB {
	tb.Helper()
	q := url.Values{"_pragma": {"busy_timeout(5000)", "foreign_keys(ON)"}, "_txlock": {"immediate"}}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+q.Encode())
	if err != nil {
		tb.Fatal(err)
	}
	db.SetMaxOpenConns(1) // so that a PRAGMA holds for what follows
	tb.Cleanup(func() { db.Close() })
	return db
}

// Unzip returns what a compressed fixture holds.
func Unzip(tb testing.TB, path string) []byte {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// LoadFixture puts what a release has left into an empty database: BASE.db.gz, or
// BASE.sql.gz on PostgreSQL.
func LoadFixture(tb testing.TB, path, base string) {
	tb.Helper()
	if store.IsPostgres(path) {
		LoadDump(tb, path, Unzip(tb, base+".sql.gz"))
	} else if err := os.WriteFile(path, Unzip(tb, base+".db.gz"), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// Exec runs statements on a raw connection and fails the test if one fails.
func Exec(tb testing.TB, db *sql.DB, query string, args ...any) {
	tb.Helper()
	if _, err := db.ExecContext(tb.Context(), query, args...); err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
}

// Intruder tries a statement on a database, past the store, and takes it back
// whatever came of it. It returns how many rows were touched.
type Intruder func(query string) (int64, error)

// NewIntruder opens a connection of its own to the database of a store, of
// either engine. Statements are written in SQLite's words.
func NewIntruder(tb testing.TB, path string) Intruder {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context())
	if !store.IsPostgres(path) {
		db := OpenRaw(tb, path)
		return func(query string) (int64, error) {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return 0, err
			}
			defer tx.Rollback()
			r, err := tx.ExecContext(ctx, query)
			if err != nil {
				return 0, err
			}
			return r.RowsAffected()
		}
	}
	conn, err := pgx.Connect(ctx, path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close(ctx) })
	words := strings.NewReplacer("randomblob(16)", `decode(md5(random()::text), 'hex')`, "x'00'", `'\x00'::bytea`, "x'01'", `'\x01'::bytea`,
		"x'000102030405060708090a0b0c0d0e0f'", `'\x000102030405060708090a0b0c0d0e0f'::bytea`)
	return func(query string) (int64, error) {
		tx, err := conn.Begin(ctx)
		if err != nil {
			return 0, err
		}
		defer tx.Rollback(ctx)
		tag, err := tx.Exec(ctx, words.Replace(query))
		return tag.RowsAffected(), err
	}
}

// Raw runs a statement on a database of either engine, past the store, and
// keeps what it did. Statements are written in SQLite's words.
func Raw(tb testing.TB, path, query string) {
	tb.Helper()
	if !store.IsPostgres(path) {
		Exec(tb, OpenRaw(tb, path), query)
		return
	}
	ctx := tb.Context()
	conn, err := pgx.Connect(ctx, path)
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close(ctx)
	if citusServer() != "" { // or it refuses all that is about triggers
		if _, err := conn.Exec(ctx, "SET citus.enable_unsafe_triggers = on"); err != nil {
			tb.Fatal(err)
		}
	}
	blobs := regexp.MustCompile(`x'([0-9a-f]*)'`)
	if _, err := conn.Exec(ctx, blobs.ReplaceAllString(query, `'\x$1'::bytea`)); err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
}

// Refuse makes a database of either engine refuse the rows of a table for which
// a condition holds, until Allow. The event is INSERT or UPDATE.
func Refuse(tb testing.TB, path, name, event, table, condition string) {
	tb.Helper()
	query := "CREATE TRIGGER %s BEFORE %s ON %s WHEN %s BEGIN SELECT RAISE(ABORT, '%[1]s'); END"
	if store.IsPostgres(path) {
		query = "CREATE TRIGGER %s BEFORE %s ON %s FOR EACH ROW WHEN (%s) EXECUTE FUNCTION till_refuse('%[1]s')"
	}
	Raw(tb, path, fmt.Sprintf(query, name, event, table, condition))
}

// Allow ends a Refuse.
func Allow(tb testing.TB, path, name, table string) {
	tb.Helper()
	query := "DROP TRIGGER " + name
	if store.IsPostgres(path) {
		query += " ON " + table
	}
	Raw(tb, path, query)
}

// LoadDump runs a dump of the schema public in the schema that a URL names.
func LoadDump(tb testing.TB, url string, dump []byte) {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context())
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close(ctx)
	var schema string
	if err := conn.QueryRow(ctx, "SELECT current_schema()").Scan(&schema); err != nil {
		tb.Fatal(err)
	}
	text := strings.ReplaceAll(string(dump), "public.", schema+".")
	if _, err := conn.Exec(ctx, text, pgx.QueryExecModeSimpleProtocol); err != nil {
		tb.Fatal(err)
	}
}
