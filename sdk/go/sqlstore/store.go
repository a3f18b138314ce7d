package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	till "github.com/till-project/till/sdk/go"
)

// Store is a till.Store in a database.
type Store struct {
	db *sql.DB
	d  Dialect
}

// New returns the store in a database. The tables are made by Install, or by the
// files in sdk/schema.
func New(db *sql.DB, d Dialect) *Store { return &Store{db, d} }

var _ till.Store[*sql.Tx] = (*Store)(nil)

// Install implements till.Store.
func (s *Store) Install(ctx context.Context) error {
	for _, statement := range s.d.statements() {
		if _, err := s.db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("till: install: %w", err)
		}
	}
	if err := s.addDetails(ctx); err != nil {
		return fmt.Errorf("till: install: %w", err)
	}
	return nil
}

// addDetails adds the column that tables of the first release lack. Two programs
// may do it at once: the one that comes late finds it there.
func (s *Store) addDetails(ctx context.Context) error {
	missing := func() error {
		found, err := s.db.QueryContext(ctx, "SELECT details FROM till_outbox WHERE 1 = 0")
		if err == nil {
			err = errors.Join(found.Close(), found.Err())
		}
		return err
	}
	if missing() == nil {
		return nil
	}
	_, err := s.db.ExecContext(ctx, "ALTER TABLE till_outbox ADD COLUMN details "+s.d.details)
	if err != nil && missing() == nil {
		return nil
	}
	return err
}

const columns = "idempotency_key, kind, order_id, attempt, body, state, tries, next_at, lease, send_until, remote_id, status, problem, created_at, details"

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// rows reads rows of the outbox.
func (s *Store) rows(ctx context.Context, q querier, rest string, args ...any) ([]till.Row, error) {
	found, err := q.QueryContext(ctx, s.d.text("SELECT "+columns+" FROM till_outbox WHERE "+rest), args...)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var out []till.Row
	for found.Next() {
		var (
			r                           till.Row
			next, lease, until, created int64
			remote, details             sql.NullString
		)
		if err := found.Scan(&r.Key, &r.Kind, &r.Order, &r.Attempt, &r.Body, &r.State, &r.Tries, &next, &lease, &until, &remote, &r.Status, &r.Problem, &created, &details); err != nil {
			return nil, err
		}
		r.NextAt, r.Lease, r.SendUntil, r.CreatedAt = moment(next), moment(lease), moment(until), moment(created)
		r.RemoteID, r.Details = remote.String, details.String
		out = append(out, r)
	}
	return out, found.Err()
}

// moment and millis turn times into numbers and back; the zero time is 0.
func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Attempts implements till.Store.
func (s *Store) Attempts(ctx context.Context, tx *sql.Tx, kind, order string) ([]till.Row, error) {
	return s.rows(ctx, tx, "kind = ? AND order_id = ? ORDER BY attempt", kind, order)
}

// Put implements till.Store. The insert waits for another one of the same
// attempt, and leaves the transaction usable if that one was first.
func (s *Store) Put(ctx context.Context, tx *sql.Tx, r till.Row) (bool, error) {
	_, err := tx.ExecContext(ctx, s.d.text("INSERT INTO till_outbox ("+columns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?, ?, ?, ?)"+s.d.ignore),
		r.Key, r.Kind, r.Order, r.Attempt, r.Body, r.State, r.Tries, millis(r.NextAt), millis(r.Lease), millis(r.SendUntil), r.Status, r.Problem, millis(r.CreatedAt), r.Details)
	if err != nil {
		return false, err
	}
	// A locking read, because a snapshot does not show what another one inserted.
	var key string
	err = tx.QueryRowContext(ctx, s.d.text("SELECT idempotency_key FROM till_outbox WHERE kind = ? AND order_id = ? AND attempt = ?"+s.d.lock), r.Kind, r.Order, r.Attempt).Scan(&key)
	return key == r.Key, err
}

