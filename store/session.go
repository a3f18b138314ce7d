package store

import (
	"context"

	"till"
	"till/internal/db"
)

// row is one row of an answer.
type row interface {
	Scan(dest ...any) error
}

// read is a query for many arguments; scan is told to which of them a row is
// the answer.
type read struct {
	query any // *db.SQL, or still a text
	args  [][]any
	scan  func(i int, r row) error
}

// session is one connection with its prepared statements, which live as long
// as it does. It is used by one transaction at a time.
type session interface {
	// begin starts a transaction. It may begin as late as its first statement
	// that somebody waits for.
	begin(ctx context.Context, write bool) error
	// reach makes sure that it has begun.
	reach(ctx context.Context) error
	// started reports whether the transaction has reached the engine: while it
	// has not, a connection that turns out to be dead can be replaced.
	started() bool
	// commit returns errBeforeCommit if a statement that nobody had waited for
	// failed: then it is plain that nothing happened.
	commit(ctx context.Context) error
	rollback(ctx context.Context)
	// now is the engine's clock at the start of the transaction, or when
	// lockEach had its locks.
	now() till.Time

	// exec runs a write and returns how many rows it touched.
	exec(ctx context.Context, q *db.SQL, args []any) (int64, error)
	// later runs one write for many rows, in their order. They may run as late
	// as the commit, where their errors come out too; what they see and do is
	// what they would have seen and done in their place.
	later(ctx context.Context, q *db.SQL, rows [][]any) error
	// set is later for rows that do not touch each other: where there is a
	// network, they are one statement. If must is set, each row must touch
	// exactly one.
	set(ctx context.Context, q *db.SQL, rows [][]any, must bool) error
	// touched is set for one who waits: it reports which rows touched one. The
	// second argument of an insertion is its id.
	touched(ctx context.Context, q *db.SQL, rows [][]any) ([]bool, error)
	// query runs a read and calls scan for each row.
	query(ctx context.Context, q *db.SQL, args []any, scan func(r row) error) error
	// queryEach runs reads by key, each for many arguments, one read after the
	// other: where there is a network, each is one statement and all are one
	// round trip. The answers to one read come in any order.
	queryEach(ctx context.Context, reads ...read) error
	// script runs the statements of a migration.
	script(ctx context.Context, text string) error
	// lockFirst is queryEach around a read that locks its rows, in the order of
	// its arguments; when it has the locks, it reads the engine's clock.
	lockFirst(ctx context.Context, before []read, lock read, after ...read) error

	broken() bool
	close()
}

// engine is what must differ between databases, and nothing else.
type engine interface {
	name() string
	connect(ctx context.Context, write bool) (session, error)
	// classify maps the engine's errors to the few classes that callers
	// branch on.
	classify(err error) error
	// remote says that there is a network in between: few large statements are
	// better than many small ones, and what can be known need not be asked.
	remote() bool
	// translate turns the text of a migration into the engine's own.
	translate(text string) string
	// lockMigrations is a statement that keeps other instances from migrating
	// until the commit; "" where the transaction does.
	lockMigrations() string
	close()
}
