package matching

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"till"
	"till/internal/db"
	"till/store"
)

var seekReferences = db.DefineByClient(1, db.SQL{Name: "reconcile.seekReferences",
	SQLite: `SELECT subject_id FROM attempts WHERE client_id = $1 AND connection = $2 AND reference = $3 AND first_send = 1`,
	Postgres: `SELECT u.nth, found.* FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::text[]) AS a2, unnest($3::bytea[]) AS a3, unnest($4::bigint[]) AS nth LIMIT $5::bigint) AS u,
		LATERAL (SELECT subject_id FROM attempts WHERE client_id = u.a1 AND connection = u.a2 AND reference = u.a3 AND first_send = 1 OFFSET 0) AS found`,
	Arrays: true})

var seekPayments = db.DefineByClient(1, db.SQL{Name: "reconcile.seekPayments",
	SQLite: `SELECT id FROM payments WHERE client_id = $1 AND id = $2`,
	Postgres: `SELECT u.nth, found.* FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u,
		LATERAL (SELECT id FROM payments WHERE client_id = u.a1 AND id = u.a2 OFFSET 0) AS found`,
	Arrays: true})

var seekPayouts = db.DefineByClient(1, db.SQL{Name: "reconcile.seekPayouts",
	SQLite: `SELECT id FROM payouts WHERE client_id = $1 AND id = $2`,
	Postgres: `SELECT u.nth, found.* FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u,
		LATERAL (SELECT id FROM payouts WHERE client_id = u.a1 AND id = u.a2 OFFSET 0) AS found`,
	Arrays: true})

var seekPaymentReceipts = db.DefineByClient(1, db.SQL{Name: "reconcile.seekPaymentReceipts",
	SQLite: `SELECT id FROM payments WHERE client_id = $1 AND provider_reference = $2 AND connection = $3`,
	Postgres: `SELECT u.nth, found.* FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::text[]) AS a2, unnest($3::text[]) AS a3, unnest($4::bigint[]) AS nth LIMIT $5::bigint) AS u,
		LATERAL (SELECT id FROM payments WHERE client_id = u.a1 AND provider_reference = u.a2 AND connection = u.a3 OFFSET 0) AS found`,
	Arrays: true})

var seekPayoutReceipts = db.DefineByClient(1, db.SQL{Name: "reconcile.seekPayoutReceipts",
	SQLite: `SELECT id FROM payouts WHERE client_id = $1 AND provider_reference = $2 AND connection = $3`,
	Postgres: `SELECT u.nth, found.* FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::text[]) AS a2, unnest($3::text[]) AS a3, unnest($4::bigint[]) AS nth LIMIT $5::bigint) AS u,
		LATERAL (SELECT id FROM payouts WHERE client_id = u.a1 AND provider_reference = u.a2 AND connection = u.a3 OFFSET 0) AS found`,
	Arrays: true})

var selectMoved = db.Define(db.SQL{Name: "reconcile.selectMoved",
	SQLite: `SELECT entry_id, payment_id, payout_id FROM postings
		WHERE client_id = $1 AND entry_id > $2 AND entry_id <= $3 AND account = 'operator' AND connection = $4 ORDER BY entry_id LIMIT $5`})

var selectCasesOf = db.DefineByClient(1, db.SQL{Name: "reconcile.selectCasesOf",
	SQLite: `SELECT id, detail, opened_at, closed_at FROM cases WHERE client_id = $1 AND subject_id = $2 AND kind = $3`,
	Postgres: `SELECT u.nth, id, detail, opened_at, closed_at FROM cases,
		(SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::text[]) AS a3, unnest($4::bigint[]) AS nth LIMIT $5::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a1]) AND subject_id = u.a2 AND kind = u.a3`,
	Arrays: true})

// The reads in this file serve the comparison with an operator's statement:
// payments and payouts of one client, with what the ledger says of each. What
// follows from them is not known here.

