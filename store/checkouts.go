package store

import (
	"context"
	"strings"

	"till"
	"till/internal/db"
)

// CheckoutColumns are the columns that ScanCheckout reads.
const CheckoutColumns = `c.client_id, c.id, c.idempotency_key, c.idempotency_key_sent, c.token, c.state, c.amount, c.currency, c.reference, c.country, c.methods,
	c.phone, c.phone_fixed, c.return_url, c.language, c.document, c.payment_id, c.paid_at, c.late, c.overpaid, c.created_at, c.updated_at, c.expires_at, c.link_id`

var selectEventCheckouts = db.DefineByClient(1, db.SQL{Name: "events.selectCheckouts",
	SQLite: `SELECT ` + CheckoutColumns + ` FROM checkouts c WHERE c.client_id = $1 AND c.id = $2`,
	Postgres: `SELECT u.nth, ` + CheckoutColumns + `
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u,
		LATERAL (SELECT * FROM checkouts WHERE client_id = u.a1 AND id = u.a2 OFFSET 0) AS c`,
	Arrays: true})

// ScanCheckout reads CheckoutColumns, and more after them. Checkouts themselves are read and
// written in store/checkouts; the event log needs what never changes of them.
func ScanCheckout(r db.Row, c *till.Checkout, more ...any) error {
	var key till.ID
	var sent, methods string
	err := r.Scan(append([]any{db.ID(&c.ClientID), db.ID(&c.ID), db.ID(&key), db.Text(&sent), &c.Token, &c.State, &c.Amount.Minor, &c.Amount.Currency,
		db.Text(&c.Reference), db.Text(&c.Country), db.Text(&methods), db.Text(&c.Phone), db.Bool(&c.PhoneFixed), db.Text(&c.ReturnURL), db.Text(&c.Language),
		&c.Document, db.ID(&c.PaymentID), db.Int(&c.PaidAt), db.Bool(&c.Late), db.Bool(&c.Overpaid), &c.CreatedAt, &c.UpdatedAt, &c.ExpiresAt, db.ID(&c.LinkID)}, more...)...)
	if methods != "" {
		c.Methods = strings.Fields(methods)
	}
	if c.IdempotencyKey = sent; sent == "" {
		c.IdempotencyKey = key.String()
	}
	return err
}

// readCheckoutsOf adds the checkouts to events that are about one, as readPayoutsOf does.
func (tx *Tx) readCheckoutsOf(ctx context.Context, events []*EventRow) error {
	var of []*EventRow
	var args [][]any
	for _, e := range events {
		if e.Kind.Subject() == string(till.NounCheckout) {
			of, args = append(of, e), append(args, []any{e.ClientID[:], e.SubjectID[:]})
		}
	}
	if len(of) == 0 {
		return nil
	}
	return tx.db.QueryEach(ctx, selectEventCheckouts, args, func(i int, r db.Row) error {
		of[i].Checkout = &till.Checkout{}
		return ScanCheckout(r, of[i].Checkout)
	})
}

// readSubjectsOf adds what events are about where that is no payment.
func (tx *Tx) readSubjectsOf(ctx context.Context, events []*EventRow) error {
	if err := tx.readPayoutsOf(ctx, events); err != nil {
		return err
	}
	return tx.readCheckoutsOf(ctx, events)
}