// Newest implements till.Store.
func (s *Store) Newest(ctx context.Context, kind, order string) (*till.Row, error) {
	rows, err := s.rows(ctx, s.db, "kind = ? AND order_id = ? ORDER BY attempt DESC LIMIT 1", kind, order)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// Due implements till.Store.
func (s *Store) Due(ctx context.Context, now time.Time, limit int) ([]till.Row, error) {
	return s.rows(ctx, s.db, "state IN (?, ?) AND next_at <= ? ORDER BY next_at LIMIT ?", till.StateWritten, till.StateSending, millis(now), limit)
}

// Open implements till.Store.
func (s *Store) Open(ctx context.Context, now time.Time, limit int) ([]till.Row, error) {
	return s.rows(ctx, s.db, "state = ? AND next_at <= ? ORDER BY next_at LIMIT ?", till.StateTaken, millis(now), limit)
}

// Since implements till.Store.
func (s *Store) Since(ctx context.Context, from time.Time, afterKey string, limit int) ([]till.Row, error) {
	return s.rows(ctx, s.db, "created_at >= ? AND idempotency_key > ? ORDER BY idempotency_key LIMIT ?", millis(from), afterKey, limit)
}

// Attention implements till.Store.
func (s *Store) Attention(ctx context.Context, from time.Time, limit int) ([]till.Row, error) {
	return s.rows(ctx, s.db, "(state IN (?, ?, ?) OR state = ? AND problem = ?) AND created_at >= ? ORDER BY created_at, idempotency_key LIMIT ?",
		till.StateRefused, till.StateLapsed, till.StateLost, till.StateTaken, till.ResolutionAttention, millis(from), limit)
}

// Count implements till.Store.
func (s *Store) Count(ctx context.Context, row till.Row, lease, next time.Time) (bool, error) {
	return s.change(ctx, s.db, "UPDATE till_outbox SET state = ?, tries = tries + 1, lease = ?, next_at = ? WHERE idempotency_key = ? AND lease = ? AND state = ?",
		till.StateSending, millis(lease), millis(next), row.Key, millis(row.Lease), row.State)
}

// Settle implements till.Store.
func (s *Store) Settle(ctx context.Context, x till.Settlement) (bool, error) {
	return s.settle(ctx, s.db, x)
}

func (s *Store) settle(ctx context.Context, q querier, x till.Settlement) (bool, error) {
	var sets []string
	var args []any
	set := func(column string, value any) { sets, args = append(sets, column+" = ?"), append(args, value) }
	if x.State != "" {
		set("state", x.State)
	}
	if !x.NextAt.IsZero() {
		set("next_at", millis(x.NextAt))
	}
	if !x.SendUntil.IsZero() {
		set("send_until", millis(x.SendUntil))
	}
	if x.RemoteID != nil {
		set("remote_id", *x.RemoteID)
	}
	if x.Status != nil {
		set("status", *x.Status)
	}
	if x.Problem != nil {
		set("problem", *x.Problem)
	}
	if x.Details != nil {
		set("details", *x.Details)
	}
	if len(sets) == 0 {
		return false, errors.New("till: a settlement that changes nothing")
	}
	where := " WHERE idempotency_key = ?"
	args = append(args, x.Key)
	if x.From != nil {
		where += " AND state IN (" + strings.TrimSuffix(strings.Repeat("?, ", len(x.From)), ", ") + ")"
		for _, state := range x.From {
			args = append(args, state)
		}
	}
	if !x.Lease.IsZero() {
		where += " AND lease = ?"
		args = append(args, millis(x.Lease))
	}
	return s.change(ctx, q, "UPDATE till_outbox SET "+strings.Join(sets, ", ")+where, args...)
}

// change runs a statement that changes one row or none. Databases that are busy
// are asked again.
func (s *Store) change(ctx context.Context, q querier, statement string, args ...any) (bool, error) {
	for n := 0; ; n++ {
		res, err := q.ExecContext(ctx, s.d.text(statement), args...)
		if err == nil {
			rows, err := res.RowsAffected()
			return rows > 0, err
		}
		if q != querier(s.db) || n >= maxConflicts || !conflict(err) || pause(ctx, n) != nil {
			return false, err
		}
	}
}

// maxConflicts is how often a transaction is tried again that another one undid.
const maxConflicts = 10

func pause(ctx context.Context, n int) error {
	timer := time.NewTimer(time.Duration(rand.Int64N(int64(10*time.Millisecond) << min(n, 5))))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Apply implements till.Store.
func (s *Store) Apply(ctx context.Context, subject, kind, key string, fn func(context.Context, *sql.Tx, till.Subject, []till.Row) (till.Decision, error)) error {
	for n := 0; ; n++ {
		err := s.apply(ctx, subject, kind, key, fn)
		if err == nil || n >= maxConflicts || !conflict(err) || pause(ctx, n) != nil {
			return err
		}
	}
}

func (s *Store) apply(ctx context.Context, id, kind, key string, fn func(context.Context, *sql.Tx, till.Subject, []till.Row) (till.Decision, error)) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	// A write first: SQLite takes its one lock now, the others that of this row.
	ignore := strings.ReplaceAll(s.d.ignore, "attempt = attempt", "subject = subject")
	if _, err := tx.ExecContext(ctx, s.d.text("INSERT INTO till_subject (subject, "+s.d.rank+", seen, sequence, updated_at) VALUES (?, 0, '', 0, ?)"+ignore), id, time.Now().UnixMilli()); err != nil {
		return err
	}
	subject := till.Subject{ID: id}
	var seen string
	if err := tx.QueryRowContext(ctx, s.d.text("SELECT "+s.d.rank+", seen, sequence FROM till_subject WHERE subject = ?"+s.d.lock), id).Scan(&subject.Rank, &seen, &subject.Sequence); err != nil {
		return err
	}
	subject.Seen = strings.Fields(seen)
	attempts, err := s.attemptsOf(ctx, tx, kind, key)
	if err != nil {
		return err
	}
	decision, err := fn(ctx, tx, subject, attempts)
	if err != nil {
		return err
	}
	if err := s.save(ctx, tx, decision); err != nil {
		return err
	}
	return tx.Commit()
}

// attemptsOf locks all attempts of the order that a key belongs to, in one
// order: two attempts that are paid at the same moment know of each other.
func (s *Store) attemptsOf(ctx context.Context, tx *sql.Tx, kind, key string) ([]till.Row, error) {
	if key == "" {
		return nil, nil
	}
	var order string
	err := tx.QueryRowContext(ctx, s.d.text("SELECT order_id FROM till_outbox WHERE idempotency_key = ? AND kind = ?"), key, kind).Scan(&order)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return s.rows(ctx, tx, "kind = ? AND order_id = ? ORDER BY attempt"+s.d.lock, kind, order)
}

func (s *Store) save(ctx context.Context, tx *sql.Tx, d till.Decision) error {
	if x := d.Subject; x != nil {
		if _, err := tx.ExecContext(ctx, s.d.text("UPDATE till_subject SET "+s.d.rank+" = ?, seen = ?, sequence = ?, updated_at = ? WHERE subject = ?"),
			x.Rank, strings.Join(x.Seen, " "), x.Sequence, time.Now().UnixMilli(), x.ID); err != nil {
			return err
		}
	}
	if d.Settle != nil {
		if _, err := s.settle(ctx, tx, *d.Settle); err != nil {
			return err
		}
	}
	if d.Cursor != nil {
		return s.moveCursor(ctx, tx, *d.Cursor, false)
	}
	return nil
}

// Cursor implements till.Store.
func (s *Store) Cursor(ctx context.Context, name string) (till.Cursor, error) {
	c := till.Cursor{Name: name}
	err := s.db.QueryRowContext(ctx, s.d.text("SELECT log_id, after_sequence FROM till_cursor WHERE name = ?"), name).Scan(&c.Log, &c.After)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return c, err
}

// MoveCursor implements till.Store.
func (s *Store) MoveCursor(ctx context.Context, c till.Cursor, reset bool) error {
	return s.moveCursor(ctx, s.db, c, reset)
}

func (s *Store) moveCursor(ctx context.Context, q querier, c till.Cursor, reset bool) error {
	if reset {
		_, err := s.change(ctx, q, "INSERT INTO till_cursor (name, log_id, after_sequence) VALUES (?, ?, ?)"+s.d.upsert, c.Name, c.Log, c.After)
		return err
	}
	moved, err := s.change(ctx, q, "UPDATE till_cursor SET after_sequence = ? WHERE name = ? AND log_id = ? AND after_sequence < ?", c.After, c.Name, c.Log, c.After)
	if err != nil || moved {
		return err
	}
	ignore := strings.ReplaceAll(s.d.ignore, "attempt = attempt", "name = name")
	_, err = s.change(ctx, q, "INSERT INTO till_cursor (name, log_id, after_sequence) VALUES (?, ?, ?)"+ignore, c.Name, c.Log, c.After)
	return err
}
