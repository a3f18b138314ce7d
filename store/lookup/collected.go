package lookup

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

var insertCollector = db.Define(db.SQL{Name: "desk_payments.insert",
	SQLite: `INSERT INTO desk_payments (client_id, key, person_id, asked_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`})

var selectCollector = db.Define(db.SQL{Name: "desk_payments.selectPerson",
	SQLite: `SELECT person_id FROM desk_payments WHERE client_id = $1 AND key = $2`})

const collectedFrom = ` FROM desk_payments d JOIN payments p ON p.client_id = d.client_id AND p.idempotency_key = d.key
		LEFT JOIN steps s ON s.client_id = p.client_id AND s.subject_id = p.id
		WHERE d.client_id = $1 AND d.person_id = $2 AND d.asked_at >= $3`

var selectCollected = db.Define(db.SQL{Name: "desk_payments.selectPayments",
	SQLite: `SELECT ` + store.LeanColumns + collectedFrom + ` ORDER BY d.asked_at DESC, d.key DESC LIMIT $4`,
	Citus:  db.OfClient(`SELECT `+store.LeanColumns+collectedFrom+` ORDER BY d.asked_at DESC, d.key DESC LIMIT $4`, "$1")})

var sumCollected = db.Define(db.SQL{Name: "desk_payments.sum",
	SQLite: `SELECT p.currency, count(*), CAST(sum(p.amount) AS BIGINT) FROM desk_payments d
		JOIN payments p ON p.client_id = d.client_id AND p.idempotency_key = d.key
		WHERE d.client_id = $1 AND d.person_id = $2 AND d.asked_at >= $3 AND (p.status = 'success' OR p.late_event > 0) AND p.reversed_event IS NULL
		GROUP BY p.currency ORDER BY p.currency`})

// SetCollector says who asks for the payment of an idempotency key, unless
// somebody has said so already. It is written before the payment, in a commit of its own:
// creates are written in groups that know no people. A crash between the two leaves a row
// without a payment, which no list shows. A key that belongs to another person's form, or to a
// program's payment, is refused.
func SetCollector(ctx context.Context, tx *store.Tx, client, key, person till.ID, at till.Time) error {
	_, err := tx.DB().Exec(ctx, insertCollector, client[:], key[:], person[:], int64(at))
	return err
}

// CollectorOf returns who asked for the payment of an idempotency key, the zero
// id if nobody did at the counter.
func CollectorOf(ctx context.Context, tx *store.Tx, client, key till.ID) (person till.ID, err error) {
	_, err = tx.DB().QueryRow(ctx, selectCollector, []any{client[:], key[:]}, db.ID(&person))
	return person, err
}

// CollectedBy returns up to limit payments that a person asked for since a
// moment, the newest first. They have no document.
func CollectedBy(ctx context.Context, tx *store.Tx, client, person till.ID, since till.Time, limit int) ([]*store.PaymentRow, error) {
	tx.Now() // the clock is read before the rows, which are scanned with it
	return db.ReadAll(ctx, tx.DB(), selectCollected, []any{client[:], person[:], int64(since), limit}, func(r db.Row) (*store.PaymentRow, error) {
		return store.ScanPayment(r, tx.Now())
	})
}

// CollectedSum is how much a person collected in one currency.
type CollectedSum struct {
	Payments int64
	Amount   till.Money
}

// CollectedSums returns what came in of what a person asked for since a moment, by
// currency. What was taken back does not count.
func CollectedSums(ctx context.Context, tx *store.Tx, client, person till.ID, since till.Time) ([]CollectedSum, error) {
	return db.ReadAll(ctx, tx.DB(), sumCollected, []any{client[:], person[:], int64(since)}, func(r db.Row) (CollectedSum, error) {
		var s CollectedSum
		err := r.Scan(&s.Amount.Currency, &s.Payments, &s.Amount.Minor)
		return s, err
	})
}
