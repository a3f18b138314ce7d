package admin

import (
	"context"
	"time"

	"till"
	"till/internal/db"
	"till/store"
)

// The reads in this file are for gauges. Each is limited by what is open, however long
// the tables are: open payments and payouts have a step, and suspense has an index.

// openSteps are the steps of what is not final.
const openSteps = `(SELECT client_id, subject_id, sends, lane FROM steps WHERE late_from = 0 AND late_reads = 0 AND kind = $1 LIMIT $2) AS s`

const openColumns = `count(*), CAST(sum(p.amount) AS BIGINT), min(CASE WHEN s.sends > 0 THEN p.created_at END)`

var sumOpenPayments = db.Define(db.SQL{Name: "gauges.sumOpenPayments",
	SQLite: `SELECT p.connection, p.currency, 0, ` + openColumns + ` FROM ` + openSteps + ` JOIN payments p ON p.client_id = s.client_id AND p.id = s.subject_id
		WHERE p.final_event IS NULL GROUP BY p.connection, p.currency ORDER BY p.connection, p.currency`})

var sumOpenPayouts = db.Define(db.SQL{Name: "gauges.sumOpenPayouts",
	SQLite: `SELECT p.connection, p.currency, CASE WHEN p.payment_id IS NULL THEN 0 ELSE 1 END, ` + openColumns + ` FROM ` + openSteps + ` JOIN payouts p ON p.client_id = s.client_id AND p.id = s.subject_id
		WHERE p.final_event IS NULL GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`})

var countDueSteps = db.Define(db.SQL{Name: "gauges.countDueSteps",
	SQLite: `SELECT d.lane, count(*) FROM (SELECT lane, client_id FROM steps WHERE due_at <= $1 AND lease_until <= $1 LIMIT $2) AS d GROUP BY d.lane ORDER BY d.lane`})

var sumAllWallets = db.Define(db.SQL{Name: "gauges.sumWallets",
	SQLite: `SELECT c.mode, w.currency, CAST(sum(w.balance) AS BIGINT), CAST(sum(w.reserved) AS BIGINT), CAST(sum(w.owed) AS BIGINT)
		FROM (SELECT client_id, currency, balance, reserved, owed FROM wallets LIMIT $1) AS w JOIN clients c ON c.client_id = w.client_id
		GROUP BY c.mode, w.currency ORDER BY c.mode, w.currency`})

var sumSuspended = db.Define(db.SQL{Name: "gauges.sumSuspense",
	SQLite: `SELECT c.mode, s.currency, s.minor, s.since FROM (SELECT client_id, currency, CAST(sum(amount) AS BIGINT) AS minor, min(created_at) AS since FROM postings
		WHERE account = 'suspense' GROUP BY currency, client_id, payment_id HAVING sum(amount) <> 0 LIMIT $1) AS s JOIN clients c ON c.client_id = s.client_id`})

var sumStrays = db.Define(db.SQL{Name: "gauges.sumStrays",
	SQLite: `SELECT connection, direction, coalesce(currency, ''), count(*), CAST(coalesce(sum(minor), 0) AS BIGINT) FROM strays
		WHERE standing = 1 AND why IS NULL GROUP BY connection, direction, currency ORDER BY connection, direction, currency LIMIT $1`})

var selectOldestTally = db.Define(db.SQL{Name: "gauges.selectOldestTally", SQLite: `SELECT min(hour) FROM tallies`})

const oldestUnsealed = `SELECT min(a.at) FROM (SELECT h.client_id, h.last_audit, coalesce((SELECT max(c.sequence) FROM audit_seals c WHERE c.client_id = h.client_id), 0) AS sealed
		FROM client_heads h) AS x JOIN audit a ON a.client_id = x.client_id AND a.sequence = x.sealed + 1 WHERE x.last_audit > x.sealed`

var selectOldestUnsealed = db.Define(db.SQL{Name: "gauges.selectOldestUnsealed",
	SQLite: oldestUnsealed,
	// OFFSET 0 keeps the order: PostgreSQL would read the whole audit log, and look up each
	// row's client.
	Postgres: `SELECT min(found.at) FROM client_heads h,
		LATERAL (SELECT coalesce((SELECT max(c.sequence) FROM audit_seals c WHERE c.client_id = h.client_id), 0) AS sealed OFFSET 0) AS x,
		LATERAL (SELECT a.at FROM audit a WHERE a.client_id = h.client_id AND a.sequence = x.sealed + 1 AND h.last_audit > x.sealed OFFSET 0) AS found`,
	Citus: oldestUnsealed}) // it takes no LATERAL without a table

var countEndpoints = db.Define(db.SQL{Name: "gauges.countEndpoints",
	SQLite: `SELECT c.mode, e.state, count(*), CAST(sum(CASE WHEN e.state <> 'disabled' AND e.cursor_sequence < h.last_event THEN 1 ELSE 0 END) AS BIGINT),
			min(CASE WHEN e.state <> 'disabled' THEN e.next_at END)
		FROM (SELECT w.client_id, w.cursor_sequence, CASE WHEN w.enabled = 0 THEN 'disabled' WHEN w.failures >= $1 THEN 'failing' ELSE 'ok' END AS state,
				(SELECT v.created_at FROM events v WHERE v.client_id = w.client_id AND v.sequence = w.cursor_sequence + 1) AS next_at
			FROM webhook_endpoints w LIMIT $2) AS e
		JOIN client_heads h ON h.client_id = e.client_id JOIN clients c ON c.client_id = e.client_id
		GROUP BY c.mode, e.state ORDER BY c.mode, e.state`,
	// Citus joins no LIMIT of all nodes with their tables.
	Citus: `SELECT c.mode, e.state, count(*), CAST(sum(CASE WHEN e.state <> 'disabled' AND e.cursor_sequence < h.last_event THEN 1 ELSE 0 END) AS BIGINT),
			min(CASE WHEN e.state <> 'disabled' THEN v.created_at END)
		FROM (SELECT client_id, cursor_sequence, CASE WHEN enabled = 0 THEN 'disabled' WHEN failures >= $1 THEN 'failing' ELSE 'ok' END AS state
			FROM webhook_endpoints WHERE CAST($2 AS BIGINT) > 0) AS e
		JOIN client_heads h ON h.client_id = e.client_id JOIN clients c ON c.client_id = e.client_id
		LEFT JOIN events v ON v.client_id = e.client_id AND v.sequence = e.cursor_sequence + 1
		GROUP BY c.mode, e.state ORDER BY c.mode, e.state`})

