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
	Arrays: true})

var closeOperatorCase = db.Define(db.SQL{Name: "operator_cases.close",
	SQLite: `UPDATE operator_cases SET closed_at = $1 WHERE connection = $2 AND kind = $3 AND closed_at IS NULL`})

var closeOperatorCases = db.Define(db.SQL{Name: "operator_cases.closeAll",
	SQLite: `UPDATE operator_cases SET closed_at = $1 WHERE connection = $2 AND kind = $3 AND closed_at IS NULL AND opened_at < $4`})

// CallbackTarget is what an operator's callback turns out to be about.
type CallbackTarget struct {
	Ref  Ref
	Kind string // KindPayment, or the kind of a payout
}

// The names under which a subject is found: by what we sent, or by what the
// operator answered.
func referenceName(reference till.ID) string { return "r" + reference.String() }
func handleName(handle string) string        { return "h" + handle }

// FindByReference returns what was sent to a connection under a reference; nil
// if nothing was.
func (tx *Tx) FindByReference(ctx context.Context, connection string, reference till.ID) (*CallbackTarget, error) {
	return tx.find(ctx, connection, referenceName(reference))
}

// SubjectByHandle returns what an operator gave a handle to; nil if nothing.
func (tx *Tx) SubjectByHandle(ctx context.Context, connection, handle string) (*CallbackTarget, error) {
	return tx.find(ctx, connection, handleName(handle))
}

func (tx *Tx) find(ctx context.Context, connection, name string) (*CallbackTarget, error) {
	f := &CallbackTarget{}
	found, err := tx.db.QueryRow(ctx, selectByName,
		[]any{connection, name}, idDest(&f.Ref.Client), idDest(&f.Ref.ID), &f.Kind)
	if err != nil || !found {
		return nil, err
	}
	return f, nil
}

// insertReferences makes subjects known by names. Whoever has a name keeps it:
// a second send has the same, and an operator that gives one handle twice must
// not have the first payment's callbacks go to the second.
func (tx *Tx) insertReferences(ctx context.Context, rows [][]any) error {
	return tx.db.Defer(insertReferences, rows)
}

// Named is a handle that an operator gave to a payment or payout.
type Named struct {
	Connection, Handle string
	Ref                Ref
	Kind               string
	// Alone says that a handle is one request's on this operator, and that the
	// database refuses one that another payment or payout, of any client, has.
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
		args := []any{n.Connection, handleName(n.Handle), n.Ref.Client[:], n.Ref.ID[:], n.Kind}
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

// OperatorCase is something about a connection that a person has to look at.
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
	var out []*OperatorCase
	err := tx.db.Query(ctx, q, []any{maxOperatorCases}, func(r db.Row) error {
		c := &OperatorCase{}
		err := r.Scan(&c.Connection, &c.Kind, &c.Detail, &c.OpenedAt, intDest(&c.ClosedAt))
		out = append(out, c)
		return err
	})
	return out, err
}