// ReconcileRow is a payment or payout with its money in the ledger.
type ReconcileRow struct {
	Kind       till.SubjectKind
	Client, ID till.ID
	Connection string
	Reference  till.ID // what we sent; zero if nothing was sent
	Receipt    string
	Status     till.Status
	Amount     till.Money
	CreatedAt  till.Time
	Late       bool // its money came, or went, after it had ended otherwise
	Reversed   bool // the operator took the money back

	// The entry in the ledger; unset if there is none. Of a payment it is the
	// credit to the wallet, of a payout what left the operator's account. Money
	// that a wallet cannot cover has no transaction.
	Booked   till.Money
	BookedAt till.Time
}

// Related rows are looked up by key, row by row, and not joined. With a join, a
// planner that knows the size of a slice reads the other tables whole, once for
// each slice. A lookup returns one value, so the entry comes as a text: amount,
// currency and time.
var comparedPayments = `SELECT p.id, p.connection, p.status, p.amount, p.currency, p.provider_reference, p.created_at,
		p.late_event IS NOT NULL, p.reversed_event IS NOT NULL,
		CASE WHEN p.connection = $1 THEN (SELECT a.reference FROM attempts a WHERE a.client_id = p.client_id AND a.subject_id = p.id AND a.n = 1) END,
		CASE WHEN p.connection = $1 THEN (SELECT CAST(t.amount AS TEXT) || ' ' || t.currency || ' ' || CAST(t.created_at AS TEXT)
			FROM transactions t WHERE t.client_id = p.client_id AND t.payment_id = p.id AND t.money_in = 1) END
		FROM payments p WHERE p.client_id = $2 AND p.id > $3 AND p.id <= $4 ORDER BY p.id LIMIT $5`

var comparePayments = db.Define(db.SQL{Name: "reconcile.comparePayments",
	SQLite: comparedPayments,
	Citus:  db.OfClient(comparedPayments, "$2")})

var comparedPayouts = `SELECT p.id, p.connection, p.status, p.amount, p.currency, p.provider_reference, p.created_at,
		p.late_event IS NOT NULL, FALSE,
		CASE WHEN p.connection = $1 THEN (SELECT a.reference FROM attempts a WHERE a.client_id = p.client_id AND a.subject_id = p.id AND a.n = 1) END,
		CASE WHEN p.connection = $1 THEN (SELECT CAST(o.amount AS TEXT) || ' ' || o.currency || ' ' || CAST(o.created_at AS TEXT)
			FROM facts f JOIN postings o ON o.client_id = f.client_id AND o.entry_id = f.entry_id AND o.account = 'operator' AND o.connection = p.connection
			WHERE f.client_id = p.client_id AND f.subject_id = p.id AND f.fact = 'money_out') END
		FROM payouts p WHERE p.client_id = $2 AND p.id > $3 AND p.id <= $4 ORDER BY p.id LIMIT $5`

var comparePayouts = db.Define(db.SQL{Name: "reconcile.comparePayouts",
	SQLite: comparedPayouts,
	Citus:  db.OfClient(comparedPayouts, "$2")})

// ReconcileRows appends the next payments or payouts of a client, beyond one id and
// up to another, to out. Those of other connections come without what hangs on
// them.
func ReconcileRows(ctx context.Context, tx *store.Tx, kind till.SubjectKind, connection string, client, after, last till.ID, limit int, out []ReconcileRow) ([]ReconcileRow, error) {
	q := comparePayments
	if kind == till.SubjectPayout {
		q = comparePayouts
	}
	err := tx.DB().Query(ctx, q, []any{connection, client[:], after[:], last[:], limit}, func(r db.Row) error {
		out = append(out, ReconcileRow{Kind: kind, Client: client})
		c := &out[len(out)-1]
		var entry string
		err := r.Scan(db.ID(&c.ID), &c.Connection, &c.Status, &c.Amount.Minor, &c.Amount.Currency, db.Text(&c.Receipt), &c.CreatedAt,
			db.Bool(&c.Late), db.Bool(&c.Reversed), db.ID(&c.Reference), db.Text(&entry))
		if err != nil || entry == "" {
			return err
		}
		return c.book(entry)
	})
	return out, err
}

