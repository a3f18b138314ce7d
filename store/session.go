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

// session is one connection with its prepared statements, which live as long
// as it does. It is used by one transaction at a time.
type session interface {
	// begin starts a transaction and returns the engine's clock.
	begin(ctx context.Context, write bool) (till.Time, error)
	commit(ctx context.Context) error
	rollback(ctx context.Context)

	// exec runs a write and returns how many rows it touched.
	exec(ctx context.Context, query string, args []any) (int64, error)
	// each runs one write for many rows, in their order, and returns how many
	// rows each touched: one round trip where there is a network.
	each(ctx context.Context, query string, args [][]any) ([]int64, error)
	// query runs a read and calls scan for each row.
	query(ctx context.Context, query string, args []any, scan func(r row) error) error
	// queryEach runs one read for many arguments, in their order.
	queryEach(ctx context.Context, query string, args [][]any, scan func(i int, r row) error) error
	// script runs the statements of a migration.
	script(ctx context.Context, text string) error
	// clock reads the engine's clock inside the transaction.
	clock(ctx context.Context) (till.Time, error)

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
	// lock is the clause that locks the rows of a read until the commit.
	lock() string
	// skipLocked is the clause that passes over rows that others have locked.
	skipLocked() string
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
	now   func() till.Time
	stmts map[string]*sql.Stmt
}

func (ses *sqlSession) begin(ctx context.Context, write bool) (till.Time, error) {
	// A write takes the lock at once: a transaction that reads first and
	// upgrades later could find that it must start over.
	query := "BEGIN"
	if write {
		query = "BEGIN IMMEDIATE"
	}
	_, err := ses.exec(ctx, query, nil)
	return ses.now(), err
}

func (ses *sqlSession) commit(ctx context.Context) error {
	_, err := ses.exec(ctx, "COMMIT", nil)
	return err
}

func (ses *sqlSession) rollback(ctx context.Context) { ses.exec(ctx, "ROLLBACK", nil) }

func (ses *sqlSession) clock(context.Context) (till.Time, error) { return ses.now(), nil }

func (ses *sqlSession) broken() bool { return false }

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

func (ses *sqlSession) each(ctx context.Context, query string, args [][]any) ([]int64, error) {
	touched := make([]int64, len(args))
	for i, a := range args {
		n, err := ses.exec(ctx, query, a)
		if err != nil {
			return nil, err
		}
		touched[i] = n
	}
	return touched, nil
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

func (ses *sqlSession) queryEach(ctx context.Context, query string, args [][]any, scan func(i int, r row) error) error {
	for i, a := range args {
		if err := ses.query(ctx, query, a, func(r row) error { return scan(i, r) }); err != nil {
			return err
		}
	}
	return nil
}

func (ses *sqlSession) script(ctx context.Context, text string) error {
	_, err := ses.conn.ExecContext(ctx, text)
	return err
}
