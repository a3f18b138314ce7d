package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"till"
)

// postgres is the engine behind a postgres:// URL.
type postgres struct {
	config *pgx.ConnConfig
	now    func() till.Time // nil: the server's clock
	skip   bool             // use SKIP LOCKED
}

// IsPostgres reports whether a database is named by a PostgreSQL URL.
func IsPostgres(database string) bool {
	return strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://")
}

func openPostgres(url string, now func() till.Time, skip bool) (*postgres, error) {
	c, err := pgx.ParseConfig(url)
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
	// A transaction that waits for ever holds a client's head for ever.
	for name, value := range map[string]string{
		"application_name":                    "till",
		"idle_in_transaction_session_timeout": "15s",
		"lock_timeout":                        "5s",
		"statement_timeout":                   strconv.Itoa(int(statementTimeout.Milliseconds())),
	} {
		if c.RuntimeParams[name] == "" {
			c.RuntimeParams[name] = value
		}
	}
	c.DialFunc = patient(c.DialFunc)
	return &postgres{config: c, now: now, skip: skip}, nil
}

// dialer gives up a server that has vanished, with its power or its network,
// after some ten seconds. By itself the kernel would go on for a quarter of an
// hour, and every session would be held by a transaction that never ends.
var dialer = net.Dialer{
	KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 4 * time.Second, Interval: 2 * time.Second, Count: 3},
	Control: func(_, _ string, c syscall.RawConn) (err error) {
		const tcpUserTimeout = 0x12 // Linux: for words that are not acknowledged
		if runtime.GOOS == "linux" {
			err = c.Control(func(fd uintptr) {
				syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, 10_000)
			})
		}
		return err
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

func (*postgres) tableExists() string {
	return `SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'p') AND relname = ? AND pg_table_is_visible(oid)`
}

func (*postgres) lock() string { return " FOR UPDATE" }

func (e *postgres) skipLocked() string {
	if e.skip {
		return " FOR UPDATE SKIP LOCKED"
	}
	return ""
}

func (*postgres) lockMigrations() string { return `LOCK TABLE schema_migrations IN EXCLUSIVE MODE` }

// translate turns the common text into PostgreSQL's words.
func (*postgres) translate(text string) string {
	return strings.NewReplacer(
		") STRICT, WITHOUT ROWID", ")", ") STRICT", ")",
		"BLOB ", "BYTEA ", "BLOB,", "BYTEA,", "INTEGER", "BIGINT",
	).Replace(text)
}

func (e *postgres) connect(ctx context.Context, _ bool) (session, error) {
	ses := &pgSession{now: e.now}
	c := e.config.Copy()
	c.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		ses.alone = ses.alone || strings.Contains(n.File, "syncrep")
	}
	var err error
	if ses.conn, err = pgx.ConnectConfig(ctx, c); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return ses, nil
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

// pgSession is a session over one PostgreSQL connection. Statements are
// prepared by the driver on first use and pipelined where there are many.
type pgSession struct {
	conn *pgx.Conn
	now  func() till.Time

	// alone says that the server warned: the wait for a synchronous standby
	// was cancelled.
	alone bool
}

