package schema

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"till/internal/db"
)

// Level is the highest level that this program reads and writes. A form that the release
// before cannot read (a status, an event kind, a body version, a generation of sealed
// bytes) gets the next one:
//
//	1  what all releases before the level wrote
//	2  bytes that a later generation of the installation's secret sealed
//	3  money in suspense that was given back, and receipts of aggregators by issuer
//	4  refunds
//	5  checkouts, their asks and their events
const Level = 5

// levelPrefix begins the row that a raised level leaves among the migrations. The row is
// not rolling. So a program that does not know the level stops, and does not start, as
// with any migration that it must not run on; releases from before the level do so too.
const levelPrefix = "level_"

var raiseLevel = db.Define(db.SQL{Name: "migrate.raiseLevel",
	SQLite: `UPDATE installation SET level = $1 WHERE one = 1 AND level < $2`})

// RaiseLevel lets all programs write what a level brings, and keeps those out that do not
// know it. It reports false if the level is that high already.
func RaiseLevel(ctx context.Context, tx *db.Tx, level int) (bool, error) {
	if n, err := tx.Exec(ctx, raiseLevel, level, level); err != nil || n == 0 {
		return false, err
	}
	for l := 2; l <= level; l++ {
		version, sum := levelPrefix+strconv.Itoa(l), ""
		found, err := tx.QueryRow(ctx, selectMigration, []any{version}, &sum)
		if err != nil {
			return false, err
		}
		if found {
			continue
		}
		if _, err := tx.Exec(ctx, insertFlagged, version, "level", int64(tx.Now()), 0); err != nil {
			return false, err
		}
	}
	return true, nil
}

// checkLevel reports whether a version is the row of a level that this program knows. A
// higher level is an error.
func checkLevel(version string) (known bool, err error) {
	text, is := strings.CutPrefix(version, levelPrefix)
	if !is {
		return false, nil
	}
	level, err := strconv.Atoi(text)
	if err != nil || level > Level {
		return false, &Error{fmt.Sprintf("the database was raised to level %s, and this program knows level %d: it is older than the database", text, Level)}
	}
	return true, nil
}

// PendingStop returns the migrations that Migrate would apply and on which the release
// before must not run. An empty database has none.
func PendingStop(ctx context.Context, d *db.DB) (versions []string, err error) {
	all, err := migrations(d.Dialect())
	if err != nil {
		return nil, err
	}
	err = d.View(ctx, func(tx *db.Tx) error {
		versions = nil
		var n int
		if _, err := tx.QueryRow(ctx, tableExists, []any{"schema_migrations"}, &n); err != nil || n == 0 {
			return err
		}
		have, err := appliedMigrations(ctx, tx)
		if err != nil {
			return err
		}
		for _, m := range all {
			// Programs from before the flag stop at any migration.
			if _, applied := have[m.version]; !applied && (m.version <= firstFlagged || !m.rolling()) {
				versions = append(versions, m.version)
			}
		}
		return nil
	})
	return versions, err
}

var selectHintSessions = db.Define(db.SQL{Name: "migrate.selectHintSessions",
	SQLite:   `SELECT 0`,
	Postgres: `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = left('till hints ' || current_schema(), 63)`})

// refuseUnrecorded refuses to migrate a database beside instances of a release from before
// instances were recorded. They do not check the schema while they run, and would go on
// with one that they do not know. Each keeps a session for hints, which has a name.
func refuseUnrecorded(ctx context.Context, d *db.DB) error {
	if known, err := HasInstances(ctx, d); err != nil || known {
		return err
	}
	n := 0
	err := d.View(ctx, func(tx *db.Tx) error {
		_, err := tx.QueryRow(ctx, selectHintSessions, nil, &n)
		return err
	})
	if err == nil && n > 0 {
		return &Error{"instances of an old release run on the database, which would not notice a migration and go on: stop them all, then try again; " +
			"their sessions have the name 'till hints' in pg_stat_activity"}
	}
	return err
}

var selectNewestStop = db.Define(db.SQL{Name: "migrate.selectNewestStop",
	SQLite: `SELECT max(version) FROM schema_migrations WHERE version < 'a' AND (rolling = 0 OR version <= $1)`})

// NewestStop returns the newest migration on which no program can run that does not know
// it. Programs that know it run on all that was applied later.
func NewestStop(ctx context.Context, tx *db.Tx) (version string, err error) {
	_, err = tx.QueryRow(ctx, selectNewestStop, []any{firstFlagged}, &version)
	return version, err
}

// HasInstances reports whether the database has a table of instances yet.
func HasInstances(ctx context.Context, d *db.DB) (bool, error) {
	n := 0
	err := d.View(ctx, func(tx *db.Tx) error {
		_, err := tx.QueryRow(ctx, tableExists, []any{"instances"}, &n)
		return err
	})
	return n > 0, err
}
