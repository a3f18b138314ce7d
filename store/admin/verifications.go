package admin

import (
	"context"
	"time"

	"till"
	"till/internal/db"
	"till/store"
)

var insertVerification = db.Define(db.SQL{Name: "verifications.insert",
	SQLite: `INSERT INTO verifications (at, began_at, problems, audit_key) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`})

var deleteVerifications = db.Define(db.SQL{Name: "verifications.deleteOld",
	SQLite: `DELETE FROM verifications WHERE at < $1`})

var selectVerification = db.Define(db.SQL{Name: "verifications.selectLast",
	SQLite: `SELECT at, began_at, problems, audit_key FROM verifications ORDER BY at DESC LIMIT 1`})

var selectLastVerified = db.Define(db.SQL{Name: "verifications.selectLastWith",
	SQLite: `SELECT max(CASE WHEN problems = 0 THEN at END), max(CASE WHEN problems > 0 THEN at END) FROM verifications`})

// verificationsKept is how long the outcome of a verification is kept.
const verificationsKept = 400 * 24 * time.Hour

// Verification is a run of books.Verify that came to its end.
type Verification struct {
	At, BeganAt till.Time
	Problems    int64
	KeyChecked  bool // the audit chains were compared with the installation's key
}

// InsertVerification writes down that a verification has ended now.
func InsertVerification(ctx context.Context, tx *store.Tx, v Verification) error {
	if _, err := tx.DB().Exec(ctx, deleteVerifications, int64(tx.Now().Add(-verificationsKept))); err != nil {
		return err
	}
	key := 0
	if v.KeyChecked {
		key = 1
	}
	_, err := tx.DB().Exec(ctx, insertVerification, int64(tx.Now()), int64(v.BeganAt), v.Problems, key)
	return err
}

// LastVerification returns the latest verification, nil if there was none.
func LastVerification(ctx context.Context, tx *store.Tx) (*Verification, error) {
	v := &Verification{}
	found, err := tx.DB().QueryRow(ctx, selectVerification, nil, &v.At, &v.BeganAt, &v.Problems, db.Bool(&v.KeyChecked))
	if !found || err != nil {
		return nil, err
	}
	return v, nil
}

// LastVerified returns when a verification last found nothing, and when one last found
// something; zero if none did.
func LastVerified(ctx context.Context, tx *store.Tx) (sound, broken till.Time, err error) {
	_, err = tx.DB().QueryRow(ctx, selectLastVerified, nil, db.Int(&sound), db.Int(&broken))
	return sound, broken, err
}
