package refunds

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

// What the sums of a payment's refunds should be, by the rows.
const countedSums = `(SELECT CAST(coalesce(sum(q.amount), 0) AS BIGINT) FROM payouts q WHERE q.client_id = s.client_id AND q.payment_id = s.payment_id AND q.final_event IS NULL),
	(SELECT CAST(coalesce(sum(q.amount), 0) AS BIGINT) FROM payouts q WHERE q.client_id = s.client_id AND q.payment_id = s.payment_id AND q.status = 'success'),
	(SELECT CAST(coalesce(sum(q.amount), 0) AS BIGINT) FROM payouts q WHERE q.client_id = s.client_id AND q.payment_id = s.payment_id AND q.late_event IS NOT NULL),
	(SELECT count(*) FROM payouts q WHERE q.client_id = s.client_id AND q.payment_id = s.payment_id AND q.final_event IS NULL)`

const sumsToVerify = `SELECT s.payment_id, s.amount, s.refunding, s.refunded, s.late, p.amount, ` + countedSums + `
	FROM refund_sums s LEFT JOIN payments p ON p.client_id = s.client_id AND p.id = s.payment_id
	WHERE s.client_id = $1 AND s.payment_id > $2 ORDER BY s.payment_id LIMIT $3`

var verifySums = db.Define(db.SQL{Name: "refunds.verifySums",
	SQLite: sumsToVerify,
	Citus:  db.OfClient(sumsToVerify, "$1")})

const refundsToVerify = `SELECT q.id, q.payment_id, q.created_at, q.method = p.method AND coalesce(q.country, '') = coalesce(p.country, '') AND q.currency = p.currency,
	q.phone, p.phone, t.created_at, e.created_at,
	EXISTS (SELECT 1 FROM refund_sums s WHERE s.client_id = q.client_id AND s.payment_id = q.payment_id),
	(SELECT count(*) FROM transactions l WHERE l.client_id = q.client_id AND l.payout_id = q.id AND (l.type = 'refund' OR l.type = 'late_refund')),
	(SELECT count(*) FROM transactions l WHERE l.client_id = q.client_id AND l.payout_id = q.id AND (l.payment_id IS NULL OR l.payment_id <> q.payment_id))
	FROM payouts q LEFT JOIN payments p ON p.client_id = q.client_id AND p.id = q.payment_id
	LEFT JOIN transactions t ON t.client_id = q.client_id AND t.payment_id = q.payment_id AND t.money_in = 1
	LEFT JOIN events e ON e.client_id = q.client_id AND e.sequence = q.pending_event
	WHERE q.client_id = $1 AND q.payment_id IS NOT NULL AND q.id > $2 ORDER BY q.id LIMIT $3`

var verifyRefunds = db.Define(db.SQL{Name: "refunds.verify",
	SQLite: refundsToVerify,
	Citus:  db.OfClient(refundsToVerify, "$1")})

var rewriteSums = db.Define(db.SQL{Name: "refunds.rewriteSums",
	SQLite: `UPDATE refund_sums SET refunding = $1, refunded = $2, late = $3 WHERE client_id = $4 AND payment_id = $5`})

// VerifySums is the sums of a payment's refunds, with what they should be by the rows.
type VerifySums struct {
	PaymentID till.ID
	Have      till.RefundSums
	Want      till.RefundSums // Amount is the payment's, 0 if there is none
	Open      int             // refunds that are open
}

// EachSums returns the next sums of a client beyond a payment's id. verify compares them, and a
// restore rewrites those that differ.
func EachSums(ctx context.Context, tx *store.Tx, client, after till.ID, limit int) ([]VerifySums, error) {
	return db.ReadAll(ctx, tx.DB(), verifySums, []any{client[:], after[:], limit}, func(r db.Row) (v VerifySums, err error) {
		err = r.Scan(db.ID(&v.PaymentID), &v.Have.Amount, &v.Have.Refunding, &v.Have.Refunded, &v.Have.Late, db.Int(&v.Want.Amount),
			&v.Want.Refunding, &v.Want.Refunded, &v.Want.Late, &v.Open)
		return v, err
	})
}

// Rewrite gives a payment the sums that its refunds add up to. The caller has locked the
// client's head.
func Rewrite(ctx context.Context, tx *store.Tx, client till.ID, v VerifySums) error {
	_, err := tx.DB().Exec(ctx, rewriteSums, v.Want.Refunding, v.Want.Refunded, v.Want.Late, client[:], v.PaymentID[:])
	return err
}

// VerifyRefund is a refund with what it should agree with.
type VerifyRefund struct {
	ID, PaymentID till.ID
	CreatedAt     till.Time

	Same           bool      // it has its payment's method, country and currency; false if there is no such payment
	Phone, PaidBy  string    // its number, and its payment's
	CreditedAt     till.Time // when its payment was credited; zero if it was not
	FirstEventAt   till.Time // later than CreatedAt if it was made again after a restore
	Summed         bool      // its payment has sums
	Lines, Strange int       // its lines of wallets: of type refund or late refund; that name another payment or none
}

// EachRefund returns the next refunds of a client beyond an id.
func EachRefund(ctx context.Context, tx *store.Tx, client, after till.ID, limit int) ([]VerifyRefund, error) {
	return db.ReadAll(ctx, tx.DB(), verifyRefunds, []any{client[:], after[:], limit}, func(r db.Row) (v VerifyRefund, err error) {
		err = r.Scan(db.ID(&v.ID), db.ID(&v.PaymentID), &v.CreatedAt, db.Bool(&v.Same), &v.Phone, db.Text(&v.PaidBy), db.Int(&v.CreditedAt), db.Int(&v.FirstEventAt),
			db.Bool(&v.Summed), &v.Lines, &v.Strange)
		return v, err
	})
}
