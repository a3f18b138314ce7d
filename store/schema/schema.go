package schema

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
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

var insertFlagged = db.Define(db.SQL{Name: "migrate.insertFlagged",
	SQLite: `INSERT INTO schema_migrations (version, checksum, applied_at, rolling) VALUES ($1, $2, $3, $4)`})

var selectRolling = db.Define(db.SQL{Name: "migrate.selectRolling",
	SQLite: `SELECT version FROM schema_migrations WHERE rolling = 1`})

var countDistributed = db.Define(db.SQL{Name: "migrate.countDistributed",
	SQLite:   `SELECT 0`,
	Postgres: `SELECT count(*) FROM pg_dist_partition WHERE logicalrelid::oid IN (to_regclass('clients')::oid, to_regclass('payments')::oid)`})

var selectMigrations = db.Define(db.SQL{Name: "migrate.selectMigrations",
	SQLite: `SELECT version, checksum FROM schema_migrations`})

var selectNewest = db.Define(db.SQL{Name: "migrate.selectNewest",
	SQLite: `SELECT max(version) FROM schema_migrations WHERE version < 'a'`}) // without the rows of levels

// createTable is the script that makes the table of migrations.
var createTable = map[string]string{
	"sqlite":   `CREATE TABLE schema_migrations (version TEXT PRIMARY KEY, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL)`,
	"postgres": `CREATE TABLE schema_migrations (version TEXT PRIMARY KEY, checksum TEXT NOT NULL, applied_at BIGINT NOT NULL)`,
}

// The texts, in a folder per engine. A migration is VERSION.sql, or VERSION.1.sql and
// VERSION.2.sql.
//
//go:embed sqlite/*.sql postgres/*.sql
var files embed.FS

// folder returns the folder of a dialect.
func folder(d db.Dialect) string {
	if d == db.SQLite {
		return "sqlite"
	}
	return "postgres"
}

// migration is one forward step of the schema.
type migration struct {
	version string // "0001_init"
	parts   []string
}

