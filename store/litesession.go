package store

import (
	"context"
	"fmt"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"till"
	"till/internal/db"
)

// liteSession is a session over one connection to a SQLite file. Statements
// run to their end whatever becomes of the caller's context: they are short.
type liteSession struct {
	c     *lite
	clock func() till.Time
	at    till.Time

	write   bool      // the transaction may write
	changes int64     // of the connection, when it began
	stamped time.Time // when this connection last raised the file's stamp
}

func (ses *liteSession) begin(_ context.Context, write bool) error {
	// A write takes the lock at once: a transaction that reads first and
	// upgrades later could find that it must start over.
	query := "BEGIN"
	if write {
		query = "BEGIN IMMEDIATE"
	}
	_, err := ses.c.run(query, nil, nil)
	ses.c.inside = err == nil
	if err == nil && !write {
		// A read sees what is there when it first looks. It looks before the clock
		// does, so that nothing that it sees was written after its time.
		_, err = ses.c.run("SELECT 1 FROM sqlite_schema LIMIT 1", nil, nil)
	}
	ses.at = ses.clock()
	ses.write, ses.changes = write, sqlite3.Xsqlite3_total_changes64(ses.c.tls, ses.c.db)
	return err
}

func (ses *liteSession) commit(context.Context) error {
	if ses.c.lost != nil { // somebody has passed over an error
		return fmt.Errorf("%w: %w", errBeforeCommit, ses.c.lost)
	}
	if err := ses.stamp(); err != nil {
		return fmt.Errorf("%w: %w", errBeforeCommit, err)
	}
	_, err := ses.c.run("COMMIT", nil, nil)
	ses.c.inside = err != nil
	return err
}

func (ses *liteSession) rollback(context.Context) {
	ses.c.inside, ses.c.lost = false, nil
	ses.c.run("ROLLBACK", nil, nil) // there may be nothing left of it
}

func (ses *liteSession) reach(context.Context) error { return nil } // begin has

func (ses *liteSession) now() till.Time { return ses.at }
func (ses *liteSession) broken() bool   { return false }
func (ses *liteSession) started() bool  { return true }
func (ses *liteSession) close()         { ses.c.close() }

func (ses *liteSession) exec(_ context.Context, q *db.SQL, args []any) (int64, error) {
	return ses.c.run(q.SQLite, args, nil)
}

func (ses *liteSession) later(ctx context.Context, q *db.SQL, rows [][]any) error {
	return ses.set(ctx, q, rows, false)
}

func (ses *liteSession) set(_ context.Context, q *db.SQL, rows [][]any, must bool) error {
	for _, args := range rows {
		if n, err := ses.c.run(q.SQLite, args, nil); err != nil {
			return err
		} else if must && n != 1 {
			return fmt.Errorf("%w: %d rows were there, not one: %s", ErrConflict, n, q.Name)
		}
	}
	return nil
}

func (ses *liteSession) touched(_ context.Context, q *db.SQL, rows [][]any) ([]bool, error) {
	out := make([]bool, len(rows))
	for i, args := range rows {
		n, err := ses.c.run(q.SQLite, args, nil)
		if err != nil {
			return nil, err
		}
		out[i] = n == 1
	}
	return out, nil
}

func (ses *liteSession) query(_ context.Context, q *db.SQL, args []any, scan func(r row) error) error {
	_, err := ses.c.run(q.SQLite, args, scan)
	return err
}

func (ses *liteSession) queryEach(_ context.Context, reads ...read) error {
	for _, rd := range reads {
		i := 0
		scan := func(r row) error { return rd.scan(i, r) }
		for ; i < len(rd.args); i++ {
			if _, err := ses.c.run(sqlOf(rd.query).SQLite, rd.args[i], scan); err != nil {
				return err
			}
		}
	}
	return nil
}

func (ses *liteSession) lockFirst(ctx context.Context, before []read, lock read, after ...read) error {
	if err := ses.queryEach(ctx, append(before, lock)...); err != nil {
		return err
	}
	ses.at = ses.clock()
	return ses.queryEach(ctx, after...)
}

func (ses *liteSession) script(_ context.Context, text string) error { return ses.c.script(text) }
