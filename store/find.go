package store

import (
	"context"

	"till"
	"till/internal/db"
)

// FindColumn is what payments and payouts are found by.
type FindColumn string

// The columns.
const (
	FindID        FindColumn = "id"
	FindKey       FindColumn = "idempotency_key"
	FindReference FindColumn = "reference"
	FindReceipt   FindColumn = "provider_reference"
)

// findIn reads one client's, findInAll probes each client's own index, in one statement.
var findIn, findInAll = map[string]*db.SQL{}, map[string]*db.SQL{}

func init() {
	for _, table := range []string{"payments", "payouts"} {
		for _, column := range []FindColumn{FindID, FindKey, FindReference, FindReceipt} {
			name := table + "." + string(column)
			findIn[name] = db.Define(db.SQL{Name: "find." + name,
				SQLite: `SELECT client_id, id FROM ` + table + ` WHERE client_id = $1 AND ` + string(column) + ` = $2 LIMIT $3`})
			findInAll[name] = db.Define(db.SQL{Name: "find.all." + name,
				SQLite: `SELECT p.client_id, p.id FROM clients c CROSS JOIN ` + table + ` p WHERE p.client_id = c.client_id AND p.` + string(column) + ` = $1 LIMIT $2`,
				Postgres: `SELECT f.client_id, f.id FROM clients c, LATERAL (SELECT p.client_id, p.id FROM ` + table + ` p
					WHERE p.client_id = c.client_id AND p.` + string(column) + ` = $1 LIMIT $2) AS f LIMIT $2`})
		}
	}
}

var (
	selectReferencesFrom = db.Define(db.SQL{Name: "find.payments.referencesFrom",
		SQLite: `SELECT client_id, id, reference FROM payments WHERE client_id = $1 AND reference IS NOT NULL AND reference >= $2 ORDER BY reference LIMIT $3`})
	selectPayoutReferencesFrom = db.Define(db.SQL{Name: "find.payouts.referencesFrom",
		SQLite: `SELECT client_id, id, reference FROM payouts WHERE client_id = $1 AND reference IS NOT NULL AND reference >= $2 ORDER BY reference LIMIT $3`})
)

// RefsBy returns up to limit payments, or payouts, that have a value in a column: of
// one client, or of all if it is till.House. A value of an id or a key is its 16
// bytes.
func (tx *Tx) RefsBy(ctx context.Context, client till.ID, payouts bool, column FindColumn, value any, limit int) ([]Ref, error) {
	name := "payments." + string(column)
	if payouts {
		name = "payouts." + string(column)
	}
	if client == till.House {
		return tx.readRefs(ctx, findInAll[name], value, limit)
	}
	return tx.readRefs(ctx, findIn[name], client[:], value, limit)
}

// ReferenceRow is a payment or payout with its reference.
type ReferenceRow struct {
	Ref
	Reference string
}

// ReferencesFrom returns up to limit payments, or payouts, of a client by their
// references, from one on. The order is the database's, in which references that
// begin alike stand together, or nearly so.
func (tx *Tx) ReferencesFrom(ctx context.Context, client till.ID, payouts bool, from string, limit int) ([]ReferenceRow, error) {
	q := selectReferencesFrom
	if payouts {
		q = selectPayoutReferencesFrom
	}
	return readAll(ctx, tx, q, []any{client[:], from, limit}, func(r db.Row) (row ReferenceRow, err error) {
		err = r.Scan(idDest(&row.Client), idDest(&row.ID), &row.Reference)
		return row, err
	})
}

var (
	selectRecentPhones = db.Define(db.SQL{Name: "find.payments.recentPhones",
		SQLite: `SELECT p.client_id, p.id FROM clients c CROSS JOIN payments p WHERE p.client_id = c.client_id AND p.id >= $1 AND p.phone = $2 LIMIT $3`,
		Postgres: `SELECT f.client_id, f.id FROM clients c, LATERAL (SELECT p.client_id, p.id FROM payments p
			WHERE p.client_id = c.client_id AND p.id >= $1 AND p.phone = $2 LIMIT $3) AS f LIMIT $3`})
	selectRecentPayoutPhones = db.Define(db.SQL{Name: "find.payouts.recentPhones",
		SQLite: `SELECT p.client_id, p.id FROM clients c CROSS JOIN payouts p WHERE p.client_id = c.client_id AND p.id >= $1 AND p.phone = $2 LIMIT $3`,
		Postgres: `SELECT f.client_id, f.id FROM clients c, LATERAL (SELECT p.client_id, p.id FROM payouts p
			WHERE p.client_id = c.client_id AND p.id >= $1 AND p.phone = $2 LIMIT $3) AS f LIMIT $3`})
)

// RecentByPhone returns up to limit payments, or payouts, of all clients that were made
// since a moment and have a phone. Every row since then is looked at.
func (tx *Tx) RecentByPhone(ctx context.Context, payouts bool, phone string, since till.Time, limit int) ([]Ref, error) {
	q := selectRecentPhones
	if payouts {
		q = selectRecentPayoutPhones
	}
	from := till.FirstID(since)
	return tx.readRefs(ctx, q, from[:], phone, limit)
}
