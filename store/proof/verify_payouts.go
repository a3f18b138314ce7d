package proof

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

var selectPayoutLines = db.DefineByClient(1, db.SQL{Name: "verify.selectPayoutLines",
	SQLite: `SELECT t.id, t.type, t.direction, t.amount FROM transactions t WHERE t.client_id = $1 AND t.payout_id = $2`,
	Postgres: `SELECT u.nth, found.* FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u,
		LATERAL (SELECT t.id, t.type, t.direction, t.amount FROM transactions t WHERE t.client_id = u.a1 AND t.payout_id = u.a2 OFFSET 0) AS found`,
	Arrays: true})

var countPayoutKeys = db.Define(db.SQL{Name: "verify.countPayoutKeys",
	SQLite: `SELECT count(*), count(DISTINCT idempotency_key) FROM payouts WHERE client_id = $1`})

var sumReserves = db.Define(db.SQL{Name: "verify.sumReserves",
	SQLite: `SELECT CAST(coalesce(sum(amount + fee), 0) AS BIGINT) FROM payouts WHERE client_id = $1 AND currency = $2 AND final_event IS NULL`})

// VerifyPayout is a payout with all rows that belong to it. What it has in common
// with a payment is in VerifyPayment, whose credit is unused.
type VerifyPayout struct {
	VerifyPayment
	Noun till.Noun // a payout or a refund
	Fee  int64

	MoneyOut till.ID // the entry of the fact that its money left; zero if it did not
	FeeEntry till.ID // the entry of the fact that its fee was taken
	PaidOut  int64   // what the entry gave to the operator

	Lines    int // transactions of wallets that say that its money left
	LineID   till.ID
	LineType string
	Debited  int64 // what they sum to
	FeeLines int
	FeeTaken int64
}

var payoutsToVerify = `SELECT p.id, p.status, p.previous_status, p.amount, p.fee, p.currency, p.document, p.provider_reference,
		p.failure_reason, p.failure_code, p.failure_message, p.failure_retryable,
		p.created_at, p.updated_at, p.expires_at, p.send_window, p.connection, ` + store.IssuerOf("p") + `,
		p.pending_event, p.processing_event, p.final_event, p.late_event, CASE WHEN p.payment_id IS NULL THEN 'payout' ELSE 'refund' END, r.client_id, r.subject_id,
		CASE WHEN p.provider_reference IS NOT NULL AND (r.subject_id IS NULL OR r.subject_id <> p.id OR r.client_id <> p.client_id) THEN (SELECT 1 FROM cases c WHERE c.client_id = p.client_id AND c.subject_id = p.id AND c.kind = 'receipt_reused') END,
		s.subject_id IS NOT NULL,
		EXISTS (SELECT 1 FROM cases c WHERE c.client_id = p.client_id AND c.subject_id = p.id AND c.closed_at IS NULL),
		CASE WHEN s.subject_id IS NULL AND p.status <> 'success' THEN (SELECT max(a.last_at) FROM attempts a
			WHERE a.client_id = p.client_id AND a.subject_id = p.id AND a.kind = 'check' AND a.outcome <> 'error') END,
		m.entry_id, f.entry_id,
		(SELECT CAST(sum(o.amount) AS BIGINT) FROM postings o WHERE o.client_id = p.client_id AND o.entry_id = m.entry_id AND o.account = 'operator' AND o.connection = p.connection), ` + verifyEventColumns("e1") + `, ` + verifyEventColumns("e2") + `, ` + verifyEventColumns("e3") + `, ` + verifyEventColumns("e4") + `, ` + verifyEventColumns("e7") + `
		FROM payouts p
		` + store.JoinReceipt(till.SubjectPayout) + `
		LEFT JOIN steps s ON s.client_id = p.client_id AND s.subject_id = p.id
		LEFT JOIN facts m ON m.client_id = p.client_id AND m.subject_id = p.id AND m.fact = 'money_out'
		LEFT JOIN facts f ON f.client_id = p.client_id AND f.subject_id = p.id AND f.fact = 'fee'
		LEFT JOIN events e1 ON e1.client_id = p.client_id AND e1.sequence = p.pending_event
		LEFT JOIN events e2 ON e2.client_id = p.client_id AND e2.sequence = p.processing_event
		LEFT JOIN events e3 ON e3.client_id = p.client_id AND e3.sequence = p.final_event
		LEFT JOIN events e4 ON e4.client_id = p.client_id AND e4.sequence = p.late_event
		LEFT JOIN events e7 ON e7.client_id = p.client_id AND e7.sequence = ` + lastAttention + `
		WHERE p.client_id = $1 AND p.id > $2 ORDER BY p.id LIMIT $3`

