package lookup

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
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

// Over all clients, references that begin alike: SQLite compares bytes, so they have
// an end; PostgreSQL's order may be a language's, so a few of each client are read and
// compared.
var (
	selectPrefixInAll = db.Define(db.SQL{Name: "find.all.payments.prefix",
		SQLite: `SELECT p.client_id, p.id, p.reference FROM clients c CROSS JOIN payments p
			WHERE p.client_id = c.client_id AND p.reference IS NOT NULL AND p.reference BETWEEN $1 AND $2 LIMIT $3`,
		Postgres: `SELECT f.client_id, f.id, f.reference FROM clients c, LATERAL (SELECT p.client_id, p.id, p.reference FROM payments p
			WHERE p.client_id = c.client_id AND p.reference IS NOT NULL AND p.reference >= $1 ORDER BY p.reference LIMIT 20) AS f
			WHERE f.reference COLLATE "C" BETWEEN $1 AND $2 LIMIT $3`})
	selectPayoutPrefixInAll = db.Define(db.SQL{Name: "find.all.payouts.prefix",
		SQLite: `SELECT p.client_id, p.id, p.reference FROM clients c CROSS JOIN payouts p
			WHERE p.client_id = c.client_id AND p.reference IS NOT NULL AND p.reference BETWEEN $1 AND $2 LIMIT $3`,
		Postgres: `SELECT f.client_id, f.id, f.reference FROM clients c, LATERAL (SELECT p.client_id, p.id, p.reference FROM payouts p
			WHERE p.client_id = c.client_id AND p.reference IS NOT NULL AND p.reference >= $1 ORDER BY p.reference LIMIT 20) AS f
			WHERE f.reference COLLATE "C" BETWEEN $1 AND $2 LIMIT $3`})
)

// An event's id says its number and its time, so each client's log is probed once.
var selectSubjectsOfEvent = db.Define(db.SQL{Name: "find.subjectsOfEvent",
	SQLite: `SELECT e.client_id, e.subject_id, e.created_at FROM clients c CROSS JOIN events e
		WHERE c.client_id BETWEEN $1 AND $2 AND e.client_id = c.client_id AND e.sequence = $3 AND e.created_at = $4`,
	Postgres: `SELECT f.client_id, f.subject_id, f.created_at FROM (SELECT client_id FROM clients WHERE client_id BETWEEN $1 AND $2) AS c,
		LATERAL (SELECT e.client_id, e.subject_id, e.created_at FROM events e WHERE e.client_id = c.client_id AND e.sequence = $3 AND e.created_at = $4 LIMIT 1) AS f`})

// RefsBy returns up to limit payments, or payouts, that have a value in a column: of
// one client, or of all if it is till.House. A value of an id or a key is its 16
// bytes.
func RefsBy(ctx context.Context, tx *store.Tx, client till.ID, payouts bool, column FindColumn, value any, limit int) ([]store.Ref, error) {
	name := "payments." + string(column)
	if payouts {
		name = "payouts." + string(column)
	}
	if client == till.House {
		return readRefs(ctx, tx, findInAll[name], value, limit)
	}
	return readRefs(ctx, tx, findIn[name], client[:], value, limit)
}

// ReferenceRow is a payment or payout with its reference.
type ReferenceRow struct {
	store.Ref
	Reference string
}

// ReferencesFrom returns up to limit payments, or payouts, of a client by their
// references, from one on. The order is the database's, in which references that
// begin alike are together, or nearly so. Of till.House it returns those of all
// clients that begin with the text, in no order.
func ReferencesFrom(ctx context.Context, tx *store.Tx, client till.ID, payouts bool, from string, limit int) ([]ReferenceRow, error) {
	q, all := selectReferencesFrom, selectPrefixInAll
	if payouts {
		q, all = selectPayoutReferencesFrom, selectPayoutPrefixInAll
	}
	args := []any{client[:], from, limit}
	if client == till.House {
		q, args = all, []any{from, from + "\U0010ffff", limit}
	}
	return db.ReadAll(ctx, tx.DB(), q, args, func(r db.Row) (row ReferenceRow, err error) {
		err = r.Scan(db.ID(&row.Client), db.ID(&row.ID), &row.Reference)
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
func RecentByPhone(ctx context.Context, tx *store.Tx, payouts bool, phone string, since till.Time, limit int) ([]store.Ref, error) {
	q := selectRecentPhones
	if payouts {
		q = selectRecentPayoutPhones
	}
	from := till.FirstID(since)
	return readRefs(ctx, tx, q, from[:], phone, limit)
}

// SubjectsOfEvent returns what the event with an id is about: of one client, or of any
// if it is till.House.
func SubjectsOfEvent(ctx context.Context, tx *store.Tx, client, id till.ID) (refs []store.Ref, err error) {
	lo, hi := client, client
	if client == till.House {
		hi = till.LastID(1<<47*1000 - 1)
	}
	err = tx.DB().Query(ctx, selectSubjectsOfEvent, []any{lo[:], hi[:], id.EventSequence(), int64(id.Time())}, func(r db.Row) error {
		var ref store.Ref
		var at till.Time
		err := r.Scan(db.ID(&ref.Client), db.ID(&ref.ID), &at)
		if till.EventID(ref.Client, id.EventSequence(), at) == id {
			refs = append(refs, ref)
		}
		return err
	})
	return refs, err
}