// checksum covers the parts, joined by a zero byte.
func (m *migration) checksum() string {
	sum := sha256.Sum256([]byte(strings.Join(m.parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// firstFlagged is the migration that adds the flag. It and all later ones say in their
// first line what they mean to a program that does not know them:
//
//	-- rolling      it adds only: the release before runs on
//	-- stop: WHY    that release must not run on the new schema
//
// Earlier ones count as stop, also 0052, which says rolling: a program that does not know
// them does not know the flag either, and refuses every unknown migration.
const firstFlagged = "0053_rolling"

// rolling reports whether a program that does not know the migration may run on it.
func (m *migration) rolling() bool {
	first, _, _ := strings.Cut(m.parts[0], "\n")
	return first == "-- rolling"
}

func (m *migration) check(sum string) error {
	if sum != m.checksum() {
		return &Error{"migration " + m.version + " was applied with another text than this program has"}
	}
	return nil
}

// migrations returns those of a dialect, in order.
func migrations(d db.Dialect) (all []migration, err error) {
	entries, err := files.ReadDir(folder(d)) // sorted by name
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := files.ReadFile(path.Join(folder(d), e.Name()))
		if err != nil {
			return nil, err
		}
		version, _, _ := strings.Cut(e.Name(), ".")
		if n := len(all); n == 0 || all[n-1].version != version {
			all = append(all, migration{version: version})
		}
		last := &all[len(all)-1]
		last.parts = append(last.parts, string(text))
	}
	return all, nil
}

// Error says that the database's schema is not this program's.
type Error struct{ Detail string }

func (e *Error) Error() string { return e.Detail }

// Fingerprint names the schema that this program wants: it is another one as
// soon as a migration is added.
func Fingerprint(d db.Dialect) (string, error) {
	all, err := migrations(d)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, m := range all {
		fmt.Fprintln(sum, m.version, m.checksum())
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// Number returns the number of the newest migration: 38 of 0038_profiles.
func Number(d db.Dialect) (n int) {
	all, err := migrations(d)
	if err != nil || len(all) == 0 {
		return 0
	}
	fmt.Sscanf(all[len(all)-1].version, "%d", &n)
	return n
}

// Migrate brings the schema up to this program's. Each migration is one transaction. A
// migration that was applied with another text is an error, because then nobody knows
// what the database looks like.
//
// If there is nothing to apply, it only reads. A lock would need all nodes of a distributed
// database, and an instance must be able to start while one of them is unreachable.
func Migrate(ctx context.Context, d *db.DB) (applied []string, err error) {
	distributed, err := IsDistributed(ctx, d)
	if err != nil {
		return nil, err
	}
	if distributed && d.Dialect() != db.Citus {
		return nil, errDistributed
	}
	pending, err := pendingMigrations(ctx, d)
	if err != nil {
		return nil, err
	}
	if len(pending) > 0 {
		if err := refuseUnrecorded(ctx, d); err != nil {
			return nil, err
		}
	}
	for _, m := range pending {
		ran := false
		err := d.Update(ctx, db.Foreground, func(tx *db.Tx) (err error) {
			if distributed {
				return m.applyOnCitus(ctx, tx, &ran)
			}
			ran, err = m.apply(ctx, tx)
			return err
		})
		if err != nil {
			return applied, err
		}
		if ran {
			applied = append(applied, m.version)
		}
	}
	return applied, Check(ctx, d)
}

// pendingMigrations returns those that the database lacks, in order.
func pendingMigrations(ctx context.Context, d *db.DB) (pending []migration, err error) {
	all, err := migrations(d.Dialect())
	if err != nil {
		return nil, err
	}
	err = d.View(ctx, func(tx *db.Tx) error {
		pending = nil
		var n int
		if _, err := tx.QueryRow(ctx, tableExists, []any{"schema_migrations"}, &n); err != nil {
			return err
		}
		have := map[string]string{}
		if n > 0 {
			if have, err = appliedMigrations(ctx, tx); err != nil {
				return err
			}
		}
		for _, m := range all {
			sum, applied := have[m.version]
			if !applied {
				pending = append(pending, m)
			} else if err := m.check(sum); err != nil {
				return err
			}
		}
		return nil
	})
	return pending, err
}

// apply runs the migration unless it was applied before, and reports whether it ran.
func (m *migration) apply(ctx context.Context, tx *db.Tx) (bool, error) {
	if err := lock(ctx, tx); err != nil {
		return false, err
	}
	var sum string
	found, err := tx.QueryRow(ctx, selectMigration, []any{m.version}, &sum)
	if err != nil {
		return false, err
	}
	if found {
		return false, m.check(sum)
	}
	for _, text := range m.parts {
		if err := tx.Script(ctx, text); err != nil {
			return false, fmt.Errorf("migration %s: %w", m.version, err)
		}
	}
	if m.version < firstFlagged { // its table has no flag yet
		_, err = tx.Exec(ctx, insertMigration, m.version, m.checksum(), int64(tx.Now()))
		return true, err
	}
	rolling := 0
	if m.rolling() {
		rolling = 1
	}
	_, err = tx.Exec(ctx, insertFlagged, m.version, m.checksum(), int64(tx.Now()), rolling)
	return true, err
}

// lock makes the table of migrations if it is the first time, and keeps other
// instances from migrating until the commit.
func lock(ctx context.Context, tx *db.Tx) error {
	var n int
	if _, err := tx.QueryRow(ctx, tableExists, []any{"schema_migrations"}, &n); err != nil {
		return err
	}
	if n == 0 {
		err := tx.Script(ctx, createTable[folder(tx.Dialect())])
		if errors.Is(err, db.ErrConstraint) {
			return fmt.Errorf("%w: another instance is making the schema", db.ErrRetry)
		}
		if err != nil {
			return err
		}
	}
	if tx.Dialect() == db.SQLite { // its write transaction keeps others out
		return nil
	}
	return tx.Script(ctx, `LOCK TABLE schema_migrations IN EXCLUSIVE MODE`)
}

// checkUnknown accepts migrations that this program does not know, if all of them are
// rolling: then a newer release runs beside this one, or did.
func checkUnknown(ctx context.Context, tx *db.Tx, unknown map[string]string) error {
	if len(unknown) == 0 {
		return nil
	}
	rolling := map[string]bool{}
	err := tx.Query(ctx, selectRolling, nil, func(r db.Row) error {
		var version string
		err := r.Scan(&version)
		rolling[version] = true
		return err
	})
	if err != nil {
		return err
	}
	for v := range unknown {
		if known, err := checkLevel(v); known || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		if !rolling[v] {
			return &Error{"the database has migration " + v + ", which this program does not know: it is older than the database"}
		}
	}
	return nil
}

// Check returns nil if the schema is this program's, or that of a newer release that this
// program may run beside. Otherwise it returns an Error that says what to do.
func Check(ctx context.Context, d *db.DB) error {
	want, err := migrations(d.Dialect())
	if err != nil {
		return err
	}
	return d.View(ctx, func(tx *db.Tx) error {
		if err := checkPlaces(ctx, tx); err != nil {
			return err
		}
		have, err := appliedMigrations(ctx, tx)
		if err != nil {
			return err
		}
		for _, m := range want {
			sum, ok := have[m.version]
			if !ok {
				return &Error{"the database lacks migration " + m.version + ": run 'till migrate'"}
			}
			if err := m.check(sum); err != nil {
				return err
			}
			delete(have, m.version)
		}
		return checkUnknown(ctx, tx, have)
	})
}

// appliedMigrations returns the checksums of what was applied, by version.
func appliedMigrations(ctx context.Context, tx *db.Tx) (map[string]string, error) {
	var n int
	if _, err := tx.QueryRow(ctx, tableExists, []any{"schema_migrations"}, &n); err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, &Error{"the database is empty: run 'till migrate', or start 'till serve' once"}
	}
	have := map[string]string{}
	err := tx.Query(ctx, selectMigrations, nil, func(r db.Row) error {
		var version, sum string
		err := r.Scan(&version, &sum)
		have[version] = sum
		return err
	})
	return have, err
}

// Version returns the newest migration that was applied.
func Version(ctx context.Context, d *db.DB) (version string, err error) {
	err = d.View(ctx, func(tx *db.Tx) error {
		_, err := tx.QueryRow(ctx, selectNewest, nil, &version)
		return err
	})
	return version, err
}
