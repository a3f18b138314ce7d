package store

import (
	"context"
	"time"

	"till"
)

// A clock that is set back leaves times behind that lie further off than
// anybody would have put them: a step would not be looked at, and a window not be
// over, before the clock has come there again.

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

// ahead is the condition that any time of a lane's step is further off than it
// can be.
const ahead = ` AND (due_at > CASE WHEN late_from > 0 OR late_reads > 0 THEN CAST(? AS BIGINT) WHEN slow > 0 THEN CAST(? AS BIGINT)
		WHEN sends = 0 THEN CAST(? AS BIGINT) ELSE CAST(? AS BIGINT) END
	OR lease_until > ? OR send_deadline > ? OR checked_at > ? OR absent_at > ? OR late_from > ? OR mailed_at > ?) LIMIT ?`

func (tx *Tx) ahead(lane string, b Bounds, limit int) []any {
	args := []any{lane}
	for _, d := range []time.Duration{b.Late, b.Slow, b.First, b.Open, b.Lease, b.Lease, ClockSlack, ClockSlack, ClockSlack, WakePause + ClockSlack} {
		args = append(args, int64(tx.Now().Add(d)))
	}
	return append(args, limit)
}

// windowsAhead is a query for what is open in a lane, and would have longer than a
// window from now on: the client, the id and the window.
func windowsAhead(kind string) string {
	table, window := "payments", "approval_window"
	if kind == KindPayout {
		table, window = "payouts", "send_window"
	}
	return `SELECT s.client_id, s.subject_id, p.` + window + ` FROM steps s JOIN ` + table + ` p ON p.client_id = s.client_id AND p.id = s.subject_id
		WHERE s.lane = ? AND p.final_event IS NULL AND p.expires_at - p.` + window + ` > ? LIMIT ?`
}

// AnyAhead reports whether a time of a lane's steps, or the window of what they are
// about, is further off than it can be.
func (tx *Tx) AnyAhead(ctx context.Context, kind, lane string, b Bounds) (bool, error) {
	var n int
	found, err := tx.one(ctx, `SELECT 1 FROM steps WHERE lane = ?`+ahead, tx.ahead(lane, b, 1), &n)
	if err != nil || found {
		return found, err
	}
	err = tx.rows(ctx, windowsAhead(kind), []any{lane, int64(tx.Now().Add(ClockSlack)), 1}, func(row) error { found = true; return nil })
	return found, err
}

// lockUnlocked is the clause that locks rows, and passes over those that others
// have locked where that can be done.
func (tx *Tx) lockUnlocked() string {
	if clause := tx.s.e.skipLocked(); clause != "" {
		return clause
	}
	return tx.s.e.lock()
}

// StepsAhead locks and returns up to limit steps of a lane of which a time is
// further off than it can be. Those that somebody is just changing are passed over:
// their times are new.
func (tx *Tx) StepsAhead(ctx context.Context, lane string, b Bounds, limit int) (out []*Step, err error) {
	err = tx.rows(ctx, `SELECT `+stepColumns+` FROM steps WHERE lane = ?`+ahead+tx.lockUnlocked(), tx.ahead(lane, b, limit), func(r row) error {
		s, err := scanStep(r)
		out = append(out, s)
		return err
	})
	return out, err
}

// MendMail says of callbacks that came in the future that they came now: what is
// proven has to be proven after them.
func (tx *Tx) MendMail(ctx context.Context, steps []*Step) error {
	var args [][]any
	for _, s := range steps {
		if s.MailedAt > tx.Now().Add(WakePause+ClockSlack) {
			args = append(args, []any{int64(tx.Now()), s.ClientID[:], s.SubjectID[:]})
		}
	}
	return tx.later(ctx, `UPDATE steps SET mailed_at = ? WHERE client_id = ? AND subject_id = ?`, args)
}

// MendWindows ends the windows of what is open in a lane, and would have longer
// than a window from now on, a window from now. It changes up to limit rows of a
// kind and returns how many.
func (tx *Tx) MendWindows(ctx context.Context, kind, lane string, limit int) (int, error) {
	var args [][]any
	err := tx.rows(ctx, windowsAhead(kind)+tx.lockUnlocked(), []any{lane, int64(tx.Now().Add(ClockSlack)), limit}, func(r row) error {
		var client, id till.ID
		var window till.Time
		err := r.Scan(idDest(&client), idDest(&id), &window)
		args = append(args, []any{int64(tx.Now() + window), client.Bytes(), id.Bytes()})
		return err
	})
	if err != nil {
		return 0, err
	}
	query := `UPDATE payments SET expires_at = ? WHERE client_id = ? AND id = ? AND final_event IS NULL`
	if kind == KindPayout {
		query = `UPDATE payouts SET expires_at = ? WHERE client_id = ? AND id = ? AND final_event IS NULL`
	}
	return len(args), tx.later(ctx, query, args)
}