var verifyPayouts = db.Define(db.SQL{Name: "verify.verifyPayouts",
	SQLite: payoutsToVerify,
	Citus:  verifyOnCitus(payoutsToVerify, "$1")})

// VerifyPayouts returns the next payouts of a client beyond an id.
func VerifyPayouts(ctx context.Context, tx *store.Tx, client, after till.ID, limit int) ([]*VerifyPayout, error) {
	var out []*VerifyPayout
	err := tx.DB().Query(ctx, verifyPayouts, []any{client[:], after[:], limit}, func(r db.Row) error {
		p := &VerifyPayout{}
		p.ClientID = client
		dest := []any{db.ID(&p.ID), &p.Status, db.Text(&p.PreviousStatus), &p.Amount.Minor, &p.Fee, &p.Amount.Currency, &p.Document, db.Text(&p.ProviderReference),
			db.Text(&p.FailureReason), db.Text(&p.FailureCode), db.Text(&p.FailureMessage), db.Int(&p.FailureRetryable),
			&p.CreatedAt, &p.UpdatedAt, &p.ExpiresAt, db.Duration(&p.ApprovalWindow), &p.Connection, &p.Issuer,
			&p.PendingEvent, db.Int(&p.ProcessingEvent), db.Int(&p.FinalEvent), db.Int(&p.LateEvent), &p.Noun,
			db.ID(&p.ReceiptOwner.Client), db.ID(&p.ReceiptOwner.ID), db.Bool(&p.ReceiptReused),
			db.Bool(&p.Scheduled), db.Bool(&p.OpenCase), db.Int(&p.LastRead),
			db.ID(&p.MoneyOut), db.ID(&p.FeeEntry), db.Int(&p.PaidOut)}
		for _, e := range []*VerifyEvent{&p.Pending, &p.Processing, &p.Last, &p.Late, &p.Attention} {
			dest = append(dest, e.dest()...)
		}
		out = append(out, p)
		return r.Scan(dest...)
	})
	if err != nil || len(out) == 0 {
		return out, err
	}
	payments := make([]*VerifyPayment, len(out))
	for i, p := range out {
		payments[i] = &p.VerifyPayment
	}
	if err := readOwners(ctx, tx, till.SubjectPayout, payments); err != nil {
		return nil, err
	}
	return out, verifyPayoutLines(ctx, tx, client, out)
}

// verifyPayoutLines adds the lines of wallets to payouts.
func verifyPayoutLines(ctx context.Context, tx *store.Tx, client till.ID, payouts []*VerifyPayout) error {
	args := make([][]any, len(payouts))
	for i, p := range payouts {
		args[i] = []any{client[:], p.ID[:]}
	}
	return tx.DB().QueryEach(ctx, selectPayoutLines, args,
		func(i int, r db.Row) error {
			p := payouts[i]
			var id till.ID
			var typ, direction string
			var amount int64
			if err := r.Scan(db.ID(&id), &typ, &direction, &amount); err != nil {
				return err
			}
			if direction == "credit" {
				amount = -amount
			}
			if typ == "fee" {
				p.FeeLines++
				p.FeeTaken += amount
				return nil
			}
			p.Lines++
			p.LineID, p.LineType = id, typ
			p.Debited += amount
			return nil
		})
}

// CountPayoutKeys is CountIdempotencyKeys for payouts.
func CountPayoutKeys(ctx context.Context, tx *store.Tx, client till.ID) (payouts, keys int64, err error) {
	_, err = tx.DB().QueryRow(ctx, countPayoutKeys, []any{client[:]}, &payouts, &keys)
	return payouts, keys, err
}

// Reserves returns what the open payouts of a client hold in a currency.
func Reserves(ctx context.Context, tx *store.Tx, client till.ID, currency string) (sum int64, err error) {
	_, err = tx.DB().QueryRow(ctx, sumReserves,
		[]any{client[:], currency}, &sum)
	return sum, err
}
