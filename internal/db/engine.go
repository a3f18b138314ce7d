package db

import (
	"context"

	"till"
)

// Access says what a connection is for.
type Access int

// The two kinds of access.
const (
	Read Access = iota
	Write
)

// Engine is one open database.
type Engine interface {
	// Dialect says which text of a statement to send.
	Dialect() Dialect

	// Acquire waits for a free connection until ctx ends; then the error is
	// ErrBusy. Other errors are classified.
	Acquire(ctx context.Context, a Access) (Conn, error)

	// Classify wraps err with ErrRetry, ErrConstraint, ErrConflict or
	// ErrUnavailable. It returns an error of no class as it is.
	Classify(err error) error

	// Close closes all connections.
	Close() error
}

// Conn is one connection. One goroutine uses it at a time, for one transaction
// at a time.
type Conn interface {
	// Begin starts a snapshot or a write transaction. BEGIN may go out with the
	// first batch, but it always goes out: no write is sent without it.
	Begin(ctx context.Context) error

	// Send runs the statements of b in order and hands rows to their scan
	// functions: one round trip where there is a network. An error wrapped with
	// ErrNotStarted means that the transaction never started.
	Send(ctx context.Context, b *Batch) error

	// Commit runs the statements of b and commits. Nil means that the
	// transaction is durable, ErrUnknownCommit that COMMIT may have happened.
	// After any other error nothing has happened.
	Commit(ctx context.Context, b *Batch) error

	// Rollback ends the transaction. After Commit it does nothing.
	Rollback(ctx context.Context) error

	// Script runs one migration inside the transaction, without a time limit.
	Script(ctx context.Context, text string) error

	// Release gives the connection back to its pool, or closes it if it is
	// broken.
	Release()
}

// Row is one row of an answer.
type Row interface {
	// Scan writes the columns to dest: pointers, or values that implement
	// ColumnScanner.
	Scan(dest ...any) error
}

// Column is one value of a row. Bytes are valid until the scan function
// returns.
type Column struct {
	Null  bool
	Int   int64  // of an integer or a boolean
	Bytes []byte // of a text or bytes
}

// ColumnScanner is a destination that reads a column itself: one for which null
// has a meaning.
type ColumnScanner interface {
	ScanColumn(c Column)
}

// Batch collects statements that run in order.
type Batch struct {
	Statements []Statement
	NoTimeout  bool // they may take any time
}

// Statement is one statement of a batch with its rows of arguments, or a reading
// of the engine's clock.
type Statement struct {
	SQL     *SQL
	Rows    [][]any
	Scan    func(i int, r Row) error // i is the row of arguments that r answers
	Changed []bool                   // set for each row of arguments that changed one row
	Count   *int64                   // set to the number of rows changed
	Exactly bool                     // each row of arguments must change one row; see Tx.DeferExactly
	Clock   func(now till.Time)      // called with the clock; SQL is nil
}

// Query reads, for each row of arguments. Where the statement takes arrays, the
// answers come in any order.
func (b *Batch) Query(sql *SQL, rows [][]any, scan func(i int, r Row) error) {
	b.Add(Statement{SQL: sql, Rows: rows, Scan: scan})
}

// execReport writes, and reports which rows of arguments changed one row. If the
// statement takes arrays, it returns their numbers; an INSERT returns ids, and
// an id is the second argument.
func (b *Batch) execReport(sql *SQL, rows [][]any, changed *[]bool) {
	*changed = make([]bool, len(rows))
	b.Add(Statement{SQL: sql, Rows: rows, Changed: *changed})
}

// Clock reads the engine's clock at its place in the order, so after the locks
// before it. at may be nil: Tx.Now returns the same.
func (b *Batch) Clock(at *till.Time) {
	b.Statements = append(b.Statements, Statement{Clock: func(now till.Time) {
		if at != nil {
			*at = now
		}
	}})
}

// Add adds statements, without those that have no rows of arguments.
func (b *Batch) Add(all ...Statement) {
	for _, s := range all {
		if len(s.Rows) > 0 {
			b.Statements = append(b.Statements, s)
		}
	}
}