// book takes what was booked from its text.
func (c *ReconcileRow) book(entry string) error {
	amount, rest, _ := strings.Cut(entry, " ")
	currency, at, _ := strings.Cut(rest, " ")
	minor, err1 := strconv.ParseInt(amount, 10, 64)
	micros, err2 := strconv.ParseInt(at, 10, 64)
	c.Booked, c.BookedAt = till.Money{Minor: minor, Currency: currency}, till.Time(micros)
	return errors.Join(err1, err2)
}

// ReconcileRowsByID appends the payments and payouts with these ids to out.
func ReconcileRowsByID(ctx context.Context, tx *store.Tx, connection string, refs []store.Ref, out []ReconcileRow) (_ []ReconcileRow, err error) {
	for _, ref := range refs {
		for _, kind := range []till.SubjectKind{till.SubjectPayment, till.SubjectPayout} {
			if out, err = ReconcileRows(ctx, tx, kind, connection, ref.Client, before(ref.ID), ref.ID, 1, out); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// before returns the id that comes right before another.
func before(id till.ID) till.ID {
	for i := len(id) - 1; i >= 0; i-- {
		id[i]--
		if id[i] != 0xff {
			break
		}
	}
	return id
}

// PostedSubject is an entry that touches an operator's account.
type PostedSubject struct {
	Entry   till.ID // its order is the order of times
	Subject till.ID // the payment or payout
}

// PostedSubjects returns the next entries of a client that touch a connection's
// account, beyond one entry and up to another.
func PostedSubjects(ctx context.Context, tx *store.Tx, connection string, client, after, last till.ID, limit int) ([]PostedSubject, error) {
	return db.ReadAll(ctx, tx.DB(), selectMoved, []any{client[:], after[:], last[:], connection, limit}, func(r db.Row) (PostedSubject, error) {
		var m PostedSubject
		var payout till.ID
		err := r.Scan(db.ID(&m.Entry), db.ID(&m.Subject), db.ID(&payout))
		if !payout.IsZero() {
			m.Subject = payout
		}
		return m, err
	})
}

// StatementKey is one line of an operator's statement, as far as it can name a
// payment or payout.
type StatementKey struct {
	References []till.ID // what we sent, or an id
	Receipt    string
}

// FindByStatement returns the payments and payouts of a client's connection that a
// line may be about, by reference, id or receipt.
func FindByStatement(ctx context.Context, tx *store.Tx, connection string, client till.ID, lines []StatementKey) ([]store.Ref, error) {
	var references, ids, receipts [][]any
	for _, l := range lines {
		for _, id := range l.References {
			references = append(references, []any{client[:], connection, id.Bytes()})
			ids = append(ids, []any{client[:], id.Bytes()})
		}
		if l.Receipt != "" {
			receipts = append(receipts, []any{client[:], l.Receipt, connection})
		}
	}
	var out []store.Ref
	for _, q := range []struct {
		sql  *db.SQL
		args [][]any
	}{
		{seekReferences, references}, {seekPayments, ids}, {seekPayouts, ids},
		{seekPaymentReceipts, receipts}, {seekPayoutReceipts, receipts},
	} {
		err := tx.DB().QueryEach(ctx, q.sql, q.args, func(_ int, r db.Row) error {
			ref := store.Ref{Client: client}
			err := r.Scan(db.ID(&ref.ID))
			out = append(out, ref)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return store.SortedRefs(out), nil
}

// CasesOf returns the cases of one kind that any of the payments or payouts
// has, open or closed.
func CasesOf(ctx context.Context, tx *store.Tx, kind string, refs []store.Ref) (map[store.Ref]*store.Case, error) {
	refs = store.SortedRefs(refs)
	args := make([][]any, len(refs))
	for i := range refs {
		args[i] = []any{refs[i].Client[:], refs[i].ID[:], kind}
	}
	out := make(map[store.Ref]*store.Case)
	err := tx.DB().QueryEach(ctx, selectCasesOf, args,
		func(i int, r db.Row) error {
			c := &store.Case{ClientID: refs[i].Client, SubjectID: refs[i].ID, Kind: kind}
			out[refs[i]] = c
			return r.Scan(db.ID(&c.ID), &c.Detail, &c.OpenedAt, db.Int(&c.ClosedAt))
		})
	return out, err
}
