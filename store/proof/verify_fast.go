package proof

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"till"
	"till/internal/db"
	"till/store"
)

var preferIndexes = db.Define(db.SQL{Name: "verify.preferIndexes",
	SQLite: `SELECT 1`,
	Postgres: `SELECT set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
		set_config('enable_seqscan', 'off', true), set_config('max_parallel_workers_per_gather', '0', true), set_config('jit', 'off', true)`})

var selectEventsFast = db.Define(db.SQL{Name: "verify.eventsFast",
	SQLite: `SELECT sequence, created_at, substr(kind, 1, 8) = 'payment.' AND kind <> 'payment.needs_attention' AND kind <> 'payment.attention_ended' AND kind <> 'payment.action_required' FROM events WHERE client_id = $1 AND sequence > $2 ORDER BY sequence LIMIT $3`})

var selectIdempotencyKeys = db.Define(db.SQL{Name: "verify.selectIdempotencyKeys",
	SQLite: `SELECT id, idempotency_key FROM payments WHERE client_id = $1 AND id > $2 ORDER BY id LIMIT $3`})

var selectLogLengths = db.Define(db.SQL{Name: "verify.selectLogLengths",
	SQLite: `SELECT CAST(coalesce(sum(h.last_event), 0) AS BIGINT), CAST(coalesce(sum(h.last_audit), 0) AS BIGINT) FROM client_heads h`})

// With the reads in this file, a check of the whole database reads only unusual
// payments in full. Reading each payment, its events and its credit out of the
// database takes several times as long as comparing them there. A usual payment
// has the commonest history, and all its rows agree. Every other payment, right or
// wrong, is read in full and judged by books.

// PreferIndexes makes the planner look up rows by key for the rest of the
// transaction, and lets its reads take any time. For a slice of ten thousand rows,
// PostgreSQL would read and hash whole tables, once for each slice. A slice of large
// documents on a busy server may take longer than a request may wait.
func PreferIndexes(ctx context.Context, tx *store.Tx) error {
	tx.DB().WithoutTimeout()
	return tx.DB().Query(ctx, preferIndexes, nil, func(db.Row) error { return nil })
}

// FastPayment is a payment as far as the fast check needs it. One with two
// credits comes twice.
type FastPayment struct {
	ID                   till.ID
	CreatedAt, UpdatedAt till.Time
	Amount               till.Money
	Document             []byte
	Connection           string
	Usual                bool
	Named                int64 // how many of its events are in the log up to its end; see VerifyPaymentsFast

	// Unscheduled says that nothing is scheduled for a payment that ended other
	// than in success; LastRead is when the operator was last read then.
	Unscheduled bool
	LastRead    till.Time
}

// legalMoves is the condition that a payment's last move is one of till.Transitions.
func legalMoves() string {
	moves := []string{`p.status = 'pending' AND coalesce(p.previous_status, '') = ''`}
	for _, from := range slices.Sorted(maps.Keys(till.Transitions)) {
		for _, to := range till.Transitions[from] {
			moves = append(moves, fmt.Sprintf(`p.previous_status = '%s' AND p.status = '%s'`, from, to))
		}
	}
	return `(` + strings.Join(moves, ` OR `) + `)`
}

// usualPayment is true of a payment that had no further change after its first
// end. It has exactly the events of such a payment, and it was credited if and
// only if it succeeded. The head's last time is $2.
var usualPayment = legalMoves() + `
	AND p.late_event IS NULL AND p.reversed_event IS NULL AND p.updated_event IS NULL AND p.fee = 0
	AND (p.provider_reference IS NULL OR r.subject_id = p.id AND r.client_id = p.client_id)
	AND p.updated_at >= p.created_at AND p.updated_at <= $2
	AND e1.subject_id = p.id AND e1.kind = 'payment.pending' AND e1.status = 'pending' AND e1.created_at = p.created_at
	AND e1.expires_at = p.created_at + p.approval_window AND e1.resolution = 'waiting' AND e1.calls = 0
	AND e1.provider_reference IS NULL AND e1.failure_reason IS NULL
	AND CASE WHEN p.processing_event IS NULL THEN p.status <> 'processing' AND coalesce(p.previous_status, '') <> 'processing'
		ELSE (p.status = 'processing' OR p.previous_status = 'processing') AND e2.subject_id = p.id
			AND e2.kind = 'payment.processing' AND e2.status = 'processing' AND e2.sequence > e1.sequence AND e2.created_at > e1.created_at END
	AND CASE WHEN p.final_event IS NULL THEN (p.status = 'pending' OR p.status = 'processing') AND s.subject_id IS NOT NULL
			AND t.id IS NULL AND p.updated_at = coalesce(e2.created_at, e1.created_at)
		ELSE (p.status = 'success' OR p.status = 'failed' OR p.status = 'expired') AND e3.subject_id = p.id
			AND e3.kind = 'payment.' || p.status AND e3.status = p.status
			AND e3.sequence > coalesce(e2.sequence, e1.sequence) AND e3.created_at > coalesce(e2.created_at, e1.created_at)
			AND e3.created_at = p.updated_at AND e3.expires_at = p.expires_at
			AND (e3.resolution = 'confirmed' OR e3.resolution = 'needs_attention')
			AND e3.failure_reason IS NOT DISTINCT FROM p.failure_reason AND e3.failure_code IS NOT DISTINCT FROM p.failure_code
			AND e3.failure_message IS NOT DISTINCT FROM p.failure_message AND e3.failure_retryable IS NOT DISTINCT FROM p.failure_retryable
			AND e3.provider_reference IS NOT DISTINCT FROM p.provider_reference
			AND CASE WHEN p.status = 'success' THEN t.type = 'collection' AND t.amount = p.amount AND t.currency = p.currency
					AND w.currency = p.currency AND t.created_at = p.updated_at
				ELSE t.id IS NULL END END`

