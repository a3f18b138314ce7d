package store

import (
	"context"
	"time"

	"till"
	"till/internal/db"
)

// ahead is the condition that any time of a lane's step is further off than it
// can be.
const ahead = ` FROM steps WHERE lane = $1 AND (due_at > CASE WHEN late_from > 0 OR late_reads > 0 THEN CAST($2 AS BIGINT) WHEN slow > 0 THEN CAST($3 AS BIGINT)
		WHEN sends = 0 THEN CAST($4 AS BIGINT) ELSE CAST($5 AS BIGINT) END
	OR lease_until > $6 OR send_deadline > $6 OR checked_at > $7 OR absent_at > $7 OR late_from > $7 OR mailed_at > $8) LIMIT $9`

var selectAnyStepAhead = db.Define(db.SQL{Name: "clock.selectAnyStepAhead", SQLite: `SELECT 1` + ahead})

// Rows that another transaction is changing are skipped: their times are new. Citus
// locks no rows of several shards: there StepsAhead locks them by their keys.
var lockStepsAhead = db.Define(db.SQL{Name: "clock.lockStepsAhead",
	SQLite:   `SELECT ` + StepColumns + ahead,
	Postgres: `SELECT ` + StepColumns + ahead + ` FOR UPDATE SKIP LOCKED`,
	Citus:    `SELECT ` + StepColumns + ahead})

// paymentWindowsAhead reads what is open in a lane, and would have longer than a
// window from now on: the client, the id and the window.
const paymentWindowsAhead = `SELECT s.client_id, s.subject_id, p.approval_window FROM steps s JOIN payments p ON p.client_id = s.client_id AND p.id = s.subject_id
	WHERE s.lane = $1 AND p.final_event IS NULL AND p.expires_at - p.approval_window > $2 LIMIT $3`

var selectPaymentWindowsAhead = db.Define(db.SQL{Name: "clock.selectPaymentWindowsAhead", SQLite: paymentWindowsAhead})

var lockPaymentWindowsAhead = db.Define(db.SQL{Name: "clock.lockPaymentWindowsAhead",
	SQLite:   paymentWindowsAhead,
	Postgres: paymentWindowsAhead + ` FOR UPDATE SKIP LOCKED`,
	Citus:    paymentWindowsAhead})

// payoutWindowsAhead reads what is open in a lane, and would have longer than a
// window from now on: the client, the id and the window.
const payoutWindowsAhead = `SELECT s.client_id, s.subject_id, p.send_window FROM steps s JOIN payouts p ON p.client_id = s.client_id AND p.id = s.subject_id
	WHERE s.lane = $1 AND p.final_event IS NULL AND p.expires_at - p.send_window > $2 LIMIT $3`

var selectPayoutWindowsAhead = db.Define(db.SQL{Name: "clock.selectPayoutWindowsAhead", SQLite: payoutWindowsAhead})

var lockPayoutWindowsAhead = db.Define(db.SQL{Name: "clock.lockPayoutWindowsAhead",
	SQLite:   payoutWindowsAhead,
	Postgres: payoutWindowsAhead + ` FOR UPDATE SKIP LOCKED`,
	Citus:    payoutWindowsAhead})

var mendMail = db.Define(db.SQL{Name: "clock.mendMail",
	SQLite: `UPDATE steps SET mailed_at = $1 WHERE client_id = $2 AND subject_id = $3`})

// If the clock is set back, some stored times lie too far in the future. A step
// would not become due, and a window would not end, before the clock has reached
// that time again.

// Bounds are how far off the times of steps can be at most.
type Bounds struct {
	Lease time.Duration // the end of a lease, and the deadline of a send
	First time.Duration // a send that was not made yet
	Open  time.Duration // a question about what was sent
	Slow  time.Duration // one that is asked ever more slowly
	Late  time.Duration // a read for late money
}

