package seed

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"till"
	"till/internal/db"
	"till/store"
)

// The rows are right, so a superuser may leave out the checks of foreign keys.
var skipTriggers = &db.SQL{Name: "seed.skipTriggers",
	SQLite:   `SELECT 1`,
	Postgres: `SELECT set_config('session_replication_role', 'replica', true) WHERE current_setting('is_superuser') = 'on'`}

var insertPayments = &db.SQL{Name: "seed.payments",
	SQLite: paymentsText(db.SQLite, false), Postgres: paymentsText(db.Postgres, false)}

var insertEndedPayments = &db.SQL{Name: "seed.endedPayments",
	SQLite: paymentsText(db.SQLite, true), Postgres: paymentsText(db.Postgres, true)}

var countPayments = &db.SQL{Name: "seed.countPayments",
	SQLite: `SELECT created_at / $1, method, status, count(*) FROM payments
		WHERE client_id = $2 AND id BETWEEN $3 AND $4 GROUP BY 1, 2, 3`}

// Config says which payments to write. The rows are what lists read: payments
// with their exact counters. Without Books they have no events, steps or
// entries, and the database does not verify.
type Config struct {
	Client   till.ID
	Rows     int64
	From, To till.Time // the payments are spread evenly between them

	// Books says that all payments have ended, and that their events, attempts,
	// entries, transactions and audit rows are written too. The client has no other
	// payments.
	Books bool

	// Progress, if set, is called after each commit.
	Progress func(rows int64)
}

// How the rows are written.
const (
	chunkRows = 100_000 // rows in one commit
	sweeps    = 4       // see paymentsText

	maxTallies = 1 << 20 // more than a chunk can make
)

// Payments writes the rows. It must not run twice for the same client and times.
func Payments(ctx context.Context, s *store.Store, c Config) error {
	step := int64(c.To-c.From) / max(c.Rows, 1)
	if step < took+1 {
		return fmt.Errorf("seed: %d payments do not fit into %v", c.Rows, c.To.Sub(c.From))
	}
	for first := int64(0); first < c.Rows; first += chunkRows {
		if err := ctx.Err(); err != nil {
			return err
		}
		last := min(first+chunkRows, c.Rows) - 1
		if err := s.Update(ctx, func(tx *store.Tx) error { return writeChunk(ctx, tx, &c, step, first, last) }); err != nil {
			return err
		}
		if c.Progress != nil {
			c.Progress(last + 1)
		}
	}
	return nil
}

// writeChunk writes the rows first..last in one statement, then counts them.
func writeChunk(ctx context.Context, tx *store.Tx, c *Config, step, first, last int64) error {
	tx.DB().WithoutTimeout()
	if _, err := tx.LockHeads(ctx, []till.ID{c.Client}); err != nil {
		return err
	}
	if _, err := tx.DB().Exec(ctx, skipTriggers); err != nil {
		return err
	}
	sweep := c.Rows/sweeps + 1
	gap := int64(1)<<56/sweep - 1
	insert := insertPayments
	if c.Books {
		insert = insertEndedPayments
	}
	if _, err := tx.DB().Exec(ctx, insert, first, last, int64(c.From), step, sweep, gap, c.Client[:]); err != nil {
		return err
	}
	lo := till.FirstID(c.From + till.Time(first*step))
	hi := till.LastID(c.From + till.Time(last*step))
	var counts store.CounterDelta
	err := tx.DB().Query(ctx, countPayments, []any{time.Hour.Microseconds(), c.Client[:], lo[:], hi[:]}, func(r db.Row) error {
		var hour, n int64
		var method, status string
		err := r.Scan(&hour, &method, &status, &n)
		counts.AddPayment(&till.Payment{ClientID: c.Client, CreatedAt: startOfHour(hour), Method: method}, till.Status(status), n)
		return err
	})
	if err != nil {
		return err
	}
	if c.Books {
		if err := writeBooks(ctx, tx, c.Client, lo, hi, &counts); err != nil {
			return err
		}
	}
	if err := tx.AddCounts(ctx, &counts); err != nil {
		return err
	}
	_, err = tx.RollUp(ctx, c.Client, c.To.Add(2*time.Hour), maxTallies)
	return err
}

// startOfHour returns when an hour, numbered since 1970, begins.
func startOfHour(hour int64) till.Time { return till.Time(hour * time.Hour.Microseconds()) }

