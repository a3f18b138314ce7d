package seed

import (
	"context"
	"fmt"
	"time"

	"till"
	"till/internal/db"
	"till/store"
)

var addToWallet = &db.SQL{Name: "seed.addToWallet",
	SQLite: `UPDATE wallets SET last_sequence = last_sequence + $1, balance = balance + $2 WHERE client_id = $3 AND currency = $4`}

var selectLastEvent = &db.SQL{Name: "seed.selectLastEvent",
	SQLite: `SELECT max(final_event), max(updated_at) FROM payments WHERE client_id = $1 AND id BETWEEN $2 AND $3`}

var advanceHead = &db.SQL{Name: "seed.advanceHead",
	SQLite: `UPDATE client_heads SET last_event = $1, last_audit = last_audit + $2,
		last_time = CASE WHEN last_time < $3 THEN $4 ELSE last_time END WHERE client_id = $5`}

var countCredits = &db.SQL{Name: "seed.countCredits",
	SQLite: `SELECT updated_at / $1, method, currency, count(*) FROM payments
		WHERE client_id = $2 AND id BETWEEN $3 AND $4 AND status = 'success' GROUP BY 1, 2, 3`}

// took is how many microseconds a seeded payment takes to its end: one for
// each event after the first.
const took = 2

// seededAmount is what each seeded payment is about.
const seededAmount = 500000

// writeBooks writes everything that belongs to the payments between two ids, set
// by set. Each has three events and a send. Each success has a credit with its
// entry and its audit row; each other one has the last read for late money.
func writeBooks(ctx context.Context, tx *store.Tx, client, lo, hi till.ID, counts *store.CounterDelta) error {
	for _, insert := range bookRows {
		if _, err := tx.DB().Exec(ctx, insert, client[:], lo[:], hi[:]); err != nil {
			return err
		}
	}
	return writeSums(ctx, tx, client, lo, hi, counts)
}

// bookRows are the statements of writeBooks.
var bookRows = func() (out []*db.SQL) {
	postgres := bookTexts(db.Postgres)
	for i, text := range bookTexts(db.SQLite) {
		out = append(out, &db.SQL{Name: fmt.Sprintf("seed.books %d", i+1), SQLite: text, Postgres: postgres[i]})
	}
	return out
}()

func bookTexts(d db.Dialect) []string {
	id := idText(d, "at")
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

// writeSums brings counters, wallets and the head up to what was written.
func writeSums(ctx context.Context, tx *store.Tx, client, lo, hi till.ID, counts *store.CounterDelta) error {
	credits, err := sumCredits(ctx, tx, client, lo, hi, counts)
	if err != nil {
		return err
	}
	var audit int64
	for currency, n := range credits {
		audit += n
		if _, err := tx.DB().Exec(ctx, addToWallet,
			n, n*seededAmount, client[:], currency); err != nil {
			return err
		}
	}
	var events int64
	var at till.Time
	if _, err := tx.DB().QueryRow(ctx, selectLastEvent,
		[]any{client[:], lo[:], hi[:]}, &events, &at); err != nil {
		return err
	}
	_, err = tx.DB().Exec(ctx, advanceHead, events, audit, int64(at), int64(at), client[:])
	return err
}

// sumCredits counts the credits of payments, and returns how many there are
// of each currency.
func sumCredits(ctx context.Context, tx *store.Tx, client, lo, hi till.ID, counts *store.CounterDelta) (map[string]int64, error) {
	credits := map[string]int64{}
	err := tx.DB().Query(ctx, countCredits,
		[]any{time.Hour.Microseconds(), client[:], lo[:], hi[:]}, func(r db.Row) error {
			var hour, n int64
			var method, currency string
			err := r.Scan(&hour, &method, &currency, &n)
			at := startOfHour(hour)
			for range n {
				counts.AddTransaction(client, at, "collection", currency)
				counts.AddMoney(client, at, "collection", till.Money{Minor: seededAmount, Currency: currency}, method, at)
			}
			credits[currency] += n
			return err
		})
	return credits, err
}