// namedUpTo counts the events that a payment names up to a sequence, $1.
const namedUpTo = `CASE WHEN p.pending_event <= $1 THEN 1 ELSE 0 END + CASE WHEN p.processing_event <= $1 THEN 1 ELSE 0 END
	+ CASE WHEN p.final_event <= $1 THEN 1 ELSE 0 END + CASE WHEN p.late_event <= $1 THEN 1 ELSE 0 END + CASE WHEN p.reversed_event <= $1 THEN 1 ELSE 0 END
	+ CASE WHEN p.updated_event <= $1 THEN 1 ELSE 0 END`

var selectPaymentsFast = db.Define(db.SQL{Name: "verify.paymentsFast",
	SQLite: paymentsFast,
	Citus:  verifyOnCitus(strings.Replace(paymentsFast, `SELECT p.id`, `SELECT p.provider_reference, `+store.IssuerOf("p")+`, p.id`, 1), "$3")})

var paymentsFast = `SELECT p.id, p.created_at, p.updated_at, p.amount, p.currency, p.document, p.connection, ` + namedUpTo + `, (` + usualPayment + `) IS TRUE,
	(p.status = 'failed' OR p.status = 'expired') AND s.subject_id IS NULL,
	CASE WHEN (p.status = 'failed' OR p.status = 'expired') AND s.subject_id IS NULL THEN (SELECT max(a.last_at) FROM attempts a
		WHERE a.client_id = p.client_id AND a.subject_id = p.id AND a.kind = 'check' AND a.outcome <> 'error') END
	FROM payments p
	` + store.JoinReceipt(till.SubjectPayment) + `
	LEFT JOIN steps s ON s.client_id = p.client_id AND s.subject_id = p.id
	LEFT JOIN transactions t ON t.client_id = p.client_id AND t.payment_id = p.id AND t.money_in = 1
	LEFT JOIN wallets w ON w.client_id = t.client_id AND w.id = t.wallet_id
	LEFT JOIN events e1 ON e1.client_id = p.client_id AND e1.sequence = p.pending_event
	LEFT JOIN events e2 ON e2.client_id = p.client_id AND e2.sequence = p.processing_event
	LEFT JOIN events e3 ON e3.client_id = p.client_id AND e3.sequence = p.final_event
	WHERE p.client_id = $3 AND p.id > $4 ORDER BY p.id LIMIT $5`

// VerifyPaymentsFast calls f with the next payments of a client beyond an id and
// returns how many there were. last is the last time of the client's head, end the
// last event to count. f must not keep its argument.
func VerifyPaymentsFast(ctx context.Context, tx *store.Tx, client, after till.ID, last till.Time, end int64, limit int, f func(p *FastPayment) error) (n int, err error) {
	args := []any{end, int64(last), client[:], after[:], limit}
	if tx.DB().Dialect() == db.Citus {
		return verifyPaymentsApart(ctx, tx, client, args, f)
	}
	var p FastPayment
	err = tx.DB().Query(ctx, selectPaymentsFast, args, func(r db.Row) error {
		p = FastPayment{Document: p.Document[:0]}
		n++
		if err := r.Scan(p.dest()...); err != nil {
			return err
		}
		return f(&p)
	})
	return n, err
}

func (p *FastPayment) dest() []any {
	return []any{db.ID(&p.ID), &p.CreatedAt, &p.UpdatedAt, &p.Amount.Minor, &p.Amount.Currency, &p.Document, &p.Connection,
		&p.Named, db.Bool(&p.Usual), db.Bool(&p.Unscheduled), db.Int(&p.LastRead)}
}

// FastEvent is an event as far as the fast check needs it.
type FastEvent struct {
	Sequence  int64
	CreatedAt till.Time
	OfPayment bool // the payment names it itself
}

// VerifyEventsFast calls f with the next events of a client beyond a sequence, and
// returns how many there were.
func VerifyEventsFast(ctx context.Context, tx *store.Tx, client till.ID, after int64, limit int, f func(e *FastEvent)) (n int, err error) {
	var e FastEvent
	err = tx.DB().Query(ctx, selectEventsFast,
		[]any{client[:], after, limit}, func(r db.Row) error {
			n++
			if err := r.Scan(&e.Sequence, &e.CreatedAt, db.Bool(&e.OfPayment)); err != nil {
				return err
			}
			f(&e)
			return nil
		})
	return n, err
}

// IdempotencyKeys calls f with the keys of the next payments of a client beyond an
// id. It returns the last payment's id and how many there were.
func IdempotencyKeys(ctx context.Context, tx *store.Tx, client, after till.ID, limit int, f func(key till.ID)) (last till.ID, n int, err error) {
	last = after
	err = tx.DB().Query(ctx, selectIdempotencyKeys,
		[]any{client[:], after[:], limit}, func(r db.Row) error {
			var key till.ID
			n++
			err := r.Scan(db.ID(&last), db.ID(&key))
			f(key)
			return err
		})
	return last, n, err
}

// VerifyPaymentsOf is VerifyPayments for some payments.
func VerifyPaymentsOf(ctx context.Context, tx *store.Tx, client till.ID, ids []till.ID) (out []*VerifyPayment, err error) {
	for _, id := range ids {
		one, err := VerifyPayments(ctx, tx, client, store.Neighbour(id, false), 1)
		if err != nil {
			return nil, err
		}
		out = append(out, one...)
	}
	return out, nil
}

// LogLengths returns how many events and audit rows all clients have.
func LogLengths(ctx context.Context, tx *store.Tx) (events, audit int64, err error) {
	_, err = tx.DB().QueryRow(ctx, selectLogLengths,
		nil, &events, &audit)
	return events, audit, err
}
