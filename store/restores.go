package store

import (
	"context"

	"till"
)

// Restore is an old database that was put back.
type Restore struct {
	At       till.Time // when this was told; also its name
	LostFrom till.Time // what was written from then on is lost
	By       string
	LogID    till.ID // of the event logs since

	KeysReviewedAt till.Time // zero: nobody has looked at the keys yet
	ReleasedAt     till.Time // zero: what was lost is not explained yet
	ReleasedBy     string
}

// InsertRestore writes down that an old database was put back.
func (tx *Tx) InsertRestore(ctx context.Context, r *Restore) error {
	_, err := tx.exec(ctx, `INSERT INTO restores (restored_at, lost_from, restored_by, log_id) VALUES (?, ?, ?, ?)`,
		int64(r.At), int64(r.LostFrom), r.By, r.LogID[:])
	return err
}

// maxRestores is how many restores that are not released are read. More than
// one is there only if an old database was put back while one was open.
const maxRestores = 100

// OpenRestores returns the restores that are not released, the latest first.
func (tx *Tx) OpenRestores(ctx context.Context) ([]*Restore, error) {
	var out []*Restore
	err := tx.rows(ctx, `SELECT restored_at, lost_from, restored_by, log_id, keys_reviewed_at FROM restores
		WHERE released_at IS NULL ORDER BY restored_at DESC LIMIT ?`, []any{maxRestores}, func(r row) error {
		x := &Restore{}
		err := r.Scan(&x.At, &x.LostFrom, &x.By, idDest(&x.LogID), intDest(&x.KeysReviewedAt))
		out = append(out, x)
		return err
	})
	return out, err
}

// Restoring reports whether an old database was put back and is not released.
func (tx *Tx) Restoring(ctx context.Context) (bool, error) {
	var at till.Time
	return tx.one(ctx, `SELECT restored_at FROM restores WHERE released_at IS NULL LIMIT 1`, nil, &at)
}

// ReviewKeys writes down that somebody has looked at the keys that work again.
func (tx *Tx) ReviewKeys(ctx context.Context) error {
	_, err := tx.exec(ctx, `UPDATE restores SET keys_reviewed_at = ? WHERE released_at IS NULL AND keys_reviewed_at IS NULL`, int64(tx.Now()))
	return err
}

// ReleaseRestores writes down that what was lost is explained.
func (tx *Tx) ReleaseRestores(ctx context.Context, by string) error {
	_, err := tx.exec(ctx, `UPDATE restores SET released_at = ?, released_by = ? WHERE released_at IS NULL`, int64(tx.Now()), by)
	return err
}

// LockOpenSteps locks and returns the next steps of a client, by id, of what
// has not ended. Those that were marked as restored before are passed over if
// fresh is set.
func (tx *Tx) LockOpenSteps(ctx context.Context, client, after till.ID, fresh bool, limit int) ([]*Step, error) {
	query := `SELECT ` + stepColumns + ` FROM steps WHERE client_id = ? AND subject_id > ? AND late_from = 0 AND late_reads = 0`
	if fresh {
		query += ` AND restored = 0`
	}
	var out []*Step
	err := tx.rows(ctx, query+` ORDER BY subject_id LIMIT ?`+tx.s.e.lock(), []any{client[:], after[:], limit}, func(r row) error {
		s, err := scanStep(r)
		out = append(out, s)
		return err
	})
	return out, err
}

// MarkRestored writes steps that were open when an old database was put back,
// after they were locked in this transaction.
func (tx *Tx) MarkRestored(ctx context.Context, steps []*Step) error {
	args := make([][]any, len(steps))
	for i, s := range steps {
		args[i] = []any{s.Lane, int64(s.DueAt), s.LeaseVersion, s.Sends, int64(s.SendStartedAt), int64(s.SendDeadline), s.Absent,
			s.ClientID[:], s.SubjectID[:]}
	}
	return tx.set(ctx, `UPDATE steps SET lane = ?, due_at = ?, lease_version = ?, sends = ?, send_started_at = ?, send_deadline = ?, absent = ?, restored = 1, held_at = 0
		WHERE client_id = ? AND subject_id = ?`, args)
}

// Undecided is a payment or payout that was open when an old database was put
// back, and is still.
type Undecided struct {
	Ref  Ref
	Kind string
}

// Undecided returns the first of a kind of those, by client and id.
func (tx *Tx) Undecided(ctx context.Context, kind string, limit int) ([]Undecided, error) {
	var out []Undecided
	err := tx.rows(ctx, `SELECT client_id, subject_id FROM steps WHERE restored = 1 AND kind = ? AND late_from = 0 AND late_reads = 0
		ORDER BY client_id, subject_id LIMIT ?`, []any{kind, limit}, func(r row) error {
		u := Undecided{Kind: kind}
		err := r.Scan(idDest(&u.Ref.Client), idDest(&u.Ref.ID))
		out = append(out, u)
		return err
	})
	return out, err
}

// HastenSteps makes steps due now that wait for later.
func (tx *Tx) HastenSteps(ctx context.Context, refs []Ref) error {
	args := make([][]any, len(refs))
	for i := range refs {
		args[i] = []any{int64(tx.Now()), refs[i].Client[:], refs[i].ID[:], int64(tx.Now())}
	}
	return tx.later(ctx, `UPDATE steps SET due_at = ? WHERE client_id = ? AND subject_id = ? AND due_at > ?`, args)
}
