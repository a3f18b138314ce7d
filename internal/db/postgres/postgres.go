package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"till"
	"till/internal/db"
	"till/internal/system"
)

// Writers is how many write transactions run at once. More of them only wait for
// each other at the same rows and the same log.
const Writers = 6

// Readers is how many reads run at once, unless Config says another number.
const Readers = 4

// MaxNodes is for how many nodes of Citus the pools have Writers and Readers.
const MaxNodes = 8

// Shares returns how many times Writers and Readers there are for a database with clients on
// so many nodes: those that wait for one node must not keep others waiting.
func Shares(nodes int) int { return min(max(nodes, 1), MaxNodes) }

// MaxSessions returns how many connections the pools open for so many nodes.
func MaxSessions(nodes int) int { return (Writers + Readers) * Shares(nodes) }

// Config says which database to open and how.
type Config struct {
	URL     string
	Readers int              // how many reads run at once
	Now     func() till.Time // replaces the server's clock, for tests

	// Citus sends the texts of that dialect, which use nothing that a distributed
	// database lacks.
	Citus bool
}

// Engine is one PostgreSQL database.
type Engine struct {
	config  *pgx.ConnConfig
	dialect db.Dialect
	now     func() till.Time // nil: the server's clock
	writers *pgxpool.Pool
	readers *pgxpool.Pool

	pools         *pgxpool.Config // what pools are made of
	readersOfNode int
}

// Open prepares connections to the database. It makes none.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	config, err := parse(cfg.URL)
	if err != nil {
		return nil, err
	}
	c := config.ConnConfig
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 3 * time.Second
	}
	if c.ValidateConnect == nil && manyServers(c) {
		// Of many servers one is the primary, and only it takes writes.
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "till"
	}
	c.DialFunc = withDeadline(dialer.DialContext)
	c.OnNotice = noteStandby
	e := &Engine{config: c, dialect: db.Postgres, now: cfg.Now, pools: config, readersOfNode: cfg.Readers}
	if cfg.Citus {
		e.dialect = db.Citus
	}
	if e.writers, err = e.newPool(ctx, config, db.Write, Writers*MaxNodes); err != nil {
		return nil, err
	}
	if e.readers, err = e.newPool(ctx, config, db.Read, cfg.Readers); err != nil {
		e.writers.Close()
		return nil, err
	}
	return e, nil
}

func parse(url string) (*pgxpool.Config, error) {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the PostgreSQL URL cannot be read") // its text may hold a password
	}
	return c, nil
}

func manyServers(c *pgx.ConnConfig) bool {
	return slices.ContainsFunc(c.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.Host != c.Host || f.Port != c.Port })
}

// forever is the interval of what the pool does by itself. A connection that died
// is noticed by its next use, and one that lives keeps its prepared statements.
const forever = 10 * 365 * 24 * time.Hour

// newPool returns a pool that hands out the connection that was used last: the
// server's process behind it has its plans and caches.
func (e *Engine) newPool(ctx context.Context, config *pgxpool.Config, a db.Access, size int) (*pgxpool.Pool, error) {
	c := config.Copy()
	c.MaxConns, c.MinConns, c.MinIdleConns = int32(size), 0, 0
	c.MaxConnLifetime, c.MaxConnIdleTime, c.HealthCheckPeriod = forever, forever, forever
	c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, Settings(e.config.RuntimeParams, a))
		return err
	}
	c.BeforeClose = hangup
	return pgxpool.NewWithConfig(ctx, c)
}

// hangup closes a connection, within a second.
func hangup(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn.Close(ctx)
}

// Sessions returns how many connections there are.
func (e *Engine) Sessions() (s db.Sessions) {
	r, w := e.readers.Stat(), e.writers.Stat()
	return db.Sessions{ReadUsed: int(r.AcquiredConns()), ReadIdle: int(r.IdleConns()), WriteUsed: int(w.AcquiredConns()), WriteIdle: int(w.IdleConns())}
}

// Settings is sent on every new connection. A pooler may reject parameters of the
// connection, so these are statements. Parameters of the URL stay.
func Settings(parameters map[string]string, a db.Access) string {
	// A transaction that waits for ever would hold a client's head for ever. Compiling a
	// statement (jit) takes a tenth of a second, longer than any of ours runs; a write that
	// has to read a whole small table would be compiled each time, because of enable_seqscan.
	all := [][2]string{
		{"idle_in_transaction_session_timeout", "15s"},
		{"jit", "off"},
		{"lock_timeout", "5s"},
		{"statement_timeout", fmt.Sprint(statementTimeout.Milliseconds())},
	}
	if a == db.Write {
		// A write names its rows by their keys. While a table is new or has no
		// statistics, the planner might read the whole of it instead.
		all = append(all, [2]string{"enable_hashjoin", "off"}, [2]string{"enable_mergejoin", "off"}, [2]string{"enable_seqscan", "off"})
	}
	var b strings.Builder
	for _, s := range all {
		if parameters[s[0]] == "" {
			fmt.Fprintf(&b, "SET %s = '%s';", s[0], s[1])
		}
	}
	return b.String()
}

