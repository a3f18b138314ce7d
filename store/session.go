package store

import (
	"context"
	"database/sql"
	"fmt"

	"till"
)

// row is one row of an answer.
type row interface {
	Scan(dest ...any) error
}

// read is a query for many arguments; scan is told to which of them a row is
// the answer.
type read struct {
	query string
	args  [][]any
	scan  func(i int, r row) error
	apart bool // not by key: a statement for each argument
}

// session is one connection with its prepared statements, which live as long
// as it does. It is used by one transaction at a time.
type session interface {
	// begin starts a transaction. A write may begin as late as its first
	// statement that somebody waits for.
	begin(ctx context.Context, write bool) error
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
	exec(ctx context.Context, query string, args []any) (int64, error)
	// later runs one write for many rows, in their order. They may run as late
	// as the commit, where their errors come out too; what they see and do is
	// what they would have seen and done in their place.
	later(ctx context.Context, query string, rows [][]any) error
	// set is later for rows that do not touch each other: where there is a
	// network, they are one statement. If must is set, each row must touch
	// exactly one.
	set(ctx context.Context, query string, rows [][]any, must bool) error
	// touched is set for one who waits: it reports which rows touched one. The
	// second argument of an insertion is its id.
	touched(ctx context.Context, query string, rows [][]any) ([]bool, error)
	// query runs a read and calls scan for each row.
	query(ctx context.Context, query string, args []any, scan func(r row) error) error
	// queryEach runs reads by key, each for many arguments, one read after the
	// other: where there is a network, each is one statement and all are one
	// round trip. The answers to one read come in any order.
	queryEach(ctx context.Context, reads ...read) error
	// script runs the statements of a migration.
	script(ctx context.Context, text string) error
	// lockFirst is queryEach after a read that locks its rows, in the order of
	// its arguments; when it has the locks, it reads the engine's clock.
	lockFirst(ctx context.Context, lock read, reads ...read) error

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
	// tableExists is a query for the number of tables with a name.
	tableExists() string
	// unmeasured is a query for the tables beyond a size that the planner knows
	// nothing of; "" where it needs to know nothing.
	unmeasured() string
	// lock is the clause that locks the rows of a read until the commit.
	lock() string
	// skipLocked is the clause that passes over rows that others have locked.
	skipLocked() string
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

// sqlSession is a session over database/sql. Statements run to their end
// whatever becomes of the caller's context: they are short, and a context
// that can end costs the driver a goroutine for each of them.
type sqlSession struct {
	conn  *sql.Conn
	clock func() till.Time
	at    till.Time
	stmts map[string]*sql.Stmt
}

func (ses *sqlSession) begin(ctx context.Context, write bool) error {
	// A write takes the lock at once: a transaction that reads first and
	// upgrades later could find that it must start over.
	query := "BEGIN"
	if write {
		query = "BEGIN IMMEDIATE"
	}
	_, err := ses.exec(ctx, query, nil)
	ses.at = ses.clock()
	return err
}

func (ses *sqlSession) commit(ctx context.Context) error {
	_, err := ses.exec(ctx, "COMMIT", nil)
	return err
}

func (ses *sqlSession) rollback(ctx context.Context) { ses.exec(ctx, "ROLLBACK", nil) }

func (ses *sqlSession) now() till.Time { return ses.at }
func (ses *sqlSession) broken() bool   { return false }
func (ses *sqlSession) started() bool  { return true }

func (ses *sqlSession) close() {
	for _, st := range ses.stmts {
		st.Close()
	}
	ses.conn.Close()
}

// stmt returns the prepared form of a query. The texts are constants, so the
// map is bounded by the program's own length.
func (ses *sqlSession) stmt(query string) (*sql.Stmt, error) {
	if st, ok := ses.stmts[query]; ok {
		return st, nil
	}
	st, err := ses.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, fmt.Errorf("prepare %.60q: %w", query, err)
	}
	ses.stmts[query] = st
	return st, nil
}

func (ses *sqlSession) exec(_ context.Context, query string, args []any) (int64, error) {
	st, err := ses.stmt(query)
	if err != nil {
		return 0, err
	}
	r, err := st.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

func (ses *sqlSession) later(ctx context.Context, query string, rows [][]any) error {
	return ses.set(ctx, query, rows, false)
}

func (ses *sqlSession) set(ctx context.Context, query string, rows [][]any, must bool) error {
	for _, args := range rows {
		if n, err := ses.exec(ctx, query, args); err != nil {
			return err
		} else if must && n != 1 {
			return fmt.Errorf("%w: %d rows were there, not one: %.60s", ErrRefused, n, query)
		}
	}
	return nil
}

func (ses *sqlSession) touched(ctx context.Context, query string, rows [][]any) ([]bool, error) {
	out := make([]bool, len(rows))
	for i, args := range rows {
		n, err := ses.exec(ctx, query, args)
		if err != nil {
			return nil, err
		}
		out[i] = n == 1
	}
	return out, nil
}

func (ses *sqlSession) query(_ context.Context, query string, args []any, scan func(r row) error) error {
	st, err := ses.stmt(query)
	if err != nil {
		return err
	}
	r, err := st.QueryContext(context.Background(), args...)
	if err != nil {
		return err
	}
	defer r.Close()
	for r.Next() {
		if err := scan(r); err != nil {
			return err
		}
	}
	return r.Err()
}

func (ses *sqlSession) queryEach(ctx context.Context, reads ...read) error {
	for _, rd := range reads {
		for i, args := range rd.args {
			if err := ses.query(ctx, rd.query, args, func(r row) error { return rd.scan(i, r) }); err != nil {
				return err
			}
		}
	}
	return nil
}

func (ses *sqlSession) lockFirst(ctx context.Context, lock read, reads ...read) error {
	if err := ses.queryEach(ctx, lock); err != nil {
		return err
	}
	ses.at = ses.clock()
	return ses.queryEach(ctx, reads...)
}

func (ses *sqlSession) script(ctx context.Context, text string) error {
	_, err := ses.conn.ExecContext(ctx, text)
	return err
}
