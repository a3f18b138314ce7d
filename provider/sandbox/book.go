package sandbox

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"till"
)

// schema is the whole book. It and every statement have one text, which each
// engine's dialect turns into its own words. A reference that was taken twice, which only an
// operator without deduplication does, has copies 0, 1 and so on. A time of 0
// is unset.
const schema = `
CREATE TABLE IF NOT EXISTS requests (
	id             INTEGER PRIMARY KEY,
	reference      BLOB    NOT NULL,
	copy           INTEGER NOT NULL,
	client         BLOB    NOT NULL,
	payment        BLOB    NOT NULL,
	phone          TEXT    NOT NULL,
	minor          INTEGER NOT NULL,
	currency       TEXT    NOT NULL,
	arrived_at     INTEGER NOT NULL,
	expires_at     INTEGER NOT NULL,
	decided_at     INTEGER NOT NULL DEFAULT 0,
	approved       INTEGER NOT NULL DEFAULT 0,
	callback_url   TEXT    NOT NULL,
	callback_due   INTEGER NOT NULL,
	callback_tries INTEGER NOT NULL,
	UNIQUE (reference, copy)
) STRICT;
CREATE INDEX IF NOT EXISTS requests_callback ON requests (callback_due) WHERE callback_due > 0;
CREATE INDEX IF NOT EXISTS requests_prompt ON requests (client, expires_at)
	WHERE substr(phone, -4) = '0000' AND decided_at = 0;
CREATE TABLE IF NOT EXISTS swallowed (
	reference BLOB PRIMARY KEY,
	at        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`

// kinds is what a book of an older release lacks: it knew payments alone.
const addKindColumn = `ALTER TABLE requests ADD COLUMN kind TEXT NOT NULL DEFAULT 'payment'`

const columns = `id, kind, reference, client, payment, phone, minor, currency, arrived_at, expires_at,
	decided_at, approved, callback_url, callback_tries`

// undecided selects what no person has decided, as the index does, and
// openPrompt what still waits for one: ?1 is the client, ?2 the present moment.
const (
	undecided  = `client = ?1 AND kind = 'payment' AND substr(phone, -4) = '0000' AND decided_at = 0`
	openPrompt = undecided + ` AND expires_at > ?2`
)

// The number of a copy is 0 where the unique index refuses a repeated
// reference, and the next free number where the operator takes it again.
const (
	firstCopy = `0`
	nextCopy  = `(SELECT coalesce(max(copy) + 1, 0) FROM requests WHERE reference = ?1)`
)

const (
	openTimeout = 10 * time.Second
	bookTimeout = 5 * time.Second // with one use of the book, where the caller has more
)

// book is the operator's memory.
type book struct {
	writer, reader *sql.DB // the same where any number may write
	dialect        *strings.Replacer
	dedup          bool

	// writing has room for as many as may write at the same time. Callers wait
	// for it under their context.
	writeSlots chan struct{}

	// finishes says that a write that has begun is never interrupted.
	uninterruptible bool

	stmt struct {
		insert, swallow, claim, reschedule, lockPrompt, decide *sql.Stmt // of writer
		newest, nextDue, prompts                               *sql.Stmt // of reader
	}
}

// openBook opens the book, creates what is missing and prepares the
// statements.
func openBook(ctx context.Context, path string, dedup bool) (*book, error) {
	open := openSQLite
	if isPostgres(path) {
		open = openPostgres
	}
	b, err := open(ctx, path, dedup)
	if err != nil {
		return nil, fmt.Errorf("sandbox book: %w", err)
	}
	return b, nil
}

