package store

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"till"
	"till/internal/db"
)

var selectOpenOperatorCases = db.Define(db.SQL{Name: "operator_cases.selectOpen",
	SQLite: `SELECT connection, kind, detail, opened_at, closed_at FROM operator_cases WHERE closed_at IS NULL ORDER BY opened_at, connection LIMIT $1`})

var selectOperatorCases = db.Define(db.SQL{Name: "operator_cases.select",
	SQLite: `SELECT connection, kind, detail, opened_at, closed_at FROM operator_cases ORDER BY opened_at DESC, connection LIMIT $1`})

var selectByName = db.Define(db.SQL{Name: "operator_references.selectByName",
	SQLite: `SELECT client_id, subject_id, kind FROM operator_references WHERE connection = $1 AND name = $2`})

var insertReferences = db.Define(db.SQL{Name: "operator_references.insert",
	SQLite: `INSERT INTO operator_references (connection, name, client_id, subject_id, kind) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (connection, name) DO NOTHING`})

var insertHandles = db.Define(db.SQL{Name: "operator_references.insertHandles",
	SQLite: `INSERT INTO operator_references (connection, name, client_id, subject_id, kind) VALUES ($1, $2, $3, $4, $5)`,
	Postgres: `INSERT INTO operator_references (connection, name, client_id, subject_id, kind)
		SELECT u.a1, u.a2, u.a3, u.a4, u.a5
		FROM (SELECT unnest($1::text[]) AS a1, unnest($2::text[]) AS a2, unnest($3::bytea[]) AS a3, unnest($4::bytea[]) AS a4, unnest($5::text[]) AS a5 LIMIT $6::bigint) AS u`,
	Arrays: true, CitusArrays: true})

var closeOperatorCase = db.Define(db.SQL{Name: "operator_cases.close",
	SQLite: `UPDATE operator_cases SET closed_at = $1 WHERE connection = $2 AND kind = $3 AND closed_at IS NULL`})

var closeOperatorCases = db.Define(db.SQL{Name: "operator_cases.closeAll",
	SQLite: `UPDATE operator_cases SET closed_at = $1 WHERE connection = $2 AND kind = $3 AND closed_at IS NULL AND opened_at < $4`})

var selectReceiptOwners = db.Define(db.SQL{Name: "receipts.selectOwners",
	SQLite: `SELECT client_id, subject_id FROM operator_receipts WHERE connection = $1 AND receipt = $2 AND kind = $3`,
	Postgres: `SELECT u.nth, found.* FROM (SELECT unnest($1::text[]) AS a1, unnest($2::text[]) AS a2, unnest($3::text[]) AS a3, unnest($4::bigint[]) AS nth LIMIT $5::bigint) AS u,
		LATERAL (SELECT client_id, subject_id FROM operator_receipts WHERE connection = u.a1 AND receipt = u.a2 AND kind = u.a3 OFFSET 0) AS found`,
	Arrays: true, CitusArrays: true})

var insertReceipts = db.Define(db.SQL{Name: "receipts.insert",
	SQLite: `INSERT INTO operator_receipts (connection, receipt, kind, client_id, subject_id) VALUES ($1, $2, $3, $4, $5)`,
	Postgres: `INSERT INTO operator_receipts (connection, receipt, kind, client_id, subject_id)
		SELECT u.a1, u.a2, u.a3, u.a4, u.a5
		FROM (SELECT unnest($1::text[]) AS a1, unnest($2::text[]) AS a2, unnest($3::text[]) AS a3, unnest($4::bytea[]) AS a4, unnest($5::bytea[]) AS a5 LIMIT $6::bigint) AS u`,
	Arrays: true, CitusArrays: true})