// Limits of the reads: beyond them, numbers are too low rather than slow to come.
const (
	maxOpenRead    = 200_000
	maxWalletsRead = 200_000
	maxGroups      = 500
)

// OpenSum is what is not final on one connection in one currency.
type OpenSum struct {
	Connection, Currency string
	Refunds              bool // of payouts: those that give a payment back, or the others
	Count, Minor         int64
	OldestSent           till.Time // when the oldest that may have been sent was created; zero: none was
}

// OpenSums returns what of a kind is not final.
func OpenSums(ctx context.Context, tx *store.Tx, kind till.SubjectKind) ([]OpenSum, error) {
	q := sumOpenPayments
	if kind == till.SubjectPayout {
		q = sumOpenPayouts
	}
	return db.ReadAll(ctx, tx.DB(), q, []any{string(kind), maxOpenRead}, func(r db.Row) (OpenSum, error) {
		var o OpenSum
		err := r.Scan(&o.Connection, &o.Currency, db.Bool(&o.Refunds), &o.Count, &o.Minor, db.Int(&o.OldestSent))
		return o, err
	})
}

// DueStepCounts counts the steps that are due and not leased, by lane.
func DueStepCounts(ctx context.Context, tx *store.Tx) (map[string]int64, error) {
	out := map[string]int64{}
	err := tx.DB().Query(ctx, countDueSteps, []any{int64(tx.Now()), maxOpenRead}, func(r db.Row) error {
		var lane string
		var n int64
		err := r.Scan(&lane, &n)
		out[lane] = n
		return err
	})
	return out, err
}

// WalletSum is what all wallets of a mode and currency hold.
type WalletSum struct {
	Mode                    till.Mode
	Currency                string
	Balance, Reserved, Owed int64
}

// WalletSums returns what all wallets hold.
func WalletSums(ctx context.Context, tx *store.Tx) ([]WalletSum, error) {
	return db.ReadAll(ctx, tx.DB(), sumAllWallets, []any{maxWalletsRead}, func(r db.Row) (WalletSum, error) {
		var w WalletSum
		err := r.Scan(&w.Mode, &w.Currency, &w.Balance, &w.Reserved, &w.Owed)
		return w, err
	})
}

// SuspenseSum is the money of one payment that belongs to no wallet yet.
type SuspenseSum struct {
	Mode     till.Mode
	Currency string
	Minor    int64
	Since    till.Time
}

// SuspenseSums returns the money in suspense, by payment.
func SuspenseSums(ctx context.Context, tx *store.Tx) ([]SuspenseSum, error) {
	return db.ReadAll(ctx, tx.DB(), sumSuspended, []any{maxOpenRead}, func(r db.Row) (SuspenseSum, error) {
		var s SuspenseSum
		err := r.Scan(&s.Mode, &s.Currency, &s.Minor, &s.Since)
		return s, err
	})
}

// StraySum is open strays of one connection, direction and currency.
type StraySum struct {
	Connection, Direction, Currency string // "": nobody says
	Count, Minor                    int64
}

// StraySums returns the open strays.
func StraySums(ctx context.Context, tx *store.Tx) ([]StraySum, error) {
	return db.ReadAll(ctx, tx.DB(), sumStrays, []any{maxGroups}, func(r db.Row) (StraySum, error) {
		var s StraySum
		err := r.Scan(&s.Connection, &s.Direction, &s.Currency, &s.Count, &s.Minor)
		return s, err
	})
}

// OldestTally returns the end of the oldest hour with tallies that are not rolled up;
// zero if there is none.
func OldestTally(ctx context.Context, tx *store.Tx) (till.Time, error) {
	var hour int64
	_, err := tx.DB().QueryRow(ctx, selectOldestTally, nil, db.Int(&hour))
	if err != nil || hour == 0 {
		return 0, err
	}
	return till.Time((hour + 1) * time.Hour.Microseconds()), nil
}

// OldestUnsealed returns the time of the oldest audit row that is in no chain; zero if
// there is none.
func OldestUnsealed(ctx context.Context, tx *store.Tx) (at till.Time, err error) {
	_, err = tx.DB().QueryRow(ctx, selectOldestUnsealed, nil, db.Int(&at))
	return at, err
}

// EndpointState counts webhook endpoints of one mode and state.
type EndpointState struct {
	Mode          till.Mode
	State         string // ok, failing or disabled
	Count         int64
	Pending       int64     // those that events wait for
	OldestPending till.Time // when the oldest event that waits was created; zero: none does
}

// EndpointStates counts webhook endpoints.
func EndpointStates(ctx context.Context, tx *store.Tx) ([]EndpointState, error) {
	return db.ReadAll(ctx, tx.DB(), countEndpoints, []any{till.FailingAfter, maxWalletsRead}, func(r db.Row) (EndpointState, error) {
		var e EndpointState
		err := r.Scan(&e.Mode, &e.State, &e.Count, &e.Pending, db.Int(&e.OldestPending))
		return e, err
	})
}
