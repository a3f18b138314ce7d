package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"till"
	"till/internal/db"
)

// pgSession is a session over one PostgreSQL connection. Statements are
// prepared by the driver on first use. A statement that nobody waits for is
// owed: it goes out with the next one that somebody does wait for, the COMMIT
// at the latest, so that a transaction costs few round trips.
type pgSession struct {
	conn  *pgx.Conn
	fixed func() till.Time                    // a test's clock; nil: the server's
	saw   func(sent time.Time, now till.Time) // told what the server's clock showed
	sets  bool                                // many rows are one statement, if its text takes arrays

	dialect db.Dialect

	owed  []owed
	begun bool      // the server has answered in this transaction
	at    till.Time // its clock; 0 while it was not asked
	err   error     // of asking for the clock
	alone bool      // the wait for a synchronous standby was cancelled
}

// owed is a statement that nobody waits for yet.
type owed struct {
	text  string
	args  []any
	clock bool // it asks for the server's clock
}

const pgClock = `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

func (ses *pgSession) begin(_ context.Context, write bool) error {
	ses.owed, ses.begun, ses.at, ses.err = nil, false, 0, nil
	if ses.fixed != nil {
		ses.at = ses.fixed()
	}
	if write {
		ses.owe("BEGIN", nil)
		return nil
	}
	ses.owe("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", nil)
	if ses.fixed == nil {
		ses.owed = append(ses.owed, owed{text: pgClock, clock: true})
	}
	return nil
}

func (ses *pgSession) owe(text string, args []any) {
	ses.owed = append(ses.owed, owed{text: text, args: args})
}

// send sends what is owed and, behind it, what ask queues, in one round trip.
func (ses *pgSession) send(ctx context.Context, ask func(b *pgx.Batch), answer func(r pgx.BatchResults) error) error {
	if ses.err != nil {
		return ses.err
	}
	var b pgx.Batch
	before := ses.owed
	ses.owed = nil
	for _, o := range before {
		b.Queue(o.text, o.args...)
	}
	ask(&b)
	sent := time.Now()
	r := ses.conn.SendBatch(ctx, &b)
	for _, o := range before {
		if err := ses.heed(o, sent, r); err != nil {
			r.Close()
			return ses.lost(err)
		}
		ses.begun = true
	}
	if err := answer(r); err != nil {
		r.Close()
		return ses.lost(err)
	}
	return ses.lost(r.Close())
}

// heed reads the answer to an owed statement.
func (ses *pgSession) heed(o owed, sent time.Time, r pgx.BatchResults) error {
	if o.clock {
		return ses.scanClock(sent, r)
	}
	_, err := r.Exec()
	return err
}

func (ses *pgSession) reach(ctx context.Context) error { return ses.flush(ctx) }

func (ses *pgSession) flush(ctx context.Context) error {
	if len(ses.owed) == 0 {
		return ses.err
	}
	return ses.send(ctx, func(*pgx.Batch) {}, func(pgx.BatchResults) error { return nil })
}

func (ses *pgSession) scanClock(sent time.Time, r pgx.BatchResults) error {
	err := r.QueryRow().Scan(&ses.at)
	if err == nil {
		ses.saw(sent, ses.at)
	}
	return err
}

// now asks the server only if nothing has shown its clock yet. If that fails,
// so does whatever comes next.
func (ses *pgSession) now() till.Time {
	if ses.at == 0 && ses.err == nil {
		if !slices.ContainsFunc(ses.owed, func(o owed) bool { return o.clock }) {
			ses.owed = append(ses.owed, owed{text: pgClock, clock: true})
		}
		ses.err = ses.flush(context.Background())
	}
	return ses.at
}

// commit sends the COMMIT together with what is owed, but not together with
// the BEGIN: if that meets a dead connection, it is plain that nothing
// happened, and another one can be tried.
func (ses *pgSession) commit(ctx context.Context) error {
	if !ses.begun {
		if err := ses.flush(ctx); err != nil {
			return fmt.Errorf("%w: %w", errBeforeCommit, err)
		}
	}
	if ses.err != nil {
		return fmt.Errorf("%w: %w", errBeforeCommit, ses.err)
	}
	var b pgx.Batch
	writes := ses.owed
	ses.owed, ses.alone = nil, false
	for _, o := range writes {
		b.Queue(o.text, o.args...)
	}
	b.Queue("COMMIT")
	r := ses.conn.SendBatch(ctx, &b)
	for range writes {
		if _, err := r.Exec(); err != nil {
			r.Close()
			return ses.writeFailed(err)
		}
	}
	tag, err := r.Exec()
	if end := r.Close(); err == nil {
		err = end
	}
	switch {
	case err != nil:
		ses.give(err)
		return ses.lost(err)
	case tag.String() == "ROLLBACK":
		return errors.New("the transaction had failed and was rolled back")
	case ses.alone:
		// It is committed and not kept: a failover now would lose it.
		return fmt.Errorf("%w: the commit is not on the synchronous standby", ErrUnavailable)
	}
	return nil
}

// writeFailed returns what is known when a write that went out together with the
// COMMIT failed. The server that refuses a write does not do the COMMIT behind
// it. A connection that broke says nothing, unless not a byte was sent.
func (ses *pgSession) writeFailed(err error) error {
	ses.give(err)
	var refused *pgconn.PgError
	if errors.As(err, &refused) || pgconn.SafeToRetry(err) {
		return fmt.Errorf("%w: %w", errBeforeCommit, ses.lost(err))
	}
	return ses.lost(err)
}

// give closes the connection after an error that may have left it in a state of
// its own.
func (ses *pgSession) give(err error) {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || !harmless(refused) {
		ses.close()
	}
}

// rowsMissing is the SQLSTATE of till_expect_rows.
const rowsMissing = "TL001"

// harmless reports whether a connection is as good as before after an error.
func harmless(e *pgconn.PgError) bool {
	return e.Code == rowsMissing || e.Code == "55P03" || strings.HasPrefix(e.Code, "23") || strings.HasPrefix(e.Code, "40")
}

func (ses *pgSession) rollback(ctx context.Context) {
	ses.owed = nil
	if ses.begun && !ses.broken() {
		ses.conn.Exec(ctx, "ROLLBACK")
	}
}

func (ses *pgSession) broken() bool  { return ses.conn.IsClosed() }
func (ses *pgSession) started() bool { return ses.begun }

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

func (ses *pgSession) exec(ctx context.Context, q *db.SQL, args []any) (touched int64, err error) {
	st := ses.statements(q, [][]any{args})[0]
	err = ses.send(ctx, func(b *pgx.Batch) { b.Queue(st.text, st.args...) }, func(r pgx.BatchResults) error {
		tag, err := r.Exec()
		touched = tag.RowsAffected()
		return err
	})
	return touched, err
}

func (ses *pgSession) later(_ context.Context, q *db.SQL, rows [][]any) error {
	for i := range rows {
		st := ses.statements(q, rows[i:i+1])[0]
		ses.owe(st.text, st.args)
	}
	return nil
}

// set owes a write. If its rows must all be there, the server itself has to say
// that one is not: the COMMIT goes out together with it.
func (ses *pgSession) set(_ context.Context, q *db.SQL, rows [][]any, must bool) error {
	if must && !strings.Contains(q.Text(ses.dialect), "till_expect_rows(") {
		return fmt.Errorf("%s does not count its rows", q.Name)
	}
	for _, st := range ses.statements(q, rows) {
		ses.owe(st.text, st.args)
	}
	return nil
}

func (ses *pgSession) touched(ctx context.Context, q *db.SQL, rows [][]any) ([]bool, error) {
	out := make([]bool, len(rows))
	all := ses.statements(q, rows)
	return out, ses.send(ctx, func(b *pgx.Batch) { queueAll(b, all) }, func(r pgx.BatchResults) error {
		for _, st := range all {
			if err := st.touched(r, out); err != nil {
				return err
			}
		}
		return nil
	})
}

func (ses *pgSession) query(ctx context.Context, q *db.SQL, args []any, scan func(r row) error) error {
	return ses.queryEach(ctx, read{query: q, args: [][]any{args}, scan: func(_ int, r row) error { return scan(r) }})
}

func (ses *pgSession) queryEach(ctx context.Context, reads ...read) error {
	asked := ses.ask(reads)
	if len(asked) == 0 {
		return nil
	}
	return ses.send(ctx, func(b *pgx.Batch) { queueAll(b, asked) }, func(r pgx.BatchResults) error { return scanAll(r, asked) })
}

// lockFirst locks one by one, so that rows are locked in order: the text of lock
// takes no arrays.
func (ses *pgSession) lockFirst(ctx context.Context, before []read, lock read, after ...read) error {
	early, locks, asked := ses.ask(before), ses.ask([]read{lock}), ses.ask(after)
	sent := time.Now()
	return ses.send(ctx, func(b *pgx.Batch) {
		queueAll(b, early)
		queueAll(b, locks)
		if ses.fixed == nil {
			b.Queue(pgClock)
		}
		queueAll(b, asked)
	}, func(r pgx.BatchResults) error {
		if err := scanAll(r, early); err != nil {
			return err
		}
		if err := scanAll(r, locks); err != nil {
			return err
		}
		if ses.fixed != nil {
			ses.at = ses.fixed()
		} else if err := ses.scanClock(sent, r); err != nil {
			return err
		}
		return scanAll(r, asked)
	})
}

func (ses *pgSession) script(ctx context.Context, text string) error {
	if err := ses.flush(ctx); err != nil {
		return err
	}
	if c, ok := ses.conn.PgConn().Conn().(*patientConn); ok {
		c.endless.Store(true)
		c.SetReadDeadline(time.Time{})
		defer c.endless.Store(false)
	}
	text = "SET LOCAL statement_timeout = 0;\n" + text
	_, err := ses.conn.Exec(ctx, text, pgx.QueryExecModeSimpleProtocol)
	return ses.lost(err)
}