var verifyReceipts = db.Define(db.SQL{Name: "receipts.verify",
	SQLite: `SELECT r.connection, r.receipt, r.kind, r.client_id, r.subject_id,
		CASE r.kind WHEN 'payment' THEN EXISTS (SELECT 1 FROM payments p WHERE p.client_id = r.client_id AND p.id = r.subject_id
				AND r.connection IN (p.connection, ` + IssuerOf("p") + `) AND p.provider_reference = r.receipt)
			ELSE EXISTS (SELECT 1 FROM payouts q WHERE q.client_id = r.client_id AND q.id = r.subject_id
				AND r.connection IN (q.connection, ` + IssuerOf("q") + `) AND q.provider_reference = r.receipt) END
		FROM operator_receipts r WHERE (r.connection, r.receipt, r.kind) > ($1, $2, $3) ORDER BY r.connection, r.receipt, r.kind LIMIT $4`,
	// Receipts are on the coordinator: a slice of them is sent to the nodes, which say whose there are.
	Citus: `WITH r AS MATERIALIZED (SELECT connection, receipt, kind, client_id, subject_id FROM operator_receipts
			WHERE (connection, receipt, kind) > ($1, $2, $3) ORDER BY connection, receipt, kind LIMIT $4),
		held AS MATERIALIZED (SELECT r.connection, r.receipt, r.kind FROM r JOIN payments p ON p.client_id = r.client_id AND p.id = r.subject_id
				AND r.connection IN (p.connection, ` + IssuerOf("p") + `) AND p.provider_reference = r.receipt WHERE r.kind = 'payment'
			UNION ALL SELECT r.connection, r.receipt, r.kind FROM r JOIN payouts q ON q.client_id = r.client_id AND q.id = r.subject_id
				AND r.connection IN (q.connection, ` + IssuerOf("q") + `) AND q.provider_reference = r.receipt WHERE r.kind <> 'payment')
		SELECT r.connection, r.receipt, r.kind, r.client_id, r.subject_id, held.kind IS NOT NULL
		FROM r LEFT JOIN held ON held.connection = r.connection AND held.receipt = r.receipt AND held.kind = r.kind
		ORDER BY r.connection, r.receipt, r.kind`})

// These fill in the receipts that an instance of an older version recorded after
// the migration had filled operator_receipts. A receipt that another subject has
// is left out; verify finds it. They insert all receipts without a search for
// missing ones, so there is only one possible plan. Those of aggregators are left
// out where they are recorded by issuer, which such a version does not run beside.
// They have no parameter: Citus would not plan them.
var (
	fillPaymentReceipts            = fillReceipts("receipts.fillPaymentReceipts", till.SubjectPayment, "")
	fillPayoutReceipts             = fillReceipts("receipts.fillPayoutReceipts", till.SubjectPayout, "")
	fillPaymentReceiptsOfOperators = fillReceipts("receipts.fillPaymentReceiptsOfOperators", till.SubjectPayment, " AND NOT "+isAggregated("p"))
	fillPayoutReceiptsOfOperators  = fillReceipts("receipts.fillPayoutReceiptsOfOperators", till.SubjectPayout, " AND NOT "+isAggregated("p"))
)

func fillReceipts(name string, kind till.SubjectKind, also string) *db.SQL {
	text := `INSERT INTO operator_receipts (connection, receipt, kind, client_id, subject_id)
		SELECT connection, provider_reference, '` + string(kind) + `', client_id, id FROM ` + string(kind) + `s p
		WHERE provider_reference IS NOT NULL` + also + `
		ORDER BY connection, provider_reference, id ON CONFLICT (connection, receipt, kind) DO NOTHING`
	return db.Define(db.SQL{Name: name, SQLite: text, Citus: text + countInserted})
}

// countInserted makes Citus count the rows that were inserted. Without it, it counts those
// that were tried.
const countInserted = ` RETURNING 1`

// CallbackTarget is what an operator's callback turns out to be about.
type CallbackTarget struct {
	Ref  Ref
	Kind till.SubjectKind
}

// The names under which a subject is found: by what we sent, or by what the
// operator answered.
func ReferenceName(reference till.ID) string { return "r" + reference.String() }
func handleName(handle string) string        { return "h" + handle }

// FindByReference returns what was sent to a connection under a reference; nil
// if nothing was.
func (tx *Tx) FindByReference(ctx context.Context, connection string, reference till.ID) (*CallbackTarget, error) {
	return tx.find(ctx, connection, ReferenceName(reference))
}

