package store

import (
	"context"

	"till/internal/db"
)

var erasePayment = db.Define(db.SQL{Name: "erase.payment",
	SQLite: `UPDATE payments SET phone = $1, body_hash = $2, body_version = $3, document = $4, erased_at = $5
		WHERE client_id = $6 AND id = $7 AND erased_at IS NULL AND final_event IS NOT NULL`})

var erasePayout = db.Define(db.SQL{Name: "erase.payout",
	SQLite: `UPDATE payouts SET phone = $1, body_hash = $2, body_version = $3, document = $4, erased_at = $5
		WHERE client_id = $6 AND id = $7 AND erased_at IS NULL AND final_event IS NOT NULL`})

var forgetPhone = db.Define(db.SQL{Name: "erase.forgetPhone",
	SQLite: `DELETE FROM phone_index WHERE client_id = $1 AND mark = $2 AND payout = $3 AND id = $4`})

var forgetAnswers = db.Define(db.SQL{Name: "erase.forgetAnswers",
	SQLite: `UPDATE webhook_deliveries SET answer_text = NULL WHERE client_id = $1 AND subject_id = $2 AND answer_text IS NOT NULL`})

// Erased is what a payment or payout has after its person's data was taken out.
type Erased struct {
	Ref         Ref
	Payout      bool
	Phone       string // the old one; the index forgets it
	ErasedPhone string
	BodyHash    [32]byte
	BodyVersion int
	Document    []byte
}

// Erase takes a person's data out of a payment or payout that has ended, and out of what
// is kept about it: the index of phones and receivers' answers. It reports false if that was
// done before, or if the row has not ended.
func (tx *Tx) Erase(ctx context.Context, e *Erased, key PhoneKey) (bool, error) {
	q, kind := erasePayment, int64(0)
	if e.Payout {
		q, kind = erasePayout, 1
	}
	n, err := tx.db.Exec(ctx, q, e.ErasedPhone, e.BodyHash[:], e.BodyVersion, e.Document, int64(tx.Now()), e.Ref.Client[:], e.Ref.ID[:])
	if err != nil || n == 0 {
		return false, err
	}
	if _, err := tx.db.Exec(ctx, forgetPhone, e.Ref.Client[:], key.Mark(e.Phone), kind, e.Ref.ID[:]); err != nil {
		return false, err
	}
	if err := tx.InsertPhones(e.Ref.Client, key, e.Payout, []PhoneRow{{ID: e.Ref.ID, Phone: e.ErasedPhone}}); err != nil {
		return false, err
	}
	_, err = tx.db.Exec(ctx, forgetAnswers, e.Ref.Client[:], e.Ref.ID[:])
	return true, err
}

// HasOpenWork reports whether something is still to be done about a payment or payout: a
// call is scheduled, late reads included, or a case is open.
func (tx *Tx) HasOpenWork(ctx context.Context, ref Ref) (bool, error) {
	step, err := tx.Step(ctx, ref)
	if err != nil || step != nil {
		return step != nil, err
	}
	open, err := tx.Cases(ctx, CaseFilter{Client: ref.Client, Subject: ref.ID, Limit: 1})
	return len(open) > 0, err
}
