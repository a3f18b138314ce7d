package store

import (
	"context"
	"fmt"

	"till"
	"till/internal/db"
)

var seedWalletSums = db.Define(db.SQL{Name: "seed.seedWalletSums",
	SQLite: `UPDATE wallets SET last_sequence = last_sequence + $1, balance = balance + $2 WHERE client_id = $3 AND currency = $4`})

var seedLastEvent = db.Define(db.SQL{Name: "seed.seedLastEvent",
	SQLite: `SELECT max(final_event), max(updated_at) FROM payments WHERE client_id = $1 AND id BETWEEN $2 AND $3`})

var seedHead = db.Define(db.SQL{Name: "seed.seedHead",
	SQLite: `UPDATE client_heads SET last_event = $1, last_audit = last_audit + $2,
		last_time = CASE WHEN last_time < $3 THEN $4 ELSE last_time END WHERE client_id = $5`})

var seedCreditCounts = db.Define(db.SQL{Name: "seed.seedCreditCounts",
	SQLite: `SELECT updated_at / $1, currency, count(*) FROM payments
		WHERE client_id = $2 AND id BETWEEN $3 AND $4 AND status = 'success' GROUP BY 1, 2`})

// seedTook is how many microseconds a seeded payment takes to its end: one for
// each event after the first.
const seedTook = 2

// seedBooks writes everything that hangs on the payments between two ids, set
// by set: three events and a send for each, a credit with its entry and its
// audit row for each success, and for each other one the last read for late
// money.
func (tx *Tx) seedBooks(ctx context.Context, client, lo, hi till.ID, counts *CounterDelta) error {
	for _, insert := range seedBookRows {
		if _, err := tx.db.Exec(ctx, insert, client[:], lo[:], hi[:]); err != nil {
			return err
		}
	}
	return tx.seedSums(ctx, client, lo, hi, counts)
}

// seedBookRows are the statements of seedBooks.
var seedBookRows = func() (out []*db.SQL) {
	postgres := seedBookTexts(db.Postgres)
	for i, text := range seedBookTexts(db.SQLite) {
		out = append(out, db.Define(db.SQL{Name: fmt.Sprintf("seed.books %d", i+1), SQLite: text, Postgres: postgres[i]}))
	}
	return out
}()

func seedBookTexts(d db.Dialect) []string {
	id := seedID(d, "at")
	const payments = ` FROM (SELECT p.*, (p.pending_event - 1) / 3 AS i, p.updated_at AS at FROM payments p WHERE p.client_id = $1 AND p.id BETWEEN $2 AND $3) AS p `
	const event = `INSERT INTO events (client_id, sequence, kind, subject_id, created_at, status, expires_at, failure_reason, resolution) SELECT client_id, `
	return []string{
		event + `pending_event, 'payment.pending', id, created_at, 'pending', expires_at, NULL, 'waiting'` + payments,
		event + `processing_event, 'payment.processing', id, created_at + 1, 'processing', expires_at, NULL, 'waiting'` + payments,
		event + `final_event, 'payment.' || status, id, updated_at, status, expires_at, failure_reason, 'confirmed'` + payments,
		`INSERT INTO attempts (client_id, subject_id, n, kind, connection, reference, outcome, started_at, ended_at, last_at, first_send)
			SELECT client_id, id, 1, 'submit', connection, id, 'accepted', created_at, created_at + 1, created_at + 1, 1` + payments,
		`INSERT INTO attempts (client_id, subject_id, n, kind, connection, reference, outcome, started_at, ended_at, last_at)
			SELECT client_id, id, 2, 'check', connection, id, status, updated_at, updated_at, updated_at + 259200000000` + payments + `WHERE status <> 'success'`,
		`INSERT INTO transactions (client_id, id, wallet_id, sequence, type, direction, amount, currency, balance_after, payment_id, reference, created_at, money_in)
			SELECT client_id, ` + id + `, wallet_id, sequence, 'collection', 'credit', amount, currency, sequence * amount, id, reference, at, 1
			FROM (SELECT p.*, w.id AS wallet_id, w.last_sequence + row_number() OVER (PARTITION BY p.currency ORDER BY p.id) AS sequence` + payments +
			`JOIN wallets w ON w.client_id = p.client_id AND w.currency = p.currency WHERE p.status = 'success') AS p`,
		`INSERT INTO postings (client_id, entry_id, account, connection, currency, amount, kind, payment_id, created_at)
			SELECT client_id, ` + id + `, 'operator', connection, currency, -amount, 'collection', id, at` + payments + `WHERE status = 'success'`,
		`INSERT INTO audit (client_id, sequence, at, actor, action, subject_id, detail, cause)
			SELECT p.client_id, h.last_audit + row_number() OVER (ORDER BY p.id), at, 'engine', 'collection', id, '5000 credited', 'check'` + payments +
			`JOIN client_heads h ON h.client_id = p.client_id WHERE status = 'success'`,
	}
}

// seedSums brings counters, wallets and the head up to what was written.
func (tx *Tx) seedSums(ctx context.Context, client, lo, hi till.ID, counts *CounterDelta) error {
	credits, err := tx.seedCredits(ctx, client, lo, hi, counts)
	if err != nil {
		return err
	}
	var audit int64
	for currency, n := range credits {
		audit += n
		if _, err := tx.db.Exec(ctx, seedWalletSums,
			n, n*500000, client[:], currency); err != nil {
			return err
		}
	}
	var events int64
	var at till.Time
	if _, err := tx.db.QueryRow(ctx, seedLastEvent,
		[]any{client[:], lo[:], hi[:]}, &events, &at); err != nil {
		return err
	}
	_, err = tx.db.Exec(ctx, seedHead, events, audit, int64(at), int64(at), client[:])
	return err
}

// seedCredits counts the credits of payments, and returns how many there are
// of each currency.
func (tx *Tx) seedCredits(ctx context.Context, client, lo, hi till.ID, counts *CounterDelta) (map[string]int64, error) {
	credits := map[string]int64{}
	err := tx.db.Query(ctx, seedCreditCounts,
		[]any{int64(till.Hour), client[:], lo[:], hi[:]}, func(r db.Row) error {
			var hour, n int64
			var currency string
			err := r.Scan(&hour, &currency, &n)
			counts.add(client, countTransactions, bucketStart(widthHour, hour), "collection", currency, n)
			credits[currency] += n
			return err
		})
	return credits, err
}