func (b *book) prepare(ctx context.Context) error {
	number := nextCopy
	if b.dedup {
		number = firstCopy
	}
	for _, s := range []struct {
		stmt **sql.Stmt
		db   *sql.DB
		text string
	}{
		{&b.stmt.insert, b.writer, `INSERT INTO requests (reference, copy, client, payment, phone, minor, currency,
			arrived_at, expires_at, callback_url, callback_due, callback_tries, kind)
			VALUES (?1, ` + number + `, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
			ON CONFLICT (reference, copy) DO NOTHING RETURNING id`},
		{&b.stmt.swallow, b.writer, `INSERT INTO swallowed (reference, at) VALUES (?1, ?2) ON CONFLICT DO NOTHING`},
		// One statement finds and takes: no other process can take the same. It
		// finds once, however the engine would like to join.
		{&b.stmt.claim, b.writer, `WITH due AS MATERIALIZED (SELECT id FROM requests
				WHERE callback_due > 0 AND callback_due <= ?3
				ORDER BY callback_due LIMIT ?4 FOR UPDATE SKIP LOCKED)
			UPDATE requests SET callback_tries = callback_tries + 1,
			callback_due = CASE WHEN callback_tries + 1 < ?1 THEN CAST(?2 AS INTEGER) ELSE 0 END
			WHERE id IN (SELECT id FROM due)
			RETURNING ` + columns},
		{&b.stmt.reschedule, b.writer, `UPDATE requests SET callback_due = ?1 WHERE id = ?2 AND callback_tries = ?3`},
		{&b.stmt.lockPrompt, b.writer, `SELECT id FROM requests WHERE ` + undecided + ` AND payment = ?2
			ORDER BY id FOR UPDATE`},
		{&b.stmt.decide, b.writer, `UPDATE requests SET decided_at = ?2, approved = ?3,
			callback_due = CASE callback_url WHEN '' THEN 0 ELSE CAST(?2 AS INTEGER) END
			WHERE ` + openPrompt + ` AND payment = ?4`},
		{&b.stmt.newest, b.reader, `SELECT ` + columns + ` FROM requests WHERE reference = ?1 ORDER BY copy DESC LIMIT 1`},
		{&b.stmt.nextDue, b.reader, `SELECT coalesce(min(callback_due), 0) FROM requests WHERE callback_due > 0`},
		{&b.stmt.prompts, b.reader, `SELECT ` + columns + ` FROM requests WHERE ` + openPrompt + `
			ORDER BY expires_at, id LIMIT ?3`},
	} {
		stmt, err := s.db.PrepareContext(ctx, b.dialect.Replace(s.text))
		if err != nil {
			return err
		}
		*s.stmt = stmt
	}
	return nil
}

