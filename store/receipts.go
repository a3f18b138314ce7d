package store

import (
	"cmp"
	"context"
	"slices"

	"till/internal/db"
)

var selectReceiptOwners = db.Define(db.SQL{Name: "receipts.selectOwners",
	SQLite: `SELECT client_id, subject_id FROM operator_receipts WHERE connection = $1 AND receipt = $2 AND kind = $3`,
	Postgres: `SELECT u.nth, found.* FROM (SELECT unnest($1::text[]) AS a1, unnest($2::text[]) AS a2, unnest($3::text[]) AS a3, unnest($4::bigint[]) AS nth LIMIT $5::bigint) AS u,
		LATERAL (SELECT client_id, subject_id FROM operator_receipts WHERE connection = u.a1 AND receipt = u.a2 AND kind = u.a3 OFFSET 0) AS found`,
	Arrays: true})

var insertReceipts = db.Define(db.SQL{Name: "receipts.insert",
	SQLite: `INSERT INTO operator_receipts (connection, receipt, kind, client_id, subject_id) VALUES ($1, $2, $3, $4, $5)`,
	Postgres: `INSERT INTO operator_receipts (connection, receipt, kind, client_id, subject_id)
		SELECT u.a1, u.a2, u.a3, u.a4, u.a5
		FROM (SELECT unnest($1::text[]) AS a1, unnest($2::text[]) AS a2, unnest($3::text[]) AS a3, unnest($4::bytea[]) AS a4, unnest($5::bytea[]) AS a5 LIMIT $6::bigint) AS u`,
	Arrays: true})

var verifyReceipts = db.Define(db.SQL{Name: "receipts.verify",
	SQLite: `SELECT r.connection, r.receipt, r.kind, r.client_id, r.subject_id,
		CASE r.kind WHEN 'payment' THEN EXISTS (SELECT 1 FROM payments p WHERE p.client_id = r.client_id AND p.id = r.subject_id
				AND p.connection = r.connection AND p.provider_reference = r.receipt)
			ELSE EXISTS (SELECT 1 FROM payouts q WHERE q.client_id = r.client_id AND q.id = r.subject_id
				AND q.connection = r.connection AND q.provider_reference = r.receipt) END
		FROM operator_receipts r WHERE (r.connection, r.receipt, r.kind) > ($1, $2, $3) ORDER BY r.connection, r.receipt, r.kind LIMIT $4`})

// The receipts that an instance of a version before operator_receipts took
// after the table was filled: what its migration does, for what is missing.
// What another has already is left out, and found by verify. All are tried, and
// none is looked for before: that has one way to be done only.
var (
	fillPaymentReceipts = db.Define(db.SQL{Name: "receipts.fillPaymentReceipts",
		SQLite: `INSERT INTO operator_receipts (connection, receipt, kind, client_id, subject_id)
		SELECT connection, provider_reference, 'payment', client_id, id FROM payments WHERE provider_reference IS NOT NULL
		ORDER BY connection, provider_reference, id ON CONFLICT (connection, receipt, kind) DO NOTHING`})
	fillPayoutReceipts = db.Define(db.SQL{Name: "receipts.fillPayoutReceipts",
		SQLite: `INSERT INTO operator_receipts (connection, receipt, kind, client_id, subject_id)
		SELECT connection, provider_reference, 'payout', client_id, id FROM payouts WHERE provider_reference IS NOT NULL
		ORDER BY connection, provider_reference, id ON CONFLICT (connection, receipt, kind) DO NOTHING`})
)

// Receipt is an operator's own id of a movement of money. On a connection it
// names one payment, and one payout, of whatever client.
type Receipt struct{ Connection, Text string }

// Received is a receipt that a payment or payout has.
type Received struct {
	Receipt
	Ref Ref
}

// ReceiptOwners returns which payments, or payouts, of whatever client have
// which of the receipts.
func (tx *Tx) ReceiptOwners(ctx context.Context, kind string, receipts []Receipt) (map[Receipt]Ref, error) {
	args := make([][]any, len(receipts))
	for i, r := range receipts {
		args[i] = []any{r.Connection, r.Text, kind}
	}
	out := make(map[Receipt]Ref)
	err := tx.db.QueryEach(ctx, selectReceiptOwners, args,
		func(i int, r db.Row) error {
			var ref Ref
			err := r.Scan(idDest(&ref.Client), idDest(&ref.ID))
			out[receipts[i]] = ref
			return err
		})
	return out, err
}

// InsertReceipts writes down whose receipts are. The database refuses one that
// another payment, or payout, of any client has: the whole change that rests on
// it is not written then. They are written in one order, because two who bring
// the same wait for each other.
func (tx *Tx) InsertReceipts(ctx context.Context, kind string, received []Received) error {
	slices.SortFunc(received, func(a, b Received) int {
		return cmp.Or(cmp.Compare(a.Connection, b.Connection), cmp.Compare(a.Text, b.Text))
	})
	args := make([][]any, len(received))
	for i := range received {
		r := &received[i]
		args[i] = []any{r.Connection, r.Text, kind, r.Ref.Client[:], r.Ref.ID[:]}
	}
	return tx.db.Defer(insertReceipts, args)
}

// VerifyReceipt is a line of the record of receipts with what has, or has not,
// the receipt.
type VerifyReceipt struct {
	Received
	Kind string
	Had  bool // the payment or payout is there, and has it
}

// VerifyReceipts returns the next lines of the record of receipts, beyond one.
func (tx *Tx) VerifyReceipts(ctx context.Context, after *VerifyReceipt, limit int) ([]*VerifyReceipt, error) {
	var out []*VerifyReceipt
	err := tx.db.Query(ctx, verifyReceipts,
		[]any{after.Connection, after.Text, after.Kind, limit}, func(r db.Row) error {
			v := &VerifyReceipt{}
			out = append(out, v)
			return r.Scan(&v.Connection, &v.Text, &v.Kind, idDest(&v.Ref.Client), idDest(&v.Ref.ID), boolDest(&v.Had))
		})
	return out, err
}

// FillReceipts writes down whose the receipts are that are on no record, and
// returns how many. It reads all payments.
func (s *Store) FillReceipts(ctx context.Context) (n int64, err error) {
	err = s.UpdateBackground(ctx, func(tx *Tx) error {
		n = 0
		tx.db.WithoutTimeout()
		for _, fill := range []*db.SQL{fillPaymentReceipts, fillPayoutReceipts} {
			some, err := tx.db.Exec(ctx, fill)
			if err != nil {
				return err
			}
			n += some
		}
		return nil
	})
	return n, err
}
