package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"till/internal/db"
)

var checkTable = db.Define(db.SQL{Name: "health.checkTable",
	SQLite: `SELECT integrity_check FROM pragma_integrity_check($1)`})

var selectTables = db.Define(db.SQL{Name: "health.selectTables",
	SQLite: `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`})

// ServerHealth is how a PostgreSQL server stands, as far as it can lose an
// acknowledged payment or stop the service.
type ServerHealth struct {
	Version           int // the major one
	FSync             bool
	FullPageWrites    bool
	SynchronousCommit string
	StandbyNames      string // synchronous_standby_names
	ReadOnly          bool   // a standby, or set to read only
	Connections       int    // in use
	MaxConnections    int
	ClockOffset       time.Duration // the server's clock minus ours

	Standbys     int // that are connected
	Synchronous  int // of them
	HiddenStates int // of those whose state this user may not see
}

// ExamineServer looks at the server behind a URL. It changes nothing and
// needs no schema.
func ExamineServer(ctx context.Context, database string) (*ServerHealth, error) {
	c, err := pgx.ParseConfig(database)
	if err != nil {
		return nil, errors.New("the PostgreSQL URL cannot be read") // its text may hold a password
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 5 * time.Second
	}
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))

	h := &ServerHealth{}
	sent := time.Now()
	var clock time.Time
	if err := conn.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&clock); err != nil {
		return nil, err
	}
	h.ClockOffset = clock.Sub(sent.Add(time.Since(sent) / 2))
	err = conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int / 10000, current_setting('fsync')::bool,
			current_setting('full_page_writes')::bool, current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
			pg_is_in_recovery() OR current_setting('transaction_read_only')::bool,
			(SELECT count(*) FROM pg_stat_activity WHERE datname IS NOT NULL)::int, current_setting('max_connections')::int`).
		Scan(&h.Version, &h.FSync, &h.FullPageWrites, &h.SynchronousCommit, &h.StandbyNames, &h.ReadOnly, &h.Connections, &h.MaxConnections)
	if err != nil {
		return nil, err
	}
	err = conn.QueryRow(ctx, `SELECT count(*)::int, count(*) FILTER (WHERE sync_state IN ('sync', 'quorum'))::int,
			count(*) FILTER (WHERE sync_state IS NULL)::int
		FROM pg_stat_replication WHERE application_name <> 'pg_basebackup'`).Scan(&h.Standbys, &h.Synchronous, &h.HiddenStates)
	return h, err
}

// FileHealth is how a SQLite file stands.
type FileHealth struct {
	Journal string // the journal mode, "" if it cannot be read
	Damage  string // what is wrong with its pages, "" if nothing is
	Log     string // why the log beside it is not its own, "" if it is
}

// maxDamage is how much damage of one table is told.
const maxDamage = 20

// Damage says what is wrong with the pages of the database, as far as the
// engine can tell: on SQLite every table and its indexes, each in a snapshot of
// its own. PostgreSQL looks after its pages by itself.
func (s *Store) Damage(ctx context.Context) (found []string, err error) {
	if s.Shared() {
		return nil, nil
	}
	var tables []string
	err = s.View(ctx, func(tx *Tx) error {
		tables = nil
		return tx.rows(ctx, selectTables, nil, func(r row) error {
			var name string
			err := r.Scan(&name)
			tables = append(tables, name)
			return err
		})
	})
	for _, name := range tables {
		if err != nil {
			break
		}
		err = s.View(ctx, func(tx *Tx) error {
			return tx.rows(ctx, checkTable, []any{name}, func(r row) error {
				var text string
				err := r.Scan(&text)
				if text != "ok" && len(found) < maxDamage {
					found = append(found, name+": "+text)
				}
				return err
			})
		})
	}
	return found, err
}

// ExamineFile looks at a SQLite file without changing it. A server may be
// using it.
func ExamineFile(ctx context.Context, path string) (*FileHealth, error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro&_pragma=busy_timeout(5000)&_pragma=query_only(ON)")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	h := &FileHealth{}
	var foreign *ForeignLogError
	if err := checkLiteLog(path); errors.As(err, &foreign) {
		h.Log = err.Error()
		return h, nil
	} else if err != nil {
		return nil, err
	}
	check := "ok"
	err = db.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&h.Journal)
	if err == nil {
		err = db.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&check)
	}
	switch {
	case err != nil:
		h.Damage = err.Error()
	case check != "ok":
		h.Damage = check
	}
	return h, nil
}
