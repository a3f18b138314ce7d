package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"till"
	"till/internal/db"
)

// conn is a connection to the file. Statements are short: they run to their end
// whatever happens to the caller's context.
type conn struct {
	h      *handle
	now    func() till.Time
	access db.Access
	pool   *pool

	changes int64     // of the connection, when the transaction began
	stamped time.Time // when this connection last raised the file's stamp
}

// Begin implements db.Conn.
func (c *conn) Begin(context.Context) error {
	// A write takes the lock at once: a transaction that reads first and upgrades
	// later could find that it must start over.
	query := "BEGIN"
	if c.access == db.Write {
		query = "BEGIN IMMEDIATE"
	}
	if _, err := c.h.run(query, nil, nil); err != nil {
		return err
	}
	c.h.inside, c.changes = true, c.h.totalChanges()
	if c.access == db.Write {
		return nil
	}
	// The snapshot is taken by the first read.
	_, err := c.h.run("SELECT 1 FROM sqlite_schema LIMIT 1", nil, nil)
	return err
}

// Send implements db.Conn.
func (c *conn) Send(_ context.Context, b *db.Batch) error {
	for i := range b.Statements {
		if err := c.run(&b.Statements[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) run(s *db.Statement) error {
	if s.Clock != nil {
		s.Clock(c.now())
		return nil
	}
	i := 0
	var each func(r db.Row) error
	if s.Scan != nil {
		each = func(r db.Row) error { return s.Scan(i, r) }
	}
	text := s.SQL.Text(db.SQLite)
	for ; i < len(s.Rows); i++ {
		n, err := c.h.run(text, s.Rows[i], each)
		if err != nil {
			return err
		}
		if s.Exactly && n != 1 {
			return fmt.Errorf("%w: %d rows changed instead of one: %s", db.ErrConflict, n, s.SQL.Name)
		}
		if s.Changed != nil {
			s.Changed[i] = n == 1
		}
		if s.Count != nil {
			*s.Count += n
		}
	}
	return nil
}

// Commit implements db.Conn.
func (c *conn) Commit(ctx context.Context, b *db.Batch) error {
	if err := c.Send(ctx, b); err != nil {
		return err
	}
	if c.h.lost != nil { // the caller ignored an error
		return c.h.lost
	}
	if err := c.stamp(); err != nil {
		return err
	}
	if _, err := c.h.run("COMMIT", nil, nil); err != nil {
		if c.rolledBack(err) {
			return err
		}
		return fmt.Errorf("%w: %w", db.ErrUnknownCommit, err)
	}
	c.h.inside = false
	return nil
}

// rolledBack reports whether a COMMIT that failed has certainly not happened. Either the
// transaction is still open, and Rollback ends it, or the log had no room: the mark that
// makes a transaction count is the last that is written. After any other error of the disk
// the mark may be there when the file is next opened.
func (c *conn) rolledBack(err error) bool {
	var x *Error
	return !c.h.autocommit() || errors.As(err, &x) && x.full()
}

// Rollback implements db.Conn. SQLite may have rolled back already.
func (c *conn) Rollback(context.Context) error {
	if !c.h.inside {
		return nil
	}
	c.h.inside, c.h.lost = false, nil
	if c.h.autocommit() {
		return nil
	}
	_, err := c.h.run("ROLLBACK", nil, nil)
	return err
}

// Script implements db.Conn.
func (c *conn) Script(_ context.Context, text string) error { return c.h.script(text) }

// Release implements db.Conn.
func (c *conn) Release() { c.pool.release(c) }

// Steps returns how much work the connection has done, in steps of SQLite's
// machine. Tests compare it.
func (c *conn) Steps() int64 { return c.h.steps() }