// ClockSlack is how far times that were read in two places may be apart without
// the clock having been set.
const ClockSlack = time.Second

func (tx *Tx) ahead(lane string, b Bounds, limit int) []any {
	args := []any{lane}
	for _, d := range []time.Duration{b.Late, b.Slow, b.First, b.Open, b.Lease, ClockSlack, MinCallbackInterval + ClockSlack} {
		args = append(args, int64(tx.Now().Add(d)))
	}
	return append(args, limit)
}

// AnyAhead reports whether a time of a lane's steps, or the window of what they are
// about, is further off than it can be.
func (tx *Tx) AnyAhead(ctx context.Context, kind till.SubjectKind, lane string, b Bounds) (bool, error) {
	var n int
	found, err := tx.db.QueryRow(ctx, selectAnyStepAhead, tx.ahead(lane, b, 1), &n)
	if err != nil || found {
		return found, err
	}
	q := selectPaymentWindowsAhead
	if kind == till.SubjectPayout {
		q = selectPayoutWindowsAhead
	}
	err = tx.db.Query(ctx, q, []any{lane, int64(tx.Now().Add(ClockSlack)), 1}, func(db.Row) error { found = true; return nil })
	return found, err
}

// StepsAhead locks and returns up to limit steps of a lane that have a time
// further off than it can be. Steps that another transaction is changing are
// skipped: their times are new.
func (tx *Tx) StepsAhead(ctx context.Context, lane string, b Bounds, limit int) (out []*Step, err error) {
	err = tx.db.Query(ctx, lockStepsAhead, tx.ahead(lane, b, limit), func(r db.Row) error {
		s, err := ScanStep(r)
		out = append(out, s)
		return err
	})
	if err == nil && tx.db.Dialect() == db.Citus {
		return tx.lockAgain(ctx, out)
	}
	return out, err
}

// lockAgain locks steps by their keys, in the order of the keys, and returns those that are
// still there as they are now.
func (tx *Tx) lockAgain(ctx context.Context, steps []*Step) (out []*Step, err error) {
	var refs []Ref
	for _, s := range steps {
		refs = append(refs, Ref{s.ClientID, s.SubjectID})
	}
	now, err := tx.LockSteps(ctx, refs)
	if err != nil {
		return nil, err
	}
	for _, ref := range SortedRefs(refs) {
		if s := now[ref]; s != nil {
			out = append(out, s)
		}
	}
	return out, nil
}

// RepairCallbackTimes says of callbacks that came in the future that they came now: what is
// proven has to be proven after them.
func (tx *Tx) RepairCallbackTimes(ctx context.Context, steps []*Step) error {
	var args [][]any
	for _, s := range steps {
		if s.CallbackDueAt > tx.Now().Add(MinCallbackInterval+ClockSlack) {
			args = append(args, []any{int64(tx.Now()), s.ClientID[:], s.SubjectID[:]})
		}
	}
	return tx.db.Defer(mendMail, args)
}

// RepairWindows ends the windows of what is open in a lane, and would have longer
// than a window from now on, a window from now. It changes up to limit rows of a
// kind and returns how many.
func (tx *Tx) RepairWindows(ctx context.Context, kind till.SubjectKind, lane string, limit int) (int, error) {
	lock, extend := lockPaymentWindowsAhead, extendPayment
	if kind == till.SubjectPayout {
		lock, extend = lockPayoutWindowsAhead, extendPayout
	}
	var args [][]any
	err := tx.db.Query(ctx, lock, []any{lane, int64(tx.Now().Add(ClockSlack)), limit}, func(r db.Row) error {
		var client, id till.ID
		var window till.Time
		err := r.Scan(db.ID(&client), db.ID(&id), &window)
		args = append(args, []any{int64(tx.Now() + window), client.Bytes(), id.Bytes()})
		return err
	})
	if err != nil {
		return 0, err
	}
	return len(args), tx.db.Defer(extend, args)
}
