package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"till"
	"till/internal/db"
)

// conn is a connection of a pool. pgx prepares statements on first use. BEGIN
// goes out together with the first batch.
type conn struct {
	pool    *pgxpool.Pool
	lease   *pgxpool.Conn
	pg      *pgx.Conn
	access  db.Access
	dialect db.Dialect
	now     func() till.Time // nil: the server's clock

	begun bool // the server has answered in this transaction
	ended bool // by Commit
	dead  bool // the connection broke before that
}

const readClock = `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

var noStatementTimeout = db.Define(db.SQL{Name: "postgres.noStatementTimeout", Postgres: `SET LOCAL statement_timeout = 0`})

// Begin implements db.Conn.
func (c *conn) Begin(context.Context) error { return nil }

// begin returns the statement that starts the transaction.
func (c *conn) begin() string {
	if c.access == db.Write {
		return "BEGIN"
	}
	return "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
}

// Send implements db.Conn.
func (c *conn) Send(ctx context.Context, b *db.Batch) error {
	var out pgx.Batch
	begins := !c.begun
	if begins {
		out.Queue(c.begin())
	}
	if b.NoTimeout {
		defer withoutDeadline(c.pg)()
		b = &db.Batch{Statements: append([]db.Statement{{SQL: noStatementTimeout, Rows: [][]any{nil}}}, b.Statements...)}
	}
	if err := c.queue(&out, b); err != nil {
		return err
	}
	r := c.pg.SendBatch(ctx, &out)
	err := c.read(r, begins, b)
	if end := r.Close(); err == nil {
		err = end
	}
	return c.wrapConnErr(err)
}

// queue adds the statements of b to a batch of pgx.
func (c *conn) queue(out *pgx.Batch, b *db.Batch) error {
	for i := range b.Statements {
		s := &b.Statements[i]
		if s.Clock != nil {
			if c.now == nil {
				out.Queue(readClock)
			}
			continue
		}
		if s.Exactly && !s.SQL.Arrays { // COMMIT would be sent before anybody compares the counts
			return fmt.Errorf("%s needs a text with arrays", s.SQL.Name)
		}
		for _, p := range parts(c.dialect, s) {
			out.Queue(p.text, p.args()...)
		}
	}
	return nil
}

// read reads the answers to what queue has sent.
func (c *conn) read(r pgx.BatchResults, begins bool, b *db.Batch) error {
	if begins {
		if _, err := r.Exec(); err != nil {
			return err
		}
		c.begun = true
	}
	for i := range b.Statements {
		if err := c.readStatement(r, &b.Statements[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) readStatement(r pgx.BatchResults, s *db.Statement) error {
	if s.Clock != nil {
		return c.readClock(r, s)
	}
	for _, p := range parts(c.dialect, s) {
		var err error
		switch {
		case s.Scan != nil && p.arrays:
			err = readNumbered(r, s)
		case s.Scan != nil:
			err = readRows(r, s, p.row)
		case s.Changed != nil && p.arrays:
			err = readChanged(r, s)
		default:
			err = c.readCount(r, s, &p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) readClock(r pgx.BatchResults, s *db.Statement) error {
	if c.now != nil {
		s.Clock(c.now())
		return nil
	}
	var now till.Time
	err := r.QueryRow().Scan(&now)
	if err == nil {
		s.Clock(now)
	}
	return err
}

// readRows hands the rows of the answer to the arguments i to their scan function.
func readRows(r pgx.BatchResults, s *db.Statement, i int) error {
	rows, err := r.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	current := row{Rows: rows}
	for rows.Next() {
		if err := s.Scan(i, &current); err != nil {
			return err
		}
	}
	return rows.Err()
}

// readNumbered hands the rows of an answer to arrays to their scan function. Their
// first column is the number of the arguments.
func readNumbered(r pgx.BatchResults, s *db.Statement) error {
	rows, err := r.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	current := row{Rows: rows, skip: 1}
	for rows.Next() {
		number, err := firstColumn(rows)
		if err != nil {
			return err
		}
		if err := s.Scan(int(number.Int)-1, &current); err != nil {
			return err
		}
	}
	return rows.Err()
}

// readChanged reads which rows of arguments changed a row: their numbers, or from
// an INSERT the ids, which are second arguments. Ids come in any order.
func readChanged(r pgx.BatchResults, s *db.Statement) error {
	rows, err := r.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	byID := make(map[string]int)
	for i, args := range s.Rows {
		if id, ok := args[1].([]byte); ok {
			byID[string(id)] = i
		}
	}
	for rows.Next() {
		c, err := firstColumn(rows)
		if err != nil {
			return err
		}
		i := int(c.Int) - 1
		if c.Bytes != nil {
			i = byID[string(c.Bytes)]
		}
		s.Changed[i] = true
	}
	return rows.Err()
}

// readCount reads how many rows a part changed. On PostgreSQL, the server has checked an
// answer to arrays that must change exactly one row each.
func (c *conn) readCount(r pgx.BatchResults, s *db.Statement, p *part) error {
	tag, err := r.Exec()
	if err != nil {
		return err
	}
	n := tag.RowsAffected()
	checked := p.arrays && c.dialect == db.Postgres
	if (s.Exactly && !checked || p.inserts) && n != int64(len(p.rows)) {
		return fmt.Errorf("%w: %s changed %d rows of %d", db.ErrConflict, s.SQL.Name, n, len(p.rows))
	}
	if s.Changed != nil {
		s.Changed[p.row] = n == 1
	}
	if s.Count != nil {
		*s.Count += n
	}
	return nil
}

// Commit implements db.Conn. It sends COMMIT together with the writes, but not
// together with BEGIN: if BEGIN meets a dead connection, nothing has happened. On
// Citus it sends COMMIT alone, because only here the rows of each write are counted.
func (c *conn) Commit(ctx context.Context, b *db.Batch) error {
	if !c.begun || c.dialect == db.Citus && len(b.Statements) > 0 {
		if err := c.Send(ctx, b); err != nil {
			return err
		}
		b = &db.Batch{}
	}
	var out pgx.Batch
	if err := c.queue(&out, b); err != nil {
		return err
	}
	out.Queue("COMMIT")
	delete(c.pg.PgConn().CustomData(), notOnStandby)
	r := c.pg.SendBatch(ctx, &out)
	if err := c.read(r, false, b); err != nil {
		r.Close()
		return c.writeFailed(err)
	}
	tag, err := r.Exec()
	if end := r.Close(); err == nil {
		err = end
	}
	c.ended = err == nil
	switch {
	case err != nil:
		c.closeAfter(err)
		return fmt.Errorf("%w: %w", db.ErrUnknownCommit, c.wrapConnErr(err))
	case tag.String() == "ROLLBACK":
		return errors.New("the transaction had failed and was rolled back")
	case c.pg.PgConn().CustomData()[notOnStandby] != nil:
		// It is committed, but a failover now would lose it.
		return fmt.Errorf("%w: %w: the commit is not on the synchronous standby", db.ErrUnknownCommit, db.ErrUnavailable)
	}
	return nil
}

// writeFailed returns what is known when a write that was sent together with
// COMMIT failed. A server that rejects a write does not run the COMMIT behind it.
// A connection that broke says nothing, unless not a byte was sent.
func (c *conn) writeFailed(err error) error {
	c.closeAfter(err)
	var rejected *pgconn.PgError
	if errors.As(err, &rejected) || pgconn.SafeToRetry(err) {
		return c.wrapConnErr(err)
	}
	return fmt.Errorf("%w: %w", db.ErrUnknownCommit, c.wrapConnErr(err))
}

// closeAfter closes the connection after an error that may have left it in an
// unusual state.
func (c *conn) closeAfter(err error) {
	if !keepsConn(err) {
		hangup(c.pg)
	}
}

// notOnStandby is set on a connection whose commit did not reach the synchronous
// standby.
const notOnStandby = "not on standby"

// noteStandby notes that the wait for a synchronous standby was cancelled. The
// notice is known by the server's source file: its text is translated.
func noteStandby(c *pgconn.PgConn, n *pgconn.Notice) {
	if strings.Contains(n.File, "syncrep") {
		c.CustomData()[notOnStandby] = true
	}
}

// wrapConnErr marks the errors of a connection that is gone. One to a server that
// takes no writes is closed: the primary may be elsewhere by now.
func (c *conn) wrapConnErr(err error) error {
	var e *pgconn.PgError
	if errors.As(err, &e) && e.Code == "25006" {
		hangup(c.pg)
	}
	if err == nil || !c.pg.IsClosed() {
		return err
	}
	if !c.begun {
		c.dead = true
		return fmt.Errorf("%w: %w: %w", db.ErrNotStarted, errClosed, err)
	}
	return fmt.Errorf("%w: %w", errClosed, err)
}

// Rollback implements db.Conn.
func (c *conn) Rollback(ctx context.Context) error {
	if !c.begun || c.ended || c.pg.IsClosed() {
		return nil
	}
	_, err := c.pg.Exec(ctx, "ROLLBACK")
	return err
}

// Script implements db.Conn. The caller has sent BEGIN. Citus takes one command at a
// time.
func (c *conn) Script(ctx context.Context, text string) error {
	defer withoutDeadline(c.pg)()
	parts := []string{"SET LOCAL statement_timeout = 0;\n" + text}
	if c.dialect == db.Citus {
		parts = append([]string{"SET LOCAL statement_timeout = 0"}, commands(text)...)
	}
	for _, part := range parts {
		if _, err := c.pg.Exec(ctx, part, pgx.QueryExecModeSimpleProtocol); err != nil {
			return c.wrapConnErr(err)
		}
	}
	return nil
}

// Release implements db.Conn. If the connection was dead, others in the pool
// probably are too: the next ones are fresh.
func (c *conn) Release() {
	c.lease.Release()
	if c.dead {
		c.pool.Reset()
	}
}
