package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"till"
	"till/internal/db"
	"till/internal/system"
)

// postgres is the engine behind a postgres:// URL.
type postgres struct {
	config *pgx.ConnConfig
	now    func() till.Time // nil: the server's clock
	sets   bool             // use one statement for many rows

	dialect db.Dialect

	// saw is told what the server's clock showed, and when it was asked.
	saw func(sent time.Time, now till.Time)
}

// IsPostgres reports whether a database is named by a PostgreSQL URL.
func IsPostgres(database string) bool {
	return strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://")
}

func openPostgres(cfg Config, saw func(time.Time, till.Time)) (*postgres, error) {
	c, err := pgx.ParseConfig(cfg.Path)
	if err != nil {
		return nil, errors.New("the PostgreSQL URL cannot be read") // its text may hold a password
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 3 * time.Second
	}
	c.DialFunc = dialer.DialContext
	if c.ValidateConnect == nil && manyServers(c) {
		// Of many servers one is the primary, and only its word counts.
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "till"
	}
	c.DialFunc = patient(c.DialFunc)
	e := &postgres{config: c, now: cfg.Now, sets: !cfg.NoSets, dialect: db.Postgres, saw: saw}
	if cfg.NoSkipLocked {
		e.dialect = db.Citus
	}
	return e, nil
}

// dialer gives up a server that has vanished, with its power or its network,
// after some ten seconds. By itself the kernel would go on for a quarter of an
// hour, and every session would be held by a transaction that never ends.
var dialer = net.Dialer{
	KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 4 * time.Second, Interval: 2 * time.Second, Count: 3},
	Control: func(_, _ string, c syscall.RawConn) error {
		return system.LimitSilence(c, 10*time.Second)
	},
}

func manyServers(c *pgx.ConnConfig) bool {
	for _, f := range c.Fallbacks {
		if f.Host != c.Host || f.Port != c.Port {
			return true
		}
	}
	return false
}

func (*postgres) name() string { return "postgres" }
func (*postgres) close()       {}

func (*postgres) remote() bool { return true }

func (*postgres) lockMigrations() string { return `LOCK TABLE schema_migrations IN EXCLUSIVE MODE` }

// translate turns the common text into PostgreSQL's words.
func (*postgres) translate(text string) string {
	return strings.NewReplacer(
		") STRICT, WITHOUT ROWID", ")", ") STRICT", ")",
		"BLOB ", "BYTEA ", "BLOB,", "BYTEA,", "BLOB;", "BYTEA;", "INTEGER", "BIGINT",
	).Replace(text)
}

func (e *postgres) connect(ctx context.Context, write bool) (session, error) {
	ses := &pgSession{fixed: e.now, saw: e.saw, sets: e.sets, dialect: e.dialect}
	var err error
	config := e.config.Copy()
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { ses.alone = ses.alone || fromStandby(n) }
	if ses.conn, err = pgx.ConnectConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	takeArrays(ses.conn.TypeMap())
	if _, err := ses.conn.Exec(ctx, e.settings(write)); err != nil {
		ses.close()
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return ses, nil
}

// fromStandby reports whether a notice, by the server's file that it comes from,
// says that the wait for a synchronous standby was cancelled.
func fromStandby(n *pgconn.Notice) bool { return strings.Contains(n.File, "syncrep") }

// settings is what a session is told first. It is told in words, because a
// pooler may refuse it among the parameters of the connection; what the URL
// says stays.
func (e *postgres) settings(write bool) string {
	// A transaction that waits for ever holds a client's head for ever.
	all := [][2]string{
		{"idle_in_transaction_session_timeout", "15s"},
		{"lock_timeout", "5s"},
		{"statement_timeout", strconv.Itoa(int(statementTimeout.Milliseconds()))},
	}
	if write {
		// A write names its rows by their keys. Told to expect many, the planner
		// might read a whole table for them, while it is new or was never measured.
		all = append(all, [2]string{"enable_hashjoin", "off"}, [2]string{"enable_mergejoin", "off"}, [2]string{"enable_seqscan", "off"})
	}
	var b strings.Builder
	for _, s := range all {
		if e.config.RuntimeParams[s[0]] == "" {
			fmt.Fprintf(&b, "SET %s = '%s';", s[0], s[1])
		}
	}
	return b.String()
}

// classify sorts PostgreSQL's errors by their SQLSTATE. A connection that is
// gone is unavailable: before COMMIT that means that nothing happened.
func (*postgres) classify(err error) error {
	if err == nil {
		return nil
	}
	var e *pgconn.PgError
	if errors.As(err, &e) {
		switch {
		case e.Code == "40001", e.Code == "40P01", e.Code == "55P03":
			return fmt.Errorf("%w: %w", errAgain, err)
		case e.Code == rowsMissing:
			return fmt.Errorf("%w: %w", ErrConflict, err)
		case strings.HasPrefix(e.Code, "23"):
			return fmt.Errorf("%w: %w", ErrRefused, err)
		case strings.HasPrefix(e.Code, "08"), strings.HasPrefix(e.Code, "53"), strings.HasPrefix(e.Code, "57"),
			strings.HasPrefix(e.Code, "58"), e.Code == "25006", e.Code == "25P03":
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return err
	}
	var op net.Error
	if errors.Is(err, errClosed) || errors.As(err, &op) || pgconn.Timeout(err) || pgconn.SafeToRetry(err) || strings.Contains(err.Error(), "unexpected EOF") {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// errClosed says that the connection was lost on the way.
var errClosed = errors.New("the connection to the database was lost")
