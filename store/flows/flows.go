package flows

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

var insertFlows = db.DefineByClient(1, db.SQL{Name: "flows.insert",
	SQLite: `INSERT INTO payment_flows (client_id, payment_id, code) VALUES ($1, $2, $3)`,
	Postgres: `INSERT INTO payment_flows (client_id, payment_id, code)
		SELECT u.a1, u.a2, u.a3
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bytea[]) AS a3 LIMIT $4::bigint) AS u`,
	Arrays: true})

var selectFlows = db.DefineByClient(1, db.SQL{Name: "flows.select",
	SQLite: `SELECT code, next_url, next_until, event FROM payment_flows WHERE client_id = $1 AND payment_id = $2`,
	Postgres: `SELECT u.nth, code, next_url, next_until, event FROM payment_flows,
		(SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a1]) AND payment_id = u.a2`,
	Arrays: true})

var saveFlows = db.DefineByClient(5, db.SQL{Name: "flows.save",
	SQLite: `UPDATE payment_flows SET code = $1, next_url = $2, next_until = $3, event = $4 WHERE client_id = $5 AND payment_id = $6`,
	Postgres: `WITH changed AS (UPDATE payment_flows SET code = u.a1, next_url = u.a2, next_until = u.a3, event = u.a4
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::text[]) AS a2, unnest($3::bigint[]) AS a3, unnest($4::bigint[]) AS a4,
			unnest($5::bytea[]) AS a5, unnest($6::bytea[]) AS a6 LIMIT $7::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a5]) AND payment_id = u.a6
		RETURNING 1)
		SELECT till_expect_rows(count(*), $7) FROM changed`,
	Arrays: true})

// Level is the level from which on payments are made that are not approved by a prompt. An
// older program would send them without what they need.
const Level = 5

// Row is what a payment has.
type Row struct {
	store.Ref
	Code      []byte    // sealed; nil: there is none, or the operator has answered
	NextURL   string    // where the customer goes; "" before the operator has told, and after the end
	NextUntil till.Time // when that ends; zero: the operator does not say
	Event     int64     // the number of the event that told of the address; 0: none was told
}

// Insert writes the rows of new payments.
func Insert(ctx context.Context, tx *store.Tx, rows []*Row) error {
	args := make([][]any, len(rows))
	for i, f := range rows {
		args[i] = []any{f.Client[:], f.ID[:], db.BytesOrNull(f.Code)}
	}
	return tx.DB().Defer(insertFlows, args)
}

// Of returns the rows of those of the payments that have one.
func Of(ctx context.Context, tx *store.Tx, payments []store.Ref) (map[store.Ref]*Row, error) {
	out := make(map[store.Ref]*Row)
	if len(payments) == 0 {
		return out, nil
	}
	err := tx.DB().QueryEach(ctx, selectFlows, store.RefArgs(payments), func(i int, r db.Row) error {
		f := &Row{Ref: payments[i]}
		out[payments[i]] = f
		return r.Scan(&f.Code, db.Text(&f.NextURL), db.Int(&f.NextUntil), db.Int(&f.Event))
	})
	return out, err
}

// Save writes rows as they are in memory.
func Save(ctx context.Context, tx *store.Tx, rows []*Row) error {
	args := make([][]any, len(rows))
	for i, f := range rows {
		args[i] = []any{db.BytesOrNull(f.Code), db.OrNull(f.NextURL), db.OrNull(f.NextUntil), db.OrNull(f.Event), f.Client[:], f.ID[:]}
	}
	return tx.DB().DeferExactly(saveFlows, args)
}

// MayWrite reports whether the installation's level allows such payments.
func MayWrite(ctx context.Context, tx *store.Tx) (bool, error) {
	level, err := tx.InstallationLevel(ctx)
	return level >= Level, err
}
