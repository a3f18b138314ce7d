package store

import (
	"context"

	"till"
	"till/internal/db"
)

// Callbacks is how often an operator called about a payment or payout, and when.
// What it said is not kept: a callback is a hint, and the check that follows decides. The step
// counts while it is open, in the update that a callback makes anyway; when it ends, its counts are
// added to the row, in an update that adds, so that a cached row cannot lose a count. There is no
// row for each callback: an operator may repeat one for days.
type Callbacks struct {
	Count       int64
	First, Last till.Time // zero: it did not call, or before the times were kept
}

// Callbacks returns the callbacks that came for the step.
func (s *Step) Callbacks() Callbacks {
	c := Callbacks{s.WakeSeq, s.FirstCallback, s.LastCallback}
	if c.Count > 0 && c.First.IsZero() { // they came before the times were kept
		c.First, c.Last = s.CallbackDueAt, s.CallbackDueAt
	}
	return c
}

// Plus returns both together.
func (c Callbacks) Plus(d Callbacks) Callbacks {
	if c.Count == 0 {
		return d
	}
	if d.Count == 0 {
		return c
	}
	return Callbacks{c.Count + d.Count, min(c.First, d.First), max(c.Last, d.Last)}
}

// addCallbacks adds to the callbacks that a row has.
const addCallbacks = `callbacks = callbacks + $1, callback_at = CASE WHEN callback_at > 0 THEN callback_at ELSE $2 END,
		last_callback_at = CASE WHEN last_callback_at > $3 THEN last_callback_at ELSE $4 END WHERE client_id = $5 AND id = $6`

var (
	addPaymentCallback = db.Define(db.SQL{Name: "payments.addCallback", SQLite: `UPDATE payments SET ` + addCallbacks})
	addPayoutCallback  = db.Define(db.SQL{Name: "payouts.addCallback", SQLite: `UPDATE payouts SET ` + addCallbacks})

	selectPaymentCallbacks = db.Define(db.SQL{Name: "payments.selectCallbacks",
		SQLite: `SELECT callbacks, callback_at, last_callback_at FROM payments WHERE client_id = $1 AND id = $2`})
	selectPayoutCallbacks = db.Define(db.SQL{Name: "payouts.selectCallbacks",
		SQLite: `SELECT callbacks, callback_at, last_callback_at FROM payouts WHERE client_id = $1 AND id = $2`})
)

// AddCallback counts a callback for a row that has no step and needs none.
func (tx *Tx) AddCallback(ctx context.Context, kind till.SubjectKind, ref Ref, came till.Time) error {
	q := addPaymentCallback
	if kind == till.SubjectPayout {
		q = addPayoutCallback
	}
	_, err := tx.db.Exec(ctx, q, 1, int64(came), int64(came), int64(came), ref.Client[:], ref.ID[:])
	return err
}

// RowCallbacks returns the callbacks that a row has taken over from its steps. Those of
// an open step are not among them.
func (tx *Tx) RowCallbacks(ctx context.Context, kind till.SubjectKind, ref Ref) (c Callbacks, err error) {
	q := selectPaymentCallbacks
	if kind == till.SubjectPayout {
		q = selectPayoutCallbacks
	}
	err = tx.db.Query(ctx, q, []any{ref.Client[:], ref.ID[:]}, func(r db.Row) error { return r.Scan(&c.Count, &c.First, &c.Last) })
	return c, err
}
