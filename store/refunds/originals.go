package refunds

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

const originalColumns = `p.status, p.late_event, p.reversed_event, p.method, p.country, p.amount, p.currency, p.phone, p.created_at, p.connection, p.fingerprint, p.idempotency_key,
	coalesce(r.amount, p.amount), coalesce(r.refunding, 0), coalesce(r.refunded, 0), coalesce(r.late, 0),
	(SELECT o.id FROM payouts o WHERE o.client_id = p.client_id AND o.payment_id = p.id AND o.final_event IS NULL),
	EXISTS (SELECT 1 FROM postings s WHERE s.client_id = p.client_id AND s.payment_id = p.id AND s.suspended = 1
		AND (SELECT sum(o.amount) FROM postings o WHERE o.account = 'suspense' AND o.currency = s.currency AND o.client_id = s.client_id AND o.payment_id = s.payment_id) <> 0)`

const originals = `SELECT ` + originalColumns + ` FROM payments p LEFT JOIN refund_sums r ON r.client_id = p.client_id AND r.payment_id = p.id
	WHERE p.client_id = $1 AND p.id = $2`

var selectOriginals = db.DefineByClient(1, db.SQL{Name: "refunds.selectOriginals",
	SQLite: originals,
	Citus:  db.OfClient(originals, "$1"),
	Postgres: `SELECT u.nth, ` + originalColumns + `
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u,
		LATERAL (SELECT * FROM payments WHERE client_id = u.a1 AND id = u.a2 OFFSET 0) AS p
		LEFT JOIN LATERAL (SELECT * FROM refund_sums WHERE client_id = p.client_id AND payment_id = p.id OFFSET 0) AS r ON TRUE`,
	Arrays: true})

var selectLevel = db.Define(db.SQL{Name: "refunds.selectLevel",
	SQLite: `SELECT level FROM installation WHERE one = 1`})

// Original is a payment as far as a refund of it is decided on.
type Original struct {
	// Payment has what never changes of the payment, without its document, and its status.
	Payment till.Payment

	Credited  bool // its money was credited, in time or late
	Reversed  bool // the operator took the money back
	Suspended bool // money of it is in suspense
	Sums      till.RefundSums
	Open      till.ID // the refund of it that is open; zero if none
}

// Originals returns those of the payments that exist.
func Originals(ctx context.Context, tx *store.Tx, payments []store.Ref) (map[store.Ref]*Original, error) {
	out := make(map[store.Ref]*Original, len(payments))
	if len(payments) == 0 {
		return out, nil
	}
	return out, tx.DB().SendAll(ctx, readOriginals(payments, out))
}

// OriginalsAndLevel is Originals with the level of the installation, in one round trip.
func OriginalsAndLevel(ctx context.Context, tx *store.Tx, payments []store.Ref) (map[store.Ref]*Original, int, error) {
	out, level := make(map[store.Ref]*Original, len(payments)), 1
	err := tx.DB().SendAll(ctx, readOriginals(payments, out), db.Statement{SQL: selectLevel, Rows: [][]any{{}},
		Scan: func(_ int, r db.Row) error { return r.Scan(&level) }})
	return out, level, err
}

func readOriginals(payments []store.Ref, out map[store.Ref]*Original) db.Statement {
	return db.Statement{SQL: selectOriginals, Rows: args(payments), Scan: func(i int, r db.Row) error {
		o := &Original{Payment: till.Payment{ClientID: payments[i].Client, ID: payments[i].ID}}
		p := &o.Payment
		var late, reversed int64
		var key till.ID
		err := r.Scan(&p.Status, db.Int(&late), db.Int(&reversed), &p.Method, db.Text(&p.Country), &p.Amount.Minor, &p.Amount.Currency, &p.Phone, &p.CreatedAt,
			&p.Connection, &p.Fingerprint, db.ID(&key), &o.Sums.Amount, &o.Sums.Refunding, &o.Sums.Refunded, &o.Sums.Late, db.ID(&o.Open), db.Bool(&o.Suspended))
		p.IdempotencyKey = key.String() // in any case of letters it is the same key
		o.Credited, o.Reversed = p.Status == till.Success || late != 0, reversed != 0
		out[payments[i]] = o
		return err
	}}
}