func (b *book) close() error {
	var errs []error
	for _, db := range []*sql.DB{b.reader, b.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// write runs f when its turn comes, unless ctx ends before that.
func (b *book) write(ctx context.Context, f func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case b.writeSlots <- struct{}{}:
		defer func() { <-b.writeSlots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if b.uninterruptible {
		return f(context.WithoutCancel(ctx))
	}
	ctx, cancel := context.WithTimeout(ctx, bookTimeout)
	defer cancel()
	return f(ctx)
}

// record writes the request down and reports whether its reference is new. It
// sets the request's id. The first try of its callback, due at due, counts as
// claimed if r.maxCallbackTries is 1.
func (b *book) record(ctx context.Context, r *request, due till.Time) (fresh bool, err error) {
	err = b.write(ctx, func(ctx context.Context) error {
		for {
			rows, err := b.stmt.insert.QueryContext(ctx, r.reference[:], r.client[:], r.payment[:], r.phone, r.amount.Minor,
				r.amount.Currency, int64(r.arrivedAt), int64(r.expiresAt), r.callbackURL, int64(due), r.callbackTries, string(r.kind))
			if err != nil {
				return err
			}
			err = scanAll(rows, func() error {
				fresh = true
				return rows.Scan(&r.id)
			})
			// Without deduplication, a copy that another writer took at the same
			// moment is not ours: the next number is.
			if err != nil || fresh || b.dedup {
				return err
			}
		}
	})
	return fresh, err
}

// recordSwallowed writes down that a send of the reference was swallowed, and reports
// whether it was the first one.
func (b *book) recordSwallowed(ctx context.Context, reference till.ID, now till.Time) (first bool, err error) {
	err = b.write(ctx, func(ctx context.Context) error {
		res, err := b.stmt.swallow.ExecContext(ctx, reference[:], int64(now))
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		first = n == 1
		return err
	})
	return first, err
}

// find returns the newest request with the reference, nil if there is none.
func (b *book) find(ctx context.Context, reference till.ID) (*request, error) {
	ctx, cancel := context.WithTimeout(ctx, bookTimeout)
	defer cancel()
	var r request
	err := r.scan(b.stmt.newest.QueryRowContext(ctx, reference[:]).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &r, err
}

// nextCallback returns when the next callback is due, zero if none is.
func (b *book) nextCallback(ctx context.Context) (next till.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, bookTimeout)
	defer cancel()
	err = b.stmt.nextDue.QueryRowContext(ctx).Scan(&next)
	return next, err
}

// claimCallbacks takes a batch of the callbacks that are due at now. They are
// due again after a lease, in case this process dies, unless it is their last
// try.
func (b *book) claimCallbacks(ctx context.Context, now till.Time) (batch []*request, err error) {
	err = b.write(ctx, func(ctx context.Context) error {
		rows, err := b.stmt.claim.QueryContext(ctx, maxCallbackTries, int64(now.Add(callbackLease)), int64(now), callbackBatch)
		if err != nil {
			return err
		}
		return eachRequest(rows, func(r *request) { batch = append(batch, r) })
	})
	return batch, err
}

// reschedule writes down when the claimed callbacks are due again, zero for
// never; one that another process has claimed meanwhile is left to it.
func (b *book) reschedule(ctx context.Context, due map[*request]till.Time) error {
	if len(due) == 0 {
		return nil
	}
	return b.write(ctx, func(ctx context.Context) error {
		tx, err := b.writer.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		stmt := tx.StmtContext(ctx, b.stmt.reschedule)
		// Two that meet lock in the same order, so neither waits for ever.
		for _, r := range slices.SortedFunc(maps.Keys(due), func(a, b *request) int { return cmp.Compare(a.id, b.id) }) {
			if _, err := stmt.ExecContext(ctx, int64(due[r]), r.id, r.callbackTries); err != nil {
				return err
			}
		}
		return tx.Commit()
	})
}

// decide writes down a person's decision on an open prompt and reports
// whether there was one. It asks for the time when it holds the lock: a
// decision that waited for it must not undo an expiry that was told.
func (b *book) decide(
	ctx context.Context, client, payment till.ID, approve bool, now func() till.Time,
) (found bool, err error) {
	err = b.write(ctx, func(ctx context.Context) error {
		tx, err := b.writer.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.StmtContext(ctx, b.stmt.lockPrompt).ExecContext(ctx, client[:], payment[:]); err != nil {
			return err
		}
		verdict := 0
		if approve {
			verdict = 1
		}
		res, err := tx.StmtContext(ctx, b.stmt.decide).ExecContext(ctx, client[:], int64(now()), verdict, payment[:])
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return err
		}
		found = n > 0
		return tx.Commit()
	})
	return found, err
}

// scan reads the columns of a row.
func (r *request) scan(scan func(...any) error) error {
	var reference, client, payment []byte
	err := scan(&r.id, &r.kind, &reference, &client, &payment, &r.phone, &r.amount.Minor, &r.amount.Currency,
		&r.arrivedAt, &r.expiresAt, &r.decidedAt, &r.approved, &r.callbackURL, &r.callbackTries)
	copy(r.reference[:], reference)
	copy(r.client[:], client)
	copy(r.payment[:], payment)
	return err
}

// eachRequest calls f with every request.
func eachRequest(rows *sql.Rows, f func(*request)) error {
	return scanAll(rows, func() error {
		var r request
		if err := r.scan(rows.Scan); err != nil {
			return err
		}
		f(&r)
		return nil
	})
}

// scanAll calls scan at every row.
func scanAll(rows *sql.Rows, scan func() error) error {
	defer rows.Close()
	for rows.Next() {
		if err := scan(); err != nil {
			return err
		}
	}
	return rows.Err()
}