// Connect opens a connection outside of the pools, with more parameters. It has
// no time limits but those of the callers' contexts.
func (e *Engine) Connect(ctx context.Context, parameters map[string]string) (*pgx.Conn, error) {
	c := e.config.Copy()
	c.DialFunc = dialer.DialContext
	for name, value := range parameters {
		c.RuntimeParams[name] = value
	}
	return pgx.ConnectConfig(ctx, c)
}

// UseCitus changes the dialect to that of Citus, with as many readers for each node as one
// server has: those that wait for one node must not keep others from reading. Call it
// before anybody else reads or writes.
func (e *Engine) UseCitus(ctx context.Context, nodes int) error {
	readers, err := e.newPool(ctx, e.pools, db.Read, e.readersOfNode*Shares(nodes))
	if err != nil {
		return err
	}
	e.readers.Close()
	e.dialect, e.readers = db.Citus, readers
	return nil
}

// Dialect implements db.Engine.
func (e *Engine) Dialect() db.Dialect { return e.dialect }

// Acquire implements db.Engine.
func (e *Engine) Acquire(ctx context.Context, a db.Access) (db.Conn, error) {
	pool := e.readers
	if a == db.Write {
		pool = e.writers
	}
	c, err := pool.Acquire(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %w", db.ErrBusy, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", db.ErrUnavailable, err)
	}
	limitSilence(c.Conn(), db.Silence(ctx))
	return &conn{pool: pool, lease: c, pg: c.Conn(), access: a, dialect: e.dialect, now: e.now}, nil
}

// closeTimeout is how long Close waits for connections that are in use.
const closeTimeout = 5 * time.Second

// Close implements db.Engine.
func (e *Engine) Close() error {
	closed := make(chan struct{})
	go func() {
		e.writers.Close()
		e.readers.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(closeTimeout):
	}
	return nil
}

// Classify implements db.Engine, by SQLSTATE. A connection that is lost is
// unavailable: before COMMIT that means that nothing happened.
func (e *Engine) Classify(err error) error {
	if err == nil {
		return nil
	}
	var x *pgconn.PgError
	if errors.As(err, &x) {
		switch {
		case x.Code == "40001", x.Code == "40P01", x.Code == "55P03":
			return fmt.Errorf("%w: %w", db.ErrRetry, err)
		case x.Code == "TL001": // raised by till_expect_rows
			return fmt.Errorf("%w: %w", db.ErrConflict, err)
		case strings.HasPrefix(x.Code, "23"):
			return fmt.Errorf("%w: %w", db.ErrConstraint, err)
		case x.Code == "53100":
			return fmt.Errorf("%w: %w", db.ErrDiskFull, err)
		case strings.HasPrefix(x.Code, "08"), strings.HasPrefix(x.Code, "53"), strings.HasPrefix(x.Code, "57"),
			strings.HasPrefix(x.Code, "58"), x.Code == "25006", x.Code == "25P03",
			x.Code == "XX000" && strings.Contains(x.Message, "postmaster was shut down"): // Citus, without a code of its own
			return fmt.Errorf("%w: %w", db.ErrUnavailable, err)
		}
		return err
	}
	var op net.Error
	if errors.Is(err, errClosed) || errors.As(err, &op) || pgconn.Timeout(err) || pgconn.SafeToRetry(err) || strings.Contains(err.Error(), "unexpected EOF") {
		return fmt.Errorf("%w: %w", db.ErrUnavailable, err)
	}
	return err
}

// errClosed says that the connection was lost on the way.
var errClosed = errors.New("the connection to the database was lost")

// keepsConn reports whether a connection is as good as before after an error.
func keepsConn(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == "TL001" || e.Code == "55P03" || strings.HasPrefix(e.Code, "23") || strings.HasPrefix(e.Code, "40"))
}

// PlainHosts returns the hosts other than this machine to which a URL allows
// connections without TLS: sslmode is disable, allow, or prefer, the default. An
// attacker on the way can read and change everything.
func PlainHosts(url string) (hosts []string) {
	c, err := pgx.ParseConfig(url)
	if err != nil {
		return nil // Open reports it
	}
	all := append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
	for _, f := range all {
		network, _ := pgconn.NetworkAddress(f.Host, f.Port)
		if f.TLSConfig == nil && network != "unix" && !system.IsLoopback(f.Host) && !slices.Contains(hosts, f.Host) {
			hosts = append(hosts, f.Host)
		}
	}
	return hosts
}
