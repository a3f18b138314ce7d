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

// schema creates the book. It and every statement have one text, which each engine's
// dialect adapts. A reference that was accepted twice, which happens only without
// deduplication, has copies 0, 1 and so on. A time of 0 is unset.
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
CREATE TABLE IF NOT EXISTS swallowed (
	reference BLOB PRIMARY KEY,
	at        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`

// laterColumns are the columns of requests that a book of an older release
// lacks.
var laterColumns = []struct{ name, definition string }{
	{"kind", `TEXT NOT NULL DEFAULT 'payment'`},
	{"asked", `INTEGER NOT NULL DEFAULT 0`},      // a handset held the number when the request arrived
	{"decision", `TEXT NOT NULL DEFAULT ''`},     // what a person decided; '': see approved
	{"wrong_pins", `INTEGER NOT NULL DEFAULT 0`}, // how often a wrong PIN was typed
}

// laterSchema needs the later columns. A handset holds a number until
// held_until.
const laterSchema = `
DROP INDEX IF EXISTS requests_prompt;
CREATE INDEX IF NOT EXISTS requests_open_prompt ON requests (client, expires_at)
	WHERE (asked = 1 OR substr(phone, -4) = '0000') AND decided_at = 0;
CREATE INDEX IF NOT EXISTS requests_phone ON requests (client, phone, id);
CREATE TABLE IF NOT EXISTS handsets (
	client     BLOB    NOT NULL,
	phone      TEXT    NOT NULL,
	state      TEXT    NOT NULL,
	opened_at  INTEGER NOT NULL,
	held_until INTEGER NOT NULL,
	PRIMARY KEY (client, phone)
) STRICT, WITHOUT ROWID;
`

const columns = `id, kind, reference, client, payment, phone, minor, currency, arrived_at, expires_at,
	decided_at, approved, decision, asked, wrong_pins, callback_url, callback_tries`

// undecided selects requests without a person's decision, like the index. openPrompt
// selects those that still wait for one: ?1 is the client, ?2 the present time.
const (
	undecided  = `client = ?1 AND kind = 'payment' AND (asked = 1 OR substr(phone, -4) = '0000') AND decided_at = 0`
	openPrompt = undecided + ` AND expires_at > ?2`
)

const (
	oneHandset      = `SELECT state, opened_at, held_until FROM handsets WHERE client = ?1 AND phone = ?2`
	requestsOfPhone = `SELECT ` + columns + ` FROM requests WHERE client = ?1 AND phone = ?2 ORDER BY id DESC LIMIT ?3`
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

// book is the operator's database.
type book struct {
	writer, reader *sql.DB // the same where any number may write
	dialect        *strings.Replacer
	dedup          bool

	// writeSlots has room for as many as may write at the same time. Callers wait for it
	// under their context.
	writeSlots chan struct{}

	// uninterruptible says that a write that has begun is never interrupted.
	uninterruptible bool

	stmt struct {
		insert, swallow, claim, reschedule, lockPrompt, decide *sql.Stmt // of writer
		countPIN, hold, dropHandsets, lockHandset, movements   *sql.Stmt // of writer
		newest, nextDue, prompts, handset, ofPhone             *sql.Stmt // of reader
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
			arrived_at, expires_at, callback_url, callback_due, callback_tries, kind, asked)
			VALUES (?1, ` + number + `, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
			ON CONFLICT (reference, copy) DO NOTHING RETURNING id`},
		{&b.stmt.swallow, b.writer, `INSERT INTO swallowed (reference, at) VALUES (?1, ?2) ON CONFLICT DO NOTHING`},
		// One statement finds and takes, so no other process can take the same.
		// MATERIALIZED makes every engine find only once.
		{&b.stmt.claim, b.writer, `WITH due AS MATERIALIZED (SELECT id FROM requests
				WHERE callback_due > 0 AND callback_due <= ?3
				ORDER BY callback_due LIMIT ?4 FOR UPDATE SKIP LOCKED)
			UPDATE requests SET callback_tries = callback_tries + 1,
			callback_due = CASE WHEN callback_tries + 1 < ?1 THEN CAST(?2 AS INTEGER) ELSE 0 END
			WHERE id IN (SELECT id FROM due)
			RETURNING ` + columns},
		{&b.stmt.reschedule, b.writer, `UPDATE requests SET callback_due = ?1 WHERE id = ?2 AND callback_tries = ?3`},
		{&b.stmt.lockPrompt, b.writer, `SELECT ` + columns + ` FROM requests WHERE ` + undecided + ` AND payment = ?2
			ORDER BY id FOR UPDATE`},
		{&b.stmt.decide, b.writer, `UPDATE requests SET decided_at = ?2, approved = ?3, decision = ?5,
			callback_due = CASE callback_url WHEN '' THEN 0 ELSE CAST(?2 AS INTEGER) END
			WHERE ` + openPrompt + ` AND payment = ?4`},
		{&b.stmt.countPIN, b.writer, `UPDATE requests SET wrong_pins = wrong_pins + 1 WHERE ` + undecided + ` AND payment = ?2`},
		{&b.stmt.hold, b.writer, `INSERT INTO handsets (client, phone, state, opened_at, held_until) VALUES (?1, ?2, ?3, ?4, ?5)
			ON CONFLICT (client, phone) DO UPDATE SET state = excluded.state, held_until = excluded.held_until,
			opened_at = CASE WHEN handsets.held_until < ?6 THEN excluded.opened_at ELSE handsets.opened_at END`},
		{&b.stmt.dropHandsets, b.writer, `DELETE FROM handsets WHERE client = ?1 AND phone NOT IN
			(SELECT phone FROM handsets WHERE client = ?1 ORDER BY held_until DESC LIMIT ?2)`},
		{&b.stmt.lockHandset, b.writer, oneHandset + ` FOR UPDATE`},
		{&b.stmt.movements, b.writer, requestsOfPhone},
		{&b.stmt.handset, b.reader, oneHandset},
		{&b.stmt.ofPhone, b.reader, requestsOfPhone},
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

