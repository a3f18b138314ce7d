package checkouts

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

const behind = `SELECT c.client_id, c.sequence, h.last_event FROM checkout_cursors c JOIN client_heads h ON h.client_id = c.client_id
	WHERE c.client_id > $1 AND h.last_event > c.sequence ORDER BY c.client_id LIMIT $2`

var selectBehind = db.Define(db.SQL{Name: "checkouts.selectBehind", SQLite: behind})

var selectCursor = db.Define(db.SQL{Name: "checkouts.selectCursor",
	SQLite: `SELECT sequence FROM checkout_cursors WHERE client_id = $1`})

var saveCursor = db.Define(db.SQL{Name: "checkouts.saveCursor",
	SQLite: `UPDATE checkout_cursors SET sequence = $1 WHERE client_id = $2`})

const ofStretch = `SELECT DISTINCT a.checkout_id FROM events e JOIN payments p ON p.client_id = e.client_id AND p.id = e.subject_id
	JOIN checkout_asks a ON a.client_id = p.client_id AND a.key = p.idempotency_key
	WHERE e.client_id = $1 AND e.sequence > $2 AND e.sequence <= $3
	AND e.kind IN ('payment.success', 'payment.late_success', 'payment.failed', 'payment.expired')`

var selectTouched = db.Define(db.SQL{Name: "checkouts.selectTouched",
	SQLite: ofStretch,
	Citus:  db.OfClient(ofStretch, "$1")})

var selectDue = db.Define(db.SQL{Name: "checkouts.selectDue",
	SQLite: `SELECT c.client_id, c.id, c.expires_at FROM checkouts c WHERE c.state = 'open' AND c.expires_at <= $1
		AND (c.expires_at, c.client_id, c.id) > ($2, $3, $4) ORDER BY c.expires_at, c.client_id, c.id LIMIT $5`})

// Cursor is how far a client's event log was followed, and how long it is.
type Cursor struct {
	Client    till.ID
	Sequence  int64
	LastEvent int64
}

// Behind returns up to limit clients, after one of them, whose logs were not followed to their
// ends. Clients that never had a checkout are none of them.
func Behind(ctx context.Context, tx *store.Tx, after till.ID, limit int) ([]Cursor, error) {
	return db.ReadAll(ctx, tx.DB(), selectBehind, []any{after[:], limit}, func(r db.Row) (c Cursor, err error) {
		err = r.Scan(db.ID(&c.Client), &c.Sequence, &c.LastEvent)
		return c, err
	})
}

// ReadCursor returns how far a client's log was followed; false if it never had a checkout.
func ReadCursor(ctx context.Context, tx *store.Tx, client till.ID) (sequence int64, found bool, err error) {
	found, err = tx.DB().QueryRow(ctx, selectCursor, []any{client[:]}, &sequence)
	return sequence, found, err
}

// SaveCursor writes how far a client's log was followed. The caller has locked its head.
func SaveCursor(ctx context.Context, tx *store.Tx, client till.ID, sequence int64) error {
	_, err := tx.DB().Exec(ctx, saveCursor, sequence, client[:])
	return err
}

// Touched returns the checkouts of which a payment has ended, or brought money, in a stretch of
// a client's log, its beginning excluded.
func Touched(ctx context.Context, tx *store.Tx, client till.ID, after, to int64) ([]till.ID, error) {
	return db.ReadAll(ctx, tx.DB(), selectTouched, []any{client[:], after, to}, func(r db.Row) (id till.ID, err error) {
		err = r.Scan(db.ID(&id))
		return id, err
	})
}

// Due is an open checkout whose time is over.
type Due struct {
	store.Ref
	ExpiresAt till.Time
}

// EachDue returns up to limit open checkouts whose time is over, after one of them.
func EachDue(ctx context.Context, tx *store.Tx, after Due, limit int) ([]Due, error) {
	return db.ReadAll(ctx, tx.DB(), selectDue, []any{int64(tx.Now()), int64(after.ExpiresAt), after.Client[:], after.ID[:], limit}, func(r db.Row) (d Due, err error) {
		err = r.Scan(db.ID(&d.Client), db.ID(&d.ID), &d.ExpiresAt)
		return d, err
	})
}
