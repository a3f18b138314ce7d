package refunds

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

var selectSums = db.DefineByClient(1, db.SQL{Name: "refunds.selectSums",
	SQLite: `SELECT amount, refunding, refunded, late FROM refund_sums WHERE client_id = $1 AND payment_id = $2`,
	Postgres: `SELECT u.nth, amount, refunding, refunded, late FROM refund_sums,
		(SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a1]) AND payment_id = u.a2`,
	Arrays: true})

var openSums = db.Define(db.SQL{Name: "refunds.openSums",
	SQLite: `INSERT INTO refund_sums (client_id, payment_id, amount, refunding, refunded, late) VALUES ($1, $2, $3, $4, 0, 0)
		ON CONFLICT (client_id, payment_id) DO UPDATE SET refunding = refund_sums.refunding + excluded.refunding`,
	Postgres: `INSERT INTO refund_sums (client_id, payment_id, amount, refunding, refunded, late)
		SELECT u.a1, u.a2, u.a3, u.a4, 0, 0
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS a3, unnest($4::bigint[]) AS a4 LIMIT $5::bigint) AS u
		ON CONFLICT (client_id, payment_id) DO UPDATE SET refunding = refund_sums.refunding + excluded.refunding`,
	Arrays: true})

var moveSums = db.DefineByClient(4, db.SQL{Name: "refunds.moveSums",
	SQLite: `UPDATE refund_sums SET refunding = refunding + $1, refunded = refunded + $2, late = late + $3 WHERE client_id = $4 AND payment_id = $5`,
	Postgres: `WITH changed AS (UPDATE refund_sums SET refunding = refunding + u.a1, refunded = refunded + u.a2, late = late + u.a3
		FROM (SELECT unnest($1::bigint[]) AS a1, unnest($2::bigint[]) AS a2, unnest($3::bigint[]) AS a3, unnest($4::bytea[]) AS a4,
			unnest($5::bytea[]) AS a5 LIMIT $6::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a4]) AND payment_id = u.a5
		RETURNING 1)
		SELECT till_expect_rows(count(*), $6) FROM changed`,
	Arrays: true})

var selectOf = db.Define(db.SQL{Name: "refunds.selectOf",
	SQLite: `SELECT id FROM payouts WHERE client_id = $1 AND payment_id = $2 ORDER BY id DESC LIMIT $3`})

// Level is the level from which on refunds are made. An older program would take a refund for a
// payout to somebody.
const Level = 4

// MaxOf is how many refunds of one payment are listed, the newest.
const MaxOf = 200

// Sums returns the sums of those of the payments that have refunds.
func Sums(ctx context.Context, tx *store.Tx, payments []store.Ref) (map[store.Ref]till.RefundSums, error) {
	out := make(map[store.Ref]till.RefundSums)
	if len(payments) == 0 {
		return out, nil
	}
	err := tx.DB().QueryEach(ctx, selectSums, args(payments), func(i int, r db.Row) error {
		var s till.RefundSums
		err := r.Scan(&s.Amount, &s.Refunding, &s.Refunded, &s.Late)
		out[payments[i]] = s
		return err
	})
	return out, err
}

func args(refs []store.Ref) [][]any {
	out := make([][]any, len(refs))
	for i := range refs {
		out[i] = []any{refs[i].Client[:], refs[i].ID[:]}
	}
	return out
}

// Open adds new refunds, each of another payment, to the sums of their payments, whose amounts
// are given.
func Open(tx *store.Tx, rows []*store.PayoutRow, amounts map[store.Ref]int64) error {
	var all [][]any
	for _, p := range rows {
		if p.IsRefund() {
			of := store.Ref{Client: p.ClientID, ID: p.PaymentID}
			all = append(all, []any{of.Client[:], of.ID[:], amounts[of], p.Amount.Minor})
		}
	}
	return tx.DB().Defer(openSums, all)
}

// Move changes the sums of a payment that has some. The database refuses more than was paid.
func Move(tx *store.Tx, payment store.Ref, refunding, refunded, late int64) error {
	return tx.DB().DeferExactly(moveSums, [][]any{{refunding, refunded, late, payment.Client[:], payment.ID[:]}})
}

// Of returns the refunds of a payment, the newest first, at most MaxOf.
func Of(ctx context.Context, tx *store.Tx, payment store.Ref) ([]*store.PayoutRow, error) {
	refs, err := db.ReadAll(ctx, tx.DB(), selectOf, []any{payment.Client[:], payment.ID[:], MaxOf}, func(r db.Row) (store.Ref, error) {
		ref := store.Ref{Client: payment.Client}
		err := r.Scan(db.ID(&ref.ID))
		return ref, err
	})
	if err != nil {
		return nil, err
	}
	rows, err := tx.Payouts(ctx, refs)
	if err != nil {
		return nil, err
	}
	out := make([]*store.PayoutRow, 0, len(refs))
	for _, ref := range refs {
		out = append(out, rows[ref])
	}
	return out, nil
}