// SubjectByHandle returns what an operator gave a handle to; nil if nothing.
func (tx *Tx) SubjectByHandle(ctx context.Context, connection, handle string) (*CallbackTarget, error) {
	return tx.find(ctx, connection, handleName(handle))
}

func (tx *Tx) find(ctx context.Context, connection, name string) (*CallbackTarget, error) {
	f := &CallbackTarget{}
	found, err := tx.db.QueryRow(ctx, selectByName,
		[]any{connection, name}, db.ID(&f.Ref.Client), db.ID(&f.Ref.ID), &f.Kind)
	if err != nil || !found {
		return nil, err
	}
	return f, nil
}

// insertReferences lets callbacks find subjects by name. The first owner of a name
// keeps it. A second send has the same name. If an operator gives one handle
// twice, callbacks for the first payment must not go to the second.
func (tx *Tx) insertReferences(ctx context.Context, rows [][]any) error {
	return tx.db.Defer(insertReferences, rows)
}

// Named is a handle that an operator gave to a payment or payout.
type Named struct {
	Connection, Handle string
	Ref                Ref
	Kind               till.SubjectKind
	// Alone says that this operator gives each handle to one request only. The
	// database then rejects a handle that another payment or payout, of any
	// client, has.
	Alone bool
}

// NameHandles makes payments or payouts known by their handles, in one order,
// because two who bring the same wait for each other. One that another has
// stays the other's; if it is to be had alone, nothing of the change is written.
func (tx *Tx) NameHandles(ctx context.Context, named []Named) error {
	slices.SortFunc(named, func(a, b Named) int {
		return cmp.Or(cmp.Compare(a.Connection, b.Connection), cmp.Compare(a.Handle, b.Handle))
	})
	var alone, others [][]any
	for i := range named {
		n := &named[i]
		args := []any{n.Connection, handleName(n.Handle), n.Ref.Client[:], n.Ref.ID[:], string(n.Kind)}
		if n.Alone {
			alone = append(alone, args)
		} else {
			others = append(others, args)
		}
	}
	if err := tx.db.Defer(insertHandles, alone); err != nil {
		return err
	}
	return tx.insertReferences(ctx, others)
}

// OperatorCase is something about a connection that a person has to check.
type OperatorCase struct {
	Connection string
	Kind       string
	Detail     string
	OpenedAt   till.Time
	ClosedAt   till.Time // zero: open
}

// The kinds of operators' cases.
const (
	CaseCredentials = "credentials" // an operator refuses who we say we are
	CaseAccount     = "account"     // an operator says that something is wrong with our own account
)

// OpenOperatorCase puts a case on the attention list; one that is open stays
// as it is.
func (tx *Tx) OpenOperatorCase(ctx context.Context, c *OperatorCase) error {
	_, err := tx.db.Exec(ctx, openOperatorCase, c.Connection, c.Kind, c.Detail, int64(c.OpenedAt))
	return err
}

var openOperatorCase = db.Define(db.SQL{Name: "operator_cases.open",
	SQLite: `INSERT INTO operator_cases (connection, kind, detail, opened_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (connection, kind) DO UPDATE SET closed_at = NULL, detail = excluded.detail, opened_at = excluded.opened_at
		WHERE operator_cases.closed_at IS NOT NULL`})

// CloseOperatorCase takes a case off the list.
func (tx *Tx) CloseOperatorCase(ctx context.Context, connection, kind string) error {
	_, err := tx.db.Exec(ctx, closeOperatorCase,
		int64(tx.Now()), connection, kind)
	return err
}

// ChangeOperatorCases closes and opens cases in the commit that shows them. A
// case is closed by what was sent after it was opened: until is that time, by
// connection.
func (tx *Tx) ChangeOperatorCases(ctx context.Context, kind string, until map[string]till.Time, open map[string]string) error {
	var closing, opening [][]any
	for _, connection := range slices.Sorted(maps.Keys(until)) {
		closing = append(closing, []any{int64(tx.Now()), connection, kind, int64(until[connection])})
	}
	for _, connection := range slices.Sorted(maps.Keys(open)) {
		opening = append(opening, []any{connection, kind, open[connection], int64(tx.Now())})
	}
	if err := tx.db.Defer(closeOperatorCases, closing); err != nil {
		return err
	}
	return tx.db.Defer(openOperatorCase, opening)
}