// record records the request and reports whether its reference is new. It sets the
// request's id. The first try of its callback, due at due, counts as claimed if
// r.maxCallbackTries is 1.
func (b *book) record(ctx context.Context, r *request, due till.Time) (fresh bool, err error) {
	err = b.write(ctx, func(ctx context.Context) error {
		for {
			rows, err := b.stmt.insert.QueryContext(ctx, r.reference[:], r.client[:], r.payment[:], r.phone, r.amount.Minor,
				r.amount.Currency, int64(r.arrivedAt), int64(r.expiresAt), r.callbackURL, int64(due), r.callbackTries, string(r.kind), number(r.asked))
			if err != nil {
				return err
			}
			err = scanAll(rows, func() error {
				fresh = true
				return rows.Scan(&r.id)
			})
			// Without deduplication, a copy number that another writer took at the same
			// moment is not ours: the next number is.
			if err != nil || fresh || b.dedup {
				return err
			}
		}
	})
	return fresh, err
}

// recordSwallowed records that a send of the reference was swallowed, and reports whether
// it was the first one.
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

// reschedule records when the claimed callbacks are due again, zero for never. It skips one
// that another process has claimed meanwhile.
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
		// In one order, so that two processes never wait for each other.
		for _, r := range slices.SortedFunc(maps.Keys(due), func(a, b *request) int { return cmp.Compare(a.id, b.id) }) {
			if _, err := stmt.ExecContext(ctx, int64(due[r]), r.id, r.callbackTries); err != nil {
				return err
			}
		}
		return tx.Commit()
	})
}

// scan reads the columns of a row.
func (r *request) scan(scan func(...any) error) error {
	var reference, client, payment []byte
	err := scan(&r.id, &r.kind, &reference, &client, &payment, &r.phone, &r.amount.Minor, &r.amount.Currency,
		&r.arrivedAt, &r.expiresAt, &r.decidedAt, &r.approved, &r.decision, &r.asked, &r.wrongPINs, &r.callbackURL, &r.callbackTries)
	copy(r.reference[:], reference)
	copy(r.client[:], client)
	copy(r.payment[:], payment)
	return err
}

// number returns a truth as the book writes it.
func number(b bool) int {
	if b {
		return 1
	}
	return 0
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