const pgClock = `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

func (ses *pgSession) begin(ctx context.Context, write bool) (till.Time, error) {
	query := "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	if write {
		query = "BEGIN"
	}
	if ses.now != nil {
		_, err := ses.conn.Exec(ctx, query)
		return ses.now(), ses.lost(err)
	}
	var b pgx.Batch
	b.Queue(query)
	b.Queue(pgClock)
	r := ses.conn.SendBatch(ctx, &b)
	defer r.Close()
	if _, err := r.Exec(); err != nil {
		return 0, ses.lost(err)
	}
	var now till.Time
	err := r.QueryRow().Scan(&now)
	return now, ses.lost(err)
}

func (ses *pgSession) clock(ctx context.Context) (till.Time, error) {
	if ses.now != nil {
		return ses.now(), nil
	}
	var now till.Time
	err := ses.conn.QueryRow(ctx, pgClock).Scan(&now)
	return now, ses.lost(err)
}

func (ses *pgSession) commit(ctx context.Context) error {
	ses.alone = false
	tag, err := ses.conn.Exec(ctx, "COMMIT")
	switch {
	case err == nil && tag.String() == "ROLLBACK":
		return errors.New("the transaction had failed and was rolled back")
	case err == nil && ses.alone:
		// It says COMMIT and is not kept: a failover now would lose it.
		return fmt.Errorf("%w: the commit is not on the synchronous standby", ErrUnavailable)
	}
	return ses.lost(err)
}

func (ses *pgSession) rollback(ctx context.Context) {
	if !ses.broken() {
		ses.conn.Exec(ctx, "ROLLBACK")
	}
}

func (ses *pgSession) broken() bool { return ses.conn.IsClosed() }

func (ses *pgSession) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	ses.conn.Close(ctx)
}

// lost marks the errors of a connection that is gone. One to a server that
// takes no writes is given up: the primary may be elsewhere by now.
func (ses *pgSession) lost(err error) error {
	var e *pgconn.PgError
	if errors.As(err, &e) && e.Code == "25006" {
		ses.close()
	}
	if err != nil && ses.conn.IsClosed() {
		return fmt.Errorf("%w: %w", errClosed, err)
	}
	return err
}

func (ses *pgSession) exec(ctx context.Context, query string, args []any) (int64, error) {
	tag, err := ses.conn.Exec(ctx, numbered(query), plain(args)...)
	return tag.RowsAffected(), ses.lost(err)
}

func (ses *pgSession) each(ctx context.Context, query string, args [][]any) ([]int64, error) {
	if len(args) == 0 {
		return nil, nil
	}
	var b pgx.Batch
	query = numbered(query)
	for _, a := range args {
		b.Queue(query, plain(a)...)
	}
	r := ses.conn.SendBatch(ctx, &b)
	touched := make([]int64, len(args))
	for i := range args {
		tag, err := r.Exec()
		if err != nil {
			r.Close()
			return nil, ses.lost(err)
		}
		touched[i] = tag.RowsAffected()
	}
	return touched, ses.lost(r.Close())
}

func (ses *pgSession) query(ctx context.Context, query string, args []any, scan func(r row) error) error {
	rows, err := ses.conn.Query(ctx, numbered(query), plain(args)...)
	if err != nil {
		return ses.lost(err)
	}
	return ses.lost(scanAll(rows, scan))
}

func scanAll(rows pgx.Rows, scan func(r row) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (ses *pgSession) queryEach(ctx context.Context, query string, args [][]any, scan func(i int, r row) error) error {
	if len(args) == 0 {
		return nil
	}
	var b pgx.Batch
	query = numbered(query)
	for _, a := range args {
		b.Queue(query, plain(a)...)
	}
	r := ses.conn.SendBatch(ctx, &b)
	for i := range args {
		rows, err := r.Query()
		if err == nil {
			err = scanAll(rows, func(r row) error { return scan(i, r) })
		}
		if err != nil {
			r.Close()
			return ses.lost(err)
		}
	}
	return ses.lost(r.Close())
}

func (ses *pgSession) script(ctx context.Context, text string) error {
	if c, ok := ses.conn.PgConn().Conn().(*patientConn); ok {
		c.endless.Store(true)
		c.SetReadDeadline(time.Time{})
		defer c.endless.Store(false)
	}
	text = "SET LOCAL statement_timeout = 0;\n" + text
	_, err := ses.conn.Exec(ctx, text, pgx.QueryExecModeSimpleProtocol)
	return ses.lost(err)
}

// plain turns what PostgreSQL has no implicit cast for into what it has.
func plain(args []any) []any {
	for i, a := range args {
		if b, ok := a.(bool); ok {
			n := int64(0)
			if b {
				n = 1
			}
			args[i] = n
		}
	}
	return args
}

// numberedTexts keeps the translated texts; they are constants, so it is
// bounded by the program's own length.
var numberedTexts sync.Map

// numbered turns each ? into $1, $2 and so on. No text has a literal ?.
func numbered(query string) string {
	if t, ok := numberedTexts.Load(query); ok {
		return t.(string)
	}
	var b strings.Builder
	n := 0
	for i := range len(query) {
		if query[i] != '?' {
			b.WriteByte(query[i])
			continue
		}
		n++
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
	}
	numberedTexts.Store(query, b.String())
	return b.String()
}
