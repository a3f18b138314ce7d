package checkouts

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

var insertAsk = db.Define(db.SQL{Name: "asks.insert",
	SQLite: `INSERT INTO checkout_asks (client_id, checkout_id, n, key, method, country, amount, currency, phone, asked_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`})

var countAsk = db.Define(db.SQL{Name: "asks.count",
	SQLite: `UPDATE checkouts SET asks = $1 WHERE client_id = $2 AND id = $3`})

var refuseAsk = db.Define(db.SQL{Name: "asks.refuse",
	SQLite: `UPDATE checkout_asks SET refused = $1 WHERE client_id = $2 AND checkout_id = $3 AND n = $4 AND refused IS NULL`})

const asks = `SELECT a.n, a.key, a.method, a.country, a.amount, a.currency, a.phone, a.asked_at, a.refused,
	p.id, p.status, CASE WHEN p.status = 'success' THEN p.final_event ELSE p.late_event END
	FROM checkout_asks a LEFT JOIN payments p ON p.client_id = a.client_id AND p.idempotency_key = a.key
	WHERE a.client_id = $1 AND a.checkout_id = $2 ORDER BY a.n`

var selectAsks = db.DefineByClient(1, db.SQL{Name: "asks.select",
	SQLite: asks,
	Citus:  db.OfClient(asks, "$1"),
	Postgres: `SELECT u.nth, a.n, a.key, a.method, a.country, a.amount, a.currency, a.phone, a.asked_at, a.refused,
		p.id, p.status, CASE WHEN p.status = 'success' THEN p.final_event ELSE p.late_event END
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u,
		LATERAL (SELECT * FROM checkout_asks WHERE client_id = u.a1 AND checkout_id = u.a2 ORDER BY n) AS a
		LEFT JOIN LATERAL (SELECT * FROM payments WHERE client_id = a.client_id AND idempotency_key = a.key OFFSET 0) AS p ON TRUE`,
	Arrays: true})

const ofLinks = `SELECT a.phone, a.asked_at, CASE WHEN p.status = 'success' OR p.late_event IS NOT NULL THEN 1 ELSE 0 END
	FROM (SELECT client_id, id FROM checkouts WHERE client_id = $1 AND link_id IS NOT NULL ORDER BY id DESC LIMIT $2) c
	JOIN checkout_asks a ON a.client_id = c.client_id AND a.checkout_id = c.id
	LEFT JOIN payments p ON p.client_id = a.client_id AND p.idempotency_key = a.key
	WHERE a.refused IS NULL ORDER BY a.asked_at DESC LIMIT $3`

var selectAsksOfLinks = db.Define(db.SQL{Name: "asks.ofLinks",
	SQLite: ofLinks,
	Citus:  db.OfClient(ofLinks, "$1")})

// AskOfLink is an ask of a checkout that a link opened.
type AskOfLink struct {
	Phone   string
	AskedAt till.Time
	Paid    bool
}

// OfLinks returns the newest asks, up to most, of the newest checkouts that a client's links have
// opened, up to as many.
func OfLinks(ctx context.Context, tx *store.Tx, client till.ID, most int) ([]AskOfLink, error) {
	return db.ReadAll(ctx, tx.DB(), selectAsksOfLinks, []any{client[:], most, most}, func(r db.Row) (a AskOfLink, err error) {
		paid := 0
		err = r.Scan(&a.Phone, &a.AskedAt, &paid)
		a.Paid = paid == 1
		return a, err
	})
}

// InsertAsk writes the next ask of a checkout. The caller has locked the client's head.
func InsertAsk(ctx context.Context, tx *store.Tx, a *till.Ask) error {
	if _, err := tx.DB().Exec(ctx, insertAsk, a.ClientID[:], a.CheckoutID[:], a.N, a.Key[:], a.Method, db.OrNull(a.Country), a.Amount.Minor, a.Amount.Currency, a.Phone, int64(a.AskedAt)); err != nil {
		return err
	}
	_, err := tx.DB().Exec(ctx, countAsk, a.N, a.ClientID[:], a.CheckoutID[:])
	return err
}

// Refuse notes why an ask makes no payment. The caller has locked the client's head, and has
// looked that there is none.
func Refuse(ctx context.Context, tx *store.Tx, a *till.Ask, code till.Code) error {
	_, err := tx.DB().Exec(ctx, refuseAsk, string(code), a.ClientID[:], a.CheckoutID[:], a.N)
	return err
}

// Asks returns the asks of a checkout, by number, each with what there is of its payment.
func Asks(ctx context.Context, tx *store.Tx, ref store.Ref) ([]till.Ask, error) {
	out, err := AsksOf(ctx, tx, []store.Ref{ref})
	return out[ref], err
}

// AsksOf is Asks for several checkouts.
func AsksOf(ctx context.Context, tx *store.Tx, refs []store.Ref) (map[store.Ref][]till.Ask, error) {
	out := make(map[store.Ref][]till.Ask, len(refs))
	if len(refs) == 0 {
		return out, nil
	}
	return out, tx.DB().QueryEach(ctx, selectAsks, store.RefArgs(refs), func(i int, r db.Row) error {
		a := till.Ask{ClientID: refs[i].Client, CheckoutID: refs[i].ID}
		err := r.Scan(&a.N, db.ID(&a.Key), &a.Method, db.Text(&a.Country), &a.Amount.Minor, &a.Amount.Currency, &a.Phone, &a.AskedAt, db.Text(&a.Refused),
			db.ID(&a.PaymentID), db.Text(&a.Status), db.Int(&a.Credit))
		out[refs[i]] = append(out[refs[i]], a)
		return err
	})
}
