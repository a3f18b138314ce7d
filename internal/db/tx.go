package db

import (
	"context"
	"errors"
	"time"

	"till"
)

// Tx is one transaction. One goroutine uses it at a time.
//
// Deferred writes are sent with the next statement whose result somebody needs,
// or with COMMIT. They see and do what they would have seen and done at their
// place, and their errors come out where they are sent.
type Tx struct {
	db       *DB
	conn     Conn
	access   Access
	deferred Batch
	known    []func()  // see AfterCommit
	unknown  []func()  // see AfterUnknownCommit
	sent     time.Time // when the last batch was sent
	now      till.Time // 0: the clock was not read yet
	err      error     // of reading the clock in Now

	noTimeout  bool // see WithoutTimeout
	notStarted bool // the connection was dead
}

// Dialect returns the engine's dialect.
func (tx *Tx) Dialect() Dialect { return tx.db.Dialect() }

// Conn returns the connection, for tests that measure an engine's work.
func (tx *Tx) Conn() Conn { return tx.conn }

// Writes reports whether the transaction may write.
func (tx *Tx) Writes() bool { return tx.access == Write }

// Now returns the last reading of the engine's clock in this transaction. If
// there is none, it reads the clock; if that fails, so does every call after it.
func (tx *Tx) Now() till.Time {
	if tx.now == 0 && tx.err == nil {
		var b Batch
		if d := tx.deferred.Statements; len(d) == 0 || d[0].Clock == nil {
			b.Clock(nil)
		}
		tx.err = tx.Send(context.Background(), &b)
	}
	return tx.now
}

// Send runs the deferred writes and then the statements of b, in order. A Clock
// in b sets Now.
func (tx *Tx) Send(ctx context.Context, b *Batch) error {
	if tx.err != nil {
		return tx.err
	}
	if tx.access == Write {
		// A cancelled request must not roll back a batch that others wait for.
		ctx = context.WithoutCancel(ctx)
	}
	if len(tx.deferred.Statements) > 0 {
		b = &Batch{Statements: append(tx.deferred.Statements, b.Statements...)}
		tx.deferred = Batch{}
	}
	for i := range b.Statements {
		if s := &b.Statements[i]; s.Clock != nil {
			read := s.Clock
			s.Clock = func(now till.Time) {
				tx.now = now
				tx.db.observeClock(tx.sent, now)
				read(now)
			}
		}
	}
	b.NoTimeout = tx.noTimeout
	tx.sent = time.Now()
	return tx.failed(tx.conn.Send(ctx, b))
}

// SendAll runs statements in one round trip, after the deferred writes.
func (tx *Tx) SendAll(ctx context.Context, all ...Statement) error {
	var b Batch
	b.Add(all...)
	return tx.Send(ctx, &b)
}

// WithoutTimeout lets the statements from now on take any time.
func (tx *Tx) WithoutTimeout() { tx.noTimeout = true }

// Flush makes sure that the transaction has begun and its deferred writes were
// sent.
func (tx *Tx) Flush(ctx context.Context) error { return tx.Send(ctx, &Batch{}) }

func (tx *Tx) failed(err error) error {
	if err == nil {
		return nil
	}
	tx.notStarted = tx.notStarted || errors.Is(err, ErrNotStarted)
	return tx.db.engine.Classify(err)
}

func (tx *Tx) commit(ctx context.Context) error {
	err := tx.failed(tx.conn.Commit(ctx, &tx.deferred))
	then := tx.known
	switch {
	case errors.Is(err, ErrUnknownCommit):
		then = tx.unknown
	case err != nil:
		return err
	}
	for _, f := range then {
		f()
	}
	return err
}

// AfterCommit has f called when the transaction is known to be committed. What says that
// something has happened belongs here: log lines, counts.
func (tx *Tx) AfterCommit(f func()) { tx.known = append(tx.known, f) }

// AfterUnknownCommit has f called if nobody knows whether the transaction was committed.
func (tx *Tx) AfterUnknownCommit(f func()) { tx.unknown = append(tx.unknown, f) }

// Query runs a read and calls scan for each row.
func (tx *Tx) Query(ctx context.Context, sql *SQL, args []any, scan func(r Row) error) error {
	return tx.QueryEach(ctx, sql, [][]any{args}, func(_ int, r Row) error { return scan(r) })
}

// QueryEach runs a read for each row of arguments. scan is called with the
// number of the arguments. Where the statement takes arrays, rows come in any
// order.
func (tx *Tx) QueryEach(ctx context.Context, sql *SQL, rows [][]any, scan func(i int, r Row) error) error {
	if len(rows) == 0 {
		return nil
	}
	var b Batch
	b.Query(sql, rows, scan)
	return tx.Send(ctx, &b)
}

// QueryRow runs a read for at most one row and reports whether there was one.
func (tx *Tx) QueryRow(ctx context.Context, sql *SQL, args []any, dest ...any) (found bool, err error) {
	err = tx.Query(ctx, sql, args, func(r Row) error {
		found = true
		return r.Scan(dest...)
	})
	return found, err
}

// Exec runs a write and returns how many rows it changed.
func (tx *Tx) Exec(ctx context.Context, sql *SQL, args ...any) (n int64, err error) {
	b := Batch{Statements: []Statement{{SQL: sql, Rows: [][]any{args}, Count: &n}}}
	err = tx.Send(ctx, &b)
	return n, err
}

// ExecReport runs a write for each row of arguments and reports which of them
// changed a row.
func (tx *Tx) ExecReport(ctx context.Context, sql *SQL, rows [][]any) (changed []bool, err error) {
	var b Batch
	b.execReport(sql, rows, &changed)
	return changed, tx.Send(ctx, &b)
}

// Defer runs a write for each row of arguments, before the commit.
func (tx *Tx) Defer(sql *SQL, rows [][]any) error {
	return tx.enqueue(Statement{SQL: sql, Rows: rows})
}

// DeferExactly is Defer for rows each of which must change exactly one row; else
// the transaction fails with ErrConflict. The statement takes arrays: its text makes
// the server compare the counts, because COMMIT may be sent together with it.
func (tx *Tx) DeferExactly(sql *SQL, rows [][]any) error {
	return tx.enqueue(Statement{SQL: sql, Rows: rows, Exactly: true})
}

func (tx *Tx) enqueue(s Statement) error {
	if tx.access != Write {
		return errReadOnly
	}
	tx.deferred.Add(s)
	return nil
}

// Script runs the statements of a migration, without a time limit.
func (tx *Tx) Script(ctx context.Context, text string) error {
	if err := tx.Flush(ctx); err != nil {
		return err
	}
	return tx.failed(tx.conn.Script(ctx, text))
}
