package store

import (
	"context"
	"fmt"
	"strconv"

	"till"
	"till/internal/db"
)

// These rows are right; a superuser may leave the checks of what they refer to
// out.
var skipTriggers = db.Define(db.SQL{Name: "seed.skipTriggers",
	SQLite:   `SELECT 1`,
	Postgres: `SELECT set_config('session_replication_role', 'replica', true) WHERE current_setting('is_superuser') = 'on'`})

var seedPayments = db.Define(db.SQL{Name: "seed.payments",
	SQLite: seedText(db.SQLite, false), Postgres: seedText(db.Postgres, false)})

var seedEndedPayments = db.Define(db.SQL{Name: "seed.endedPayments",
	SQLite: seedText(db.SQLite, true), Postgres: seedText(db.Postgres, true)})

var countSeeded = db.Define(db.SQL{Name: "seed.countSeeded",
	SQLite: `SELECT created_at / $1, method, status, count(*) FROM payments
		WHERE client_id = $2 AND id BETWEEN $3 AND $4 GROUP BY 1, 2, 3`})

// Seed fills a client with payments for a measurement, many times faster than
// the service would make them. The rows are what lists read: payments with
// their exact counters. They have no events, steps or entries, so a database
// that was seeded without Books is for measuring only and does not verify.
type Seed struct {
	Client   till.ID
	Rows     int64
	From, To till.Time // the payments are spread evenly between them

	// Books says that all payments have ended and that everything that hangs on
	// them is written too: events, attempts, entries, statements, audit rows.
	// The client has no other payments.
	Books bool

	// Progress, if set, is called after each commit.
	Progress func(rows int64)
}

// How the rows are written.
const (
	seedChunk  = 100_000 // rows in one commit
	seedSweeps = 4       // see seedText
)

// Seed writes the rows. It must not run twice for the same client and times.
func (s *Store) Seed(ctx context.Context, seed Seed) error {
	step := int64(seed.To-seed.From) / max(seed.Rows, 1)
	if step < seedTook+1 {
		return fmt.Errorf("store: %d payments do not fit into %v", seed.Rows, seed.To.Sub(seed.From))
	}
	for first := int64(0); first < seed.Rows; first += seedChunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		last := min(first+seedChunk, seed.Rows) - 1
		if err := s.Update(ctx, func(tx *Tx) error { return tx.seed(ctx, &seed, step, first, last) }); err != nil {
			return err
		}
		if seed.Progress != nil {
			seed.Progress(last + 1)
		}
	}
	return nil
}

// seed writes the rows first..last in one statement, then counts them.
func (tx *Tx) seed(ctx context.Context, seed *Seed, step, first, last int64) error {
	tx.db.WithoutTimeout()
	if _, err := tx.LockHeads(ctx, []till.ID{seed.Client}); err != nil {
		return err
	}
	if _, err := tx.db.Exec(ctx, skipTriggers); err != nil {
		return err
	}
	sweep := seed.Rows/seedSweeps + 1
	gap := int64(1)<<56/sweep - 1
	insert := seedPayments
	if seed.Books {
		insert = seedEndedPayments
	}
	if _, err := tx.db.Exec(ctx, insert, first, last, int64(seed.From), step, sweep, gap, seed.Client[:]); err != nil {
		return err
	}
	lo := till.FirstID(seed.From + till.Time(first*step))
	hi := till.LastID(seed.From + till.Time(last*step))
	var counts CounterDelta
	err := tx.db.Query(ctx, countSeeded,
		[]any{int64(till.Hour), seed.Client[:], lo[:], hi[:]}, func(r db.Row) error {
			var hour, n int64
			var method, status string
			err := r.Scan(&hour, &method, &status, &n)
			counts.add(seed.Client, countPayments, bucketStart(widthHour, hour), method, status, n)
			return err
		})
	if err != nil {
		return err
	}
	if seed.Books {
		if err := tx.seedBooks(ctx, seed.Client, lo, hi, &counts); err != nil {
			return err
		}
	}
	return tx.addToCounters(ctx, &counts)
}

