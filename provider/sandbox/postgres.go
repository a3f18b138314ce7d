package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	connections = 8
	writers     = 6 // so that a read never waits behind writes alone

	bookSchema    = "sandbox"
	maxIdentifier = 63               // PostgreSQL cuts a longer name
	createLock    = 0x73616e64626f78 // the advisory lock for creating a book
)

var postgresDialect = strings.NewReplacer(
	"?", "$",
	"INTEGER PRIMARY KEY", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
	"INTEGER", "BIGINT",
	"BLOB", "BYTEA",
	") STRICT, WITHOUT ROWID", ")",
	") STRICT", ")",
	"substr(phone, -4)", "right(phone, 4)",
)

func isPostgres(path string) bool {
	return strings.HasPrefix(path, "postgres://") || strings.HasPrefix(path, "postgresql://")
}

// openPostgres opens the book in a schema of its own. A lost connection fails its caller;
// the pool opens the next one by itself.
func openPostgres(ctx context.Context, url string, dedup bool) (_ *book, err error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	config, name, err := postgresConfig(url)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	b := &book{
		writer:     db,
		reader:     db,
		dialect:    postgresDialect,
		dedup:      dedup,
		writeSlots: make(chan struct{}, writers),
	}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if err := createSchema(ctx, db, name); err != nil {
		return nil, err
	}
	return b, b.prepare(ctx)
}

// postgresConfig returns how to connect to the book behind a URL, and the
// name of its schema.
func postgresConfig(url string) (*pgx.ConnConfig, string, error) {
	c, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, "", errors.New("the PostgreSQL URL cannot be read") // its text may hold a password
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 3 * time.Second
	}
	for name, value := range map[string]string{
		"application_name":                    "till-sandbox",
		"idle_in_transaction_session_timeout": "15s",
		"lock_timeout":                        "5s",
		"statement_timeout":                   "30s",
	} {
		if c.RuntimeParams[name] == "" {
			c.RuntimeParams[name] = value
		}
	}
	// A claim rereads a row that it waited for; stricter levels would fail.
	c.RuntimeParams["default_transaction_isolation"] = "read committed"
	name, err := schemaBeside(c.RuntimeParams["search_path"])
	c.RuntimeParams["search_path"] = pgx.Identifier{name}.Sanitize()
	return c, name, err
}

// schemaBeside returns the name of the book's schema for a search path. It contains the
// path's first name, so that two services in one database have two operators.
func schemaBeside(searchPath string) (string, error) {
	first, _, _ := strings.Cut(searchPath, ",")
	first = strings.TrimSpace(first)
	if quoted, ok := strings.CutPrefix(first, `"`); ok {
		first = strings.ReplaceAll(strings.TrimSuffix(quoted, `"`), `""`, `"`)
	} else {
		first = strings.ToLower(first) // as PostgreSQL reads it
	}
	if first == "" || first == "$user" {
		return bookSchema, nil
	}
	name := first + "_" + bookSchema
	if len(name) > maxIdentifier {
		// Truncated, it could be the service's own schema.
		return "", fmt.Errorf("the schema name %q is too long to have %q beside it", first, name)
	}
	return name, nil
}

// createSchema creates what is missing, all of it or nothing. Processes that start together
// do so one after the other: IF NOT EXISTS alone does not see what another has begun.
func createSchema(ctx context.Context, db *sql.DB, name string) error {
	// Looking first spares a running book the locks of CREATE INDEX.
	// The table handsets is made last. A read of pg_attribute, unlike to_regclass
	// alone, sees what was committed while this connection waited for the lock.
	const complete = `SELECT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('handsets') AND attname = 'held_until')`
	var there bool
	if err := db.QueryRowContext(ctx, complete).Scan(&there); err != nil || there {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1)`, createLock); err != nil {
		return err
	}
	// Another process may have done it during the wait.
	if err := tx.QueryRowContext(ctx, complete).Scan(&there); err != nil || there {
		return err
	}
	if _, err := tx.ExecContext(ctx, `CREATE SCHEMA IF NOT EXISTS `+pgx.Identifier{name}.Sanitize()); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, postgresDialect.Replace(schema)); err != nil {
		return err
	}
	for _, c := range laterColumns {
		if _, err := tx.ExecContext(ctx, postgresDialect.Replace(`ALTER TABLE requests ADD COLUMN IF NOT EXISTS `+c.name+` `+c.definition)); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, postgresDialect.Replace(laterSchema)); err != nil {
		return err
	}
	return tx.Commit()
}
