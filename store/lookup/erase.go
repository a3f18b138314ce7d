package lookup

import (
	"context"

	"till/internal/db"
	"till/store"
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
	Ref         store.Ref
	Payout      bool
	Before      WordRow // as it was: the indexes forget it
	ErasedPhone string
	BodyHash    [32]byte
	BodyVersion int
	Document    []byte
}

// Erase takes a person's data out of a payment or payout that has ended, and out of what
// is kept about it: the indexes of phones and words, and receivers' answers. It reports false if that was
// done before, or if the row has not ended. LockWords comes before it, once in a transaction.
func Erase(ctx context.Context, tx *store.Tx, e *Erased, key PhoneKey) (bool, error) {
	q, kind := erasePayment, int64(0)
	if e.Payout {
		q, kind = erasePayout, 1
	}
	n, err := tx.DB().Exec(ctx, q, e.ErasedPhone, e.BodyHash[:], e.BodyVersion, e.Document, int64(tx.Now()), e.Ref.Client[:], e.Ref.ID[:])
	if err != nil || n == 0 {
		return false, err
	}
	if _, err := tx.DB().Exec(ctx, forgetPhone, e.Ref.Client[:], key.Mark(e.Before.Phone), kind, e.Ref.ID[:]); err != nil {
		return false, err
	}
	if err := InsertPhones(tx, e.Ref.Client, key, e.Payout, []PhoneRow{{ID: e.Ref.ID, Phone: e.ErasedPhone}}); err != nil {
		return false, err
	}
	if err := forgetWords(ctx, tx, key, e.Payout, &e.Before); err != nil {
		return false, err
	}
	after := e.Before
	after.Phone, after.Document = e.ErasedPhone, e.Document
	if err := InsertWords(tx, key, e.Payout, []*WordRow{&after}); err != nil {
		return false, err
	}
	return true, ForgetAnswers(ctx, tx, e.Ref)
}

// ForgetAnswers deletes what receivers have answered to webhooks about something: it may hold
// what they know of a person.
func ForgetAnswers(ctx context.Context, tx *store.Tx, ref store.Ref) error {
	_, err := tx.DB().Exec(ctx, forgetAnswers, ref.Client[:], ref.ID[:])
	return err
}

// HasOpenWork reports whether something is still to be done about a payment or payout: a
// call is scheduled, late reads included, or a case is open.
func HasOpenWork(ctx context.Context, tx *store.Tx, ref store.Ref) (bool, error) {
	step, err := tx.Step(ctx, ref)
	if err != nil || step != nil {
		return step != nil, err
	}
	open, err := tx.Cases(ctx, store.CaseFilter{Client: ref.Client, Subject: ref.ID, Limit: 1})
	return len(open) > 0, err
}