// maxOperatorCases is how many cases are read: a few for each connection.
const maxOperatorCases = 1000

// OperatorCases returns the cases of all connections, longest open first; only
// open ones unless all is set.
func (tx *Tx) OperatorCases(ctx context.Context, all bool) ([]*OperatorCase, error) {
	q := selectOpenOperatorCases
	if all {
		q = selectOperatorCases
	}
	return db.ReadAll(ctx, tx.db, q, []any{maxOperatorCases}, func(r db.Row) (*OperatorCase, error) {
		c := &OperatorCase{}
		err := r.Scan(&c.Connection, &c.Kind, &c.Detail, &c.OpenedAt, db.Int(&c.ClosedAt))
		return c, err
	})
}

// Receipt is an operator's own id of a movement of money. Of one issuer it names
// one payment, and one payout, of whatever client.
type Receipt struct{ Issuer, Text string }

// Received is a receipt that a payment or payout has.
type Received struct {
	Receipt
	Ref Ref
}

// ReceiptOwners returns which payments, or payouts, of whatever client have
// which of the receipts.
func (tx *Tx) ReceiptOwners(ctx context.Context, kind till.SubjectKind, receipts []Receipt) (map[Receipt]Ref, error) {
	args := make([][]any, len(receipts))
	for i, r := range receipts {
		args[i] = []any{r.Issuer, r.Text, string(kind)}
	}
	out := make(map[Receipt]Ref)
	err := tx.db.QueryEach(ctx, selectReceiptOwners, args,
		func(i int, r db.Row) error {
			var ref Ref
			err := r.Scan(db.ID(&ref.Client), db.ID(&ref.ID))
			out[receipts[i]] = ref
			return err
		})
	return out, err
}

// InsertReceipts writes down whose receipts are. The database refuses one that
// another payment, or payout, of any client has: the whole change that rests on
// it is not written then. They are written in one order, because two who bring
// the same wait for each other.
func (tx *Tx) InsertReceipts(ctx context.Context, kind till.SubjectKind, received []Received) error {
	slices.SortFunc(received, func(a, b Received) int {
		return cmp.Or(cmp.Compare(a.Issuer, b.Issuer), cmp.Compare(a.Text, b.Text))
	})
	args := make([][]any, len(received))
	for i := range received {
		r := &received[i]
		args[i] = []any{r.Issuer, r.Text, string(kind), r.Ref.Client[:], r.Ref.ID[:]}
	}
	return tx.db.Defer(insertReceipts, args)
}

// VerifyReceipt is a line of the record of receipts with what has, or has not,
// the receipt.
type VerifyReceipt struct {
	Received
	Kind till.SubjectKind
	Had  bool // the payment or payout is there, and has it
}

// VerifyReceipts returns the next lines of the record of receipts, beyond one.
func (tx *Tx) VerifyReceipts(ctx context.Context, after *VerifyReceipt, limit int) ([]*VerifyReceipt, error) {
	var out []*VerifyReceipt
	err := tx.db.Query(ctx, verifyReceipts,
		[]any{after.Issuer, after.Text, string(after.Kind), limit}, func(r db.Row) error {
			v := &VerifyReceipt{}
			out = append(out, v)
			return r.Scan(&v.Issuer, &v.Text, &v.Kind, db.ID(&v.Ref.Client), db.ID(&v.Ref.ID), db.Bool(&v.Had))
		})
	return out, err
}

// FillReceipts writes down whose the receipts are that are on no record, and
// returns how many. It reads all payments.
func (s *Store) FillReceipts(ctx context.Context) (n int64, err error) {
	err = s.UpdateBackground(ctx, func(tx *Tx) error {
		n = 0
		tx.db.WithoutTimeout()
		byIssuer, err := tx.ByIssuer(ctx)
		if err != nil {
			return err
		}
		fills := []*db.SQL{fillPaymentReceipts, fillPayoutReceipts}
		if byIssuer {
			fills = []*db.SQL{fillPaymentReceiptsOfOperators, fillPayoutReceiptsOfOperators}
		}
		for _, fill := range fills {
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
