package store

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"

	"till/internal/db"
)

var tableExists = db.Define(db.SQL{Name: "migrate.tableExists",
	SQLite:   `SELECT count(*) FROM sqlite_master WHERE name = $1`,
	Postgres: `SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'p') AND relname = $1 AND pg_table_is_visible(oid)`})

var selectMigration = db.Define(db.SQL{Name: "migrate.selectMigration",
	SQLite: `SELECT checksum FROM schema_migrations WHERE version = $1`})

var insertMigration = db.Define(db.SQL{Name: "migrate.insertMigration",
	SQLite: `INSERT INTO schema_migrations (version, checksum, applied_at) VALUES ($1, $2, $3)`})

var countDistributed = db.Define(db.SQL{Name: "migrate.countDistributed",
	SQLite:   `SELECT 0`,
	Postgres: `SELECT count(*) FROM pg_dist_partition WHERE logicalrel::oid = to_regclass('payments')::oid`})

var selectMigrations = db.Define(db.SQL{Name: "migrate.selectMigrations",
	SQLite: `SELECT version, checksum FROM schema_migrations`})

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one forward step of the schema. Its texts are the common file
// and, where there is one, the engine's own.
type migration struct {
	version  string // "0001_init"
	texts    []string
	checksum string
}

// SchemaError says that the database's schema is not this program's.
type SchemaError struct{ Detail string }

func (e *SchemaError) Error() string { return e.Detail }

// Migrate brings the schema up to this program's. Each step is one
// transaction; a text that was applied before and has changed since is
// refused, because then nobody knows what the database looks like.
func (s *Store) Migrate(ctx context.Context) (applied []string, err error) {
	all, err := migrations(s.db.Dialect())
	if err != nil {
		return nil, err
	}
	if err := s.View(ctx, func(tx *Tx) error { return tx.checkWhole(ctx) }); err != nil {
		return nil, err
	}
	for _, m := range all {
		ran := false
		err := s.Update(ctx, func(tx *Tx) error {
			ran = false
			if err := tx.lockMigrations(ctx); err != nil {
				return err
			}
			var sum string
			found, err := tx.db.QueryRow(ctx, selectMigration, []any{m.version}, &sum)
			if err != nil {
				return err
			}
			if found {
				return m.check(sum)
			}
			ran = true
			for _, text := range m.texts {
				if err := tx.db.Script(ctx, text); err != nil {
					return fmt.Errorf("migration %s: %w", m.version, err)
				}
			}
			_, err = tx.db.Exec(ctx, insertMigration,
				m.version, m.checksum, int64(tx.Now()))
			return err
		})
		if err != nil {
			return applied, err
		}
		if ran {
			applied = append(applied, m.version)
		}
	}
	return applied, s.CheckSchema(ctx)
}

// lockMigrations makes the table of migrations if it is the first time, and
// keeps other instances from migrating until the commit.
func (tx *Tx) lockMigrations(ctx context.Context) error {
	var n int
	if _, err := tx.db.QueryRow(ctx, tableExists, []any{"schema_migrations"}, &n); err != nil {
		return err
	}
	if n == 0 {
		err := tx.db.Script(ctx, translate(tx.db.Dialect(), `CREATE TABLE schema_migrations (version TEXT PRIMARY KEY, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL)`))
		if errors.Is(err, db.ErrConstraint) {
			return fmt.Errorf("%w: another instance is making the schema", db.ErrRetry)
		}
		if err != nil {
			return err
		}
	}
	if tx.db.Dialect() == db.SQLite { // the transaction does
		return nil
	}
	return tx.db.Script(ctx, `LOCK TABLE schema_migrations IN EXCLUSIVE MODE`)
}

// checkWhole refuses a database whose payments Citus has spread over nodes. What
// this program sends in one piece, without a BEGIN, is one transaction to PostgreSQL;
// there it is one for each statement, and half of a create could be kept.
func (tx *Tx) checkWhole(ctx context.Context) error {
	var n int
	if _, err := tx.db.QueryRow(ctx, tableExists, []any{"pg_dist_partition"}, &n); err != nil || n == 0 {
		return err
	}
	_, err := tx.db.QueryRow(ctx, countDistributed, nil, &n)
	if err == nil && n > 0 {
		err = &SchemaError{"the table payments is distributed by Citus, which is not supported yet: transactions are not whole there (docs/guide/growing.md)"}
	}
	return err
}

// CheckSchema answers nil if the schema is exactly this program's, and a
// SchemaError that says what to do if it is not.
func (s *Store) CheckSchema(ctx context.Context) error {
	want, err := migrations(s.db.Dialect())
	if err != nil {
		return err
	}
	return s.View(ctx, func(tx *Tx) error {
		if err := tx.checkWhole(ctx); err != nil {
			return err
		}
		var n int
		if _, err := tx.db.QueryRow(ctx, tableExists, []any{"schema_migrations"}, &n); err != nil {
			return err
		}
		if n == 0 {
			return &SchemaError{"the database is empty: run 'till migrate', or start 'till serve' once"}
		}
		have := map[string]string{}
		err := tx.db.Query(ctx, selectMigrations, nil, func(r db.Row) error {
			var version, sum string
			err := r.Scan(&version, &sum)
			have[version] = sum
			return err
		})
		if err != nil {
			return err
		}
		for _, m := range want {
			sum, ok := have[m.version]
			if !ok {
				return &SchemaError{"the database lacks migration " + m.version + ": run 'till migrate'"}
			}
			if err := m.check(sum); err != nil {
				return err
			}
			delete(have, m.version)
		}
		for v := range have {
			return &SchemaError{"the database has migration " + v + ", which this program does not know: it is older than the database"}
		}
		return nil
	})
}

func (m *migration) check(sum string) error {
	if sum != m.checksum {
		return &SchemaError{"migration " + m.version + " was applied with another text than this program has"}
	}
	return nil
}

// engineNames are the endings of the files for one engine only.
var engineNames = map[db.Dialect]string{db.SQLite: "sqlite", db.Postgres: "postgres", db.Citus: "postgres"}

// translate turns the common text into the engine's words.
func translate(d db.Dialect, text string) string {
	if d == db.SQLite {
		return text
	}
	return strings.NewReplacer(
		") STRICT, WITHOUT ROWID", ")", ") STRICT", ")",
		"BLOB ", "BYTEA ", "BLOB,", "BYTEA,", "BLOB;", "BYTEA;", "INTEGER", "BIGINT",
	).Replace(text)
}

// migrations reads the embedded files of an engine, in order.
func migrations(d db.Dialect) ([]migration, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	byVersion := map[string]*migration{}
	var order []string
	for _, name := range names {
		version, own, _ := strings.Cut(strings.TrimSuffix(path.Base(name), ".sql"), ".")
		if own != "" && own != engineNames[d] {
			continue
		}
		b, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		m := byVersion[version]
		if m == nil {
			m = &migration{version: version}
			byVersion[version] = m
			order = append(order, version)
		}
		if own == "" { // the common text goes first
			m.texts = append([]string{translate(d, string(b))}, m.texts...)
		} else {
			m.texts = append(m.texts, string(b))
		}
	}
	out := make([]migration, 0, len(order))
	for _, v := range order {
		m := byVersion[v]
		sum := sha256.Sum256([]byte(strings.Join(m.texts, "\x00")))
		m.checksum = hex.EncodeToString(sum[:])
		out = append(out, *m)
	}
	return out, nil
}