// document is what each payment echoes.
const document = `"description":"Two bags of rice","customer":{"phone":"242061234567","name":"Grace Mabiala","email":null},"charge":null,"tax":null,"metadata":{"cart":"cart_7f3a9c51e2"}`

// paymentsText is the statement that makes rows of numbers: four in five succeed,
// in any mix with three methods.
//
// Keys are random, as clients send them, and lie all over their index. In any
// order they would touch a page of it each, and millions of rows would take
// hours. So they come sorted, in a few sweeps over the whole index: each sweep
// lands between the keys of those before, and leaves pages as full, or as
// empty, as keys in any order would.
func paymentsText(d db.Dialect, ended bool) string {
	open, until := `WHEN s < 996 THEN 'processing' ELSE 'pending'`, 0
	if ended {
		open, until = `ELSE 'expired'`, took
	}
	numbers := `numbers (i, last) AS (
			SELECT CAST($1 AS BIGINT), CAST($2 AS BIGINT) UNION ALL SELECT i + 1, last FROM numbers WHERE i < last)`
	id := idText(d, "at")
	key := `unhex(printf('%014x', place * CAST($6 AS BIGINT) + abs(random() % CAST($6 AS BIGINT))) || hex(randomblob(9)))`
	hash, echoed := `zeroblob(32)`, `CAST('`+document+`' AS BLOB)`
	column, end := ``, ``
	if d == db.Postgres {
		column, end = `, ended`, `, CASE WHEN status <> 'pending' AND status <> 'processing' THEN status ELSE '' END`
		numbers = `numbers (i) AS (SELECT generate_series(CAST($1 AS BIGINT), CAST($2 AS BIGINT)))`
		key = `int8send((place * CAST($6 AS BIGINT) + floor(random() * CAST($6 AS BIGINT))::bigint - 36028797018963968) * 256) ||
			int8send(floor(random() * 4503599627370496)::bigint * 1024)`
		hash, echoed = `decode(repeat('00', 32), 'hex')`, `'`+document+`'::bytea`
	}
	return `WITH RECURSIVE ` + numbers + `,
		drawn AS (SELECT i, CAST($3 AS BIGINT) + i * CAST($4 AS BIGINT) AS at, i % CAST($5 AS BIGINT) AS place,
			(i * 7919) % 1000 AS s, (i * 1049 + i / 1000 * 613) % 1000 AS m FROM numbers),
		made AS (SELECT i, at, ` + key + ` AS key,
			CASE WHEN s < 800 THEN 'success' WHEN s < 920 THEN 'failed' WHEN s < 990 THEN 'expired' ` + open + ` END AS status,
			CASE WHEN m < 600 THEN 'mtn_momo' WHEN m < 900 THEN 'airtel_money' ELSE 'mpesa' END AS method FROM drawn)
		INSERT INTO payments (client_id, id, idempotency_key, body_hash, body_version, status, previous_status,
			method, country, amount, currency, phone, reference, document, failure_reason,
			created_at, updated_at, expires_at, approval_window, connection, fingerprint,
			pending_event, processing_event, final_event` + column + `)
		SELECT $7, ` + id + `, key, ` + hash + `, 1, status,
			CASE status WHEN 'pending' THEN '' WHEN 'processing' THEN 'pending' ELSE 'processing' END,
			method, CASE method WHEN 'mpesa' THEN 'KE' ELSE 'CG' END, 500000, CASE method WHEN 'mpesa' THEN 'KES' ELSE 'XAF' END,
			'242061234567', 'SEED-' || CAST(i AS TEXT), ` + echoed + `,
			CASE status WHEN 'failed' THEN 'customer_declined' WHEN 'expired' THEN 'customer_timeout' END,
			at, at + ` + strconv.Itoa(until) + `, at + 60000000, 60000000, 'seed', 'seed',
			3 * i + 1, CASE WHEN status <> 'pending' THEN 3 * i + 2 END,
			CASE WHEN status <> 'pending' AND status <> 'processing' THEN 3 * i + 3 END` + end + `
		FROM made`
}

// idText makes the id of row i at a time.
func idText(d db.Dialect, at string) string {
	if d == db.Postgres {
		// The same bytes by arithmetic, which is several times as fast as by text.
		return `int8send(` + at + ` / 1000 * 65536 + 7 * 4096 + ` + at + ` % 1000) || int8send(i - 9223372036854775807 - 1)`
	}
	return `unhex(printf('%012x7%03x80%014x', ` + at + ` / 1000, ` + at + ` % 1000, i))`
}