// seedDocument is what each payment echoes.
const seedDocument = `"description":"Two bags of rice","customer":{"phone":"242061234567","name":"Grace Mabiala","email":null},"charge":null,"tax":null,"metadata":{"cart":"cart_7f3a9c51e2"}`

// seedText is the statement that makes rows of numbers: four in five succeed,
// in any mix with three methods.
//
// Keys are random, as clients send them, and lie all over their index. In any
// order they would touch a page of it each, and millions of rows would take
// hours. So they come sorted, in a few sweeps over the whole index: each sweep
// lands between the keys of those before, and leaves pages as full, or as
// empty, as keys in any order would.
func seedText(d db.Dialect, ended bool) string {
	open, took := `WHEN s < 996 THEN 'processing' ELSE 'pending'`, 0
	if ended {
		open, took = `ELSE 'expired'`, seedTook
	}
	numbers := `numbers (i, last) AS (
			SELECT CAST($1 AS BIGINT), CAST($2 AS BIGINT) UNION ALL SELECT i + 1, last FROM numbers WHERE i < last)`
	id := seedID(d, "at")
	key := `unhex(printf('%014x', place * CAST($6 AS BIGINT) + abs(random() % CAST($6 AS BIGINT))) || hex(randomblob(9)))`
	hash, document := `zeroblob(32)`, `CAST('`+seedDocument+`' AS BLOB)`
	column, end := ``, ``
	if d == db.Postgres {
		column, end = `, ended`, `, CASE WHEN status <> 'pending' AND status <> 'processing' THEN status ELSE '' END`
		numbers = `numbers (i) AS (SELECT generate_series(CAST($1 AS BIGINT), CAST($2 AS BIGINT)))`
		key = `int8send((place * CAST($6 AS BIGINT) + floor(random() * CAST($6 AS BIGINT))::bigint - 36028797018963968) * 256) ||
			int8send(floor(random() * 4503599627370496)::bigint * 1024)`
		hash, document = `decode(repeat('00', 32), 'hex')`, `'`+seedDocument+`'::bytea`
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
			'242061234567', 'SEED-' || CAST(i AS TEXT), ` + document + `,
			CASE status WHEN 'failed' THEN 'customer_declined' WHEN 'expired' THEN 'customer_timeout' END,
			at, at + ` + strconv.Itoa(took) + `, at + 60000000, 60000000, 'seed', 'seed',
			3 * i + 1, CASE WHEN status <> 'pending' THEN 3 * i + 2 END,
			CASE WHEN status <> 'pending' AND status <> 'processing' THEN 3 * i + 3 END` + end + `
		FROM made`
}

// seedID makes the id of row i at a time.
func seedID(d db.Dialect, at string) string {
	if d == db.Postgres {
		// The same bytes by arithmetic, which is several times as fast as by text.
		return `int8send(` + at + ` / 1000 * 65536 + 7 * 4096 + ` + at + ` % 1000) || int8send(i - 9223372036854775807 - 1)`
	}
	return `unhex(printf('%012x7%03x80%014x', ` + at + ` / 1000, ` + at + ` % 1000, i))`
}

// ListNaively is ListPayments as one would write it at first: count all that
// match, then skip to the page. It exists to be compared with, and takes as
// long as it takes.
func (tx *Tx) ListNaively(ctx context.Context, client till.ID, f PaymentFilter, page Page) ([]till.ID, int64, error) {
	tx.db.WithoutTimeout()
	l := newList(tx.s.indexesByEnd(), counted{client: client, table: countPayments, a: f.Method, b: string(f.Status)}, "p.id", f.From, f.To, page)
	var ids []till.ID
	total, err := tx.listIndexed(ctx, l, func(r db.Row) error {
		var id till.ID
		err := r.Scan(idDest(&id))
		ids = append(ids, id)
		return err
	})
	return ids, total, err
}
