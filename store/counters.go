package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"till"
	"till/internal/db"
)

var sumStored = db.Define(db.SQL{Name: "counters.sumStored",
	SQLite: `SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM (SELECT n FROM counters WHERE client_id = $1 AND noun = $2 AND width = $3
		UNION ALL SELECT n FROM tallies WHERE client_id = $1 AND noun = $2) AS stored`})

var addTallies = db.Define(db.SQL{Name: "counters.addTallies",
	SQLite: `INSERT INTO tallies (n, client_id, noun, hour, a, b) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (client_id, noun, hour, a, b) DO UPDATE SET n = tallies.n + excluded.n`,
	Postgres: `INSERT INTO tallies (n, client_id, noun, hour, a, b)
		SELECT u.a1, u.a2, u.a3, u.a4, u.a5, u.a6
		FROM (SELECT unnest($1::bigint[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::text[]) AS a3, unnest($4::bigint[]) AS a4, unnest($5::text[]) AS a5,
			unnest($6::text[]) AS a6 LIMIT $7::bigint) AS u
		ON CONFLICT (client_id, noun, hour, a, b) DO UPDATE SET n = tallies.n + excluded.n`,
	Arrays: true})

// addSums is addTallies for commits that settle something; others send one
// column less.
var addSums = db.Define(db.SQL{Name: "counters.addSums",
	SQLite: `INSERT INTO tallies (n, sum, client_id, noun, hour, a, b) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (client_id, noun, hour, a, b) DO UPDATE SET n = tallies.n + excluded.n, sum = tallies.sum + excluded.sum`,
	Postgres: `INSERT INTO tallies (n, sum, client_id, noun, hour, a, b)
		SELECT u.a1, u.a2, u.a3, u.a4, u.a5, u.a6, u.a7
		FROM (SELECT unnest($1::bigint[]) AS a1, unnest($2::bigint[]) AS a2, unnest($3::bytea[]) AS a3, unnest($4::text[]) AS a4, unnest($5::bigint[]) AS a5,
			unnest($6::text[]) AS a6, unnest($7::text[]) AS a7 LIMIT $8::bigint) AS u
		ON CONFLICT (client_id, noun, hour, a, b) DO UPDATE SET n = tallies.n + excluded.n, sum = tallies.sum + excluded.sum`,
	Arrays: true})

var sumBuckets = db.Define(db.SQL{Name: "counters.sumBuckets",
	SQLite: `SELECT 0, bucket, CAST(sum(n) AS BIGINT) FROM counters WHERE client_id = $1 AND noun = $2 AND width = $3 AND bucket BETWEEN $4 AND $5
		AND ($6 = '' OR a = $6) AND ($7 = '' OR b = $7) GROUP BY bucket
		UNION ALL SELECT 1, hour, CAST(sum(n) AS BIGINT) FROM tallies WHERE client_id = $1 AND noun = $2
		AND ($6 = '' OR a = $6) AND ($7 = '' OR b = $7) GROUP BY hour`})

// The widths of counters. A count over a span of time sums few wide buckets
// in its middle and ever narrower ones towards its edges.
const (
	widthAll = iota
	widthMonth
	widthDay
	widthHour
)

// What is counted, as the column noun says it, and what a and b mean for it.
const (
	countPayments     = "payment"     // a method, b status
	countPayouts      = "payout"      // a method, b status
	countRefunds      = "refund"      // a method, b status
	countTransactions = "transaction" // a type, b currency
	countStored       = "stored"      // bytes that a test client has made us keep; no list is made of them
)

// The nouns of payments, payouts and refunds, for readers of the installation's sums.
const (
	CountedPayments = countPayments
	CountedPayouts  = countPayouts
	CountedRefunds  = countRefunds
)

var selectTallies = db.Define(db.SQL{Name: "counters.selectTallies",
	SQLite: `SELECT hour, a, b, n, sum FROM tallies WHERE client_id = $1 AND noun = $2 AND hour < $3 ORDER BY hour, a, b LIMIT $4`})

var deleteTallies = db.DefineByClient(1, db.SQL{Name: "counters.deleteTallies",
	SQLite: `DELETE FROM tallies WHERE client_id = $1 AND noun = $2 AND hour = $3 AND a = $4 AND b = $5 AND n = $6 AND sum = $7`,
	Postgres: `WITH changed AS (DELETE FROM tallies
		USING (SELECT unnest($1::bytea[]) AS a1, unnest($2::text[]) AS a2, unnest($3::bigint[]) AS a3, unnest($4::text[]) AS a4, unnest($5::text[]) AS a5,
			unnest($6::bigint[]) AS a6, unnest($7::bigint[]) AS a7 LIMIT $8::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a1]) AND noun = u.a2 AND hour = u.a3 AND a = u.a4 AND b = u.a5 AND n = u.a6 AND sum = u.a7
		RETURNING 1)
		SELECT till_expect_rows(count(*), $8) FROM changed`,
	Arrays: true})

var lowerCounters = db.DefineByClient(3, db.SQL{Name: "counters.lower",
	SQLite: `UPDATE counters SET n = n + $1, sum = sum + $2 WHERE client_id = $3 AND noun = $4 AND width = $5 AND bucket = $6 AND a = $7 AND b = $8`,
	Postgres: `WITH changed AS (UPDATE counters SET n = n + u.a1, sum = sum + u.a2
		FROM (SELECT unnest($1::bigint[]) AS a1, unnest($2::bigint[]) AS a2, unnest($3::bytea[]) AS a3, unnest($4::text[]) AS a4, unnest($5::bigint[]) AS a5,
			unnest($6::bigint[]) AS a6, unnest($7::text[]) AS a7, unnest($8::text[]) AS a8 LIMIT $9::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a3]) AND noun = u.a4 AND width = u.a5 AND bucket = u.a6 AND a = u.a7 AND b = u.a8
		RETURNING 1)
		SELECT till_expect_rows(count(*), $9) FROM changed`,
	Arrays: true})

var raiseCounters = db.Define(db.SQL{Name: "counters.raise",
	SQLite: `INSERT INTO counters (n, sum, client_id, noun, width, bucket, a, b) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (client_id, noun, width, bucket, a, b) DO UPDATE SET n = counters.n + excluded.n, sum = counters.sum + excluded.sum`,
	Postgres: `INSERT INTO counters (n, sum, client_id, noun, width, bucket, a, b)
		SELECT u.a1, u.a2, u.a3, u.a4, u.a5, u.a6, u.a7, u.a8
		FROM (SELECT unnest($1::bigint[]) AS a1, unnest($2::bigint[]) AS a2, unnest($3::bytea[]) AS a3, unnest($4::text[]) AS a4, unnest($5::bigint[]) AS a5,
			unnest($6::bigint[]) AS a6, unnest($7::text[]) AS a7, unnest($8::text[]) AS a8 LIMIT $9::bigint) AS u
		ON CONFLICT (client_id, noun, width, bucket, a, b) DO UPDATE SET n = counters.n + excluded.n, sum = counters.sum + excluded.sum`,
	Arrays: true})

var selectClientsToRollUp = db.Define(db.SQL{Name: "counters.selectClientsToRollUp",
	SQLite: `SELECT DISTINCT client_id FROM tallies WHERE hour < $1 LIMIT $2`})

// tallyKey names what is counted of one hour.
type tallyKey struct {
	client till.ID
	table  string
	hour   int64
	a, b   string
}

func (k *tallyKey) compare(o *tallyKey) int {
	return cmp.Or(slices.Compare(k.client[:], o.client[:]), cmp.Compare(k.table, o.table), cmp.Compare(k.hour, o.hour),
		cmp.Compare(k.a, o.a), cmp.Compare(k.b, o.b))
}

// CounterDelta gathers what a transaction changes, so that each tally is written
// once however many rows moved.
type CounterDelta struct {
	n    map[tallyKey]int64
	sums map[tallyKey]int64 // beside n; see sums.go
}

// AddPayment counts a payment in, or out if n is negative.
func (c *CounterDelta) AddPayment(p *till.Payment, status till.Status, n int64) {
	c.add(p.ClientID, countPayments, p.CreatedAt, p.Method, string(status), n)
}

// AddPayout counts a payout or refund in, or out if n is negative.
func (c *CounterDelta) AddPayout(p *till.Payout, status till.PayoutStatus, n int64) {
	c.add(p.ClientID, string(p.Noun()), p.CreatedAt, p.Method, string(status), n)
}

// AddTransaction counts a transaction in.
func (c *CounterDelta) AddTransaction(client till.ID, at till.Time, typ, currency string) {
	c.add(client, countTransactions, at, typ, currency, 1)
}

// AddStored counts bytes that a client has made us keep.
func (c *CounterDelta) AddStored(client till.ID, at till.Time, bytes int64) {
	c.add(client, countStored, at, "", "", bytes)
}

// Stored returns how many bytes AddStored has counted of a client.
func (tx *Tx) Stored(ctx context.Context, client till.ID) (n int64, err error) {
	_, err = tx.db.QueryRow(ctx, sumStored, []any{client[:], countStored, widthAll}, &n)
	return n, err
}

func (c *CounterDelta) add(client till.ID, table string, at till.Time, a, b string, n int64) {
	if c.n == nil {
		c.n = make(map[tallyKey]int64)
	}
	c.n[tallyKey{client, table, bucketOf(widthHour, at), a, b}] += n
}

// keys returns what has changed, in one fixed order.
func (c *CounterDelta) keys() []tallyKey {
	keys := make([]tallyKey, 0, len(c.n))
	for k, n := range c.n {
		if n != 0 || c.sums[k] != 0 {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(x, y tallyKey) int { return x.compare(&y) })
	return keys
}

// hourMicros is an hour in microseconds, the unit of times in the database.
const hourMicros = int64(time.Hour / time.Microsecond)

// bucketOf returns the number of the bucket that a moment falls into.
func bucketOf(width int, t till.Time) int64 {
	switch width {
	case widthHour:
		return int64(t) / hourMicros
	case widthDay:
		return int64(t) / (24 * hourMicros)
	case widthMonth:
		y, m, _ := t.Std().Date()
		return int64(y)*12 + int64(m) - 1
	}
	return 0
}

// bucketStart returns the first moment of a bucket.
func bucketStart(width int, bucket int64) till.Time {
	switch width {
	case widthHour:
		return till.Time(bucket * hourMicros)
	case widthDay:
		return till.Time(bucket * 24 * hourMicros)
	case widthMonth:
		return till.TimeOf(time.Date(int(bucket/12), time.Month(bucket%12)+1, 1, 0, 0, 0, 0, time.UTC))
	}
	return 0
}

// AddCounts applies gathered changes.
func (tx *Tx) AddCounts(ctx context.Context, c *CounterDelta) error {
	keys := c.keys()
	args := make([][]any, len(keys))
	if len(c.sums) > 0 {
		for i := range keys {
			k := &keys[i]
			args[i] = []any{c.n[*k], c.sums[*k], k.client[:], k.table, k.hour, k.a, k.b}
		}
		return tx.db.Defer(addSums, args)
	}
	for i := range keys {
		k := &keys[i]
		args[i] = []any{c.n[*k], k.client[:], k.table, k.hour, k.a, k.b}
	}
	return tx.db.Defer(addTallies, args)
}

// counted is what a list filters by, as far as counters know it.
type counted struct {
	client till.ID
	table  string
	a, b   string // "": any
}

// bucketCount is how many matching rows a bucket holds.
type bucketCount struct{ bucket, n int64 }

// buckets returns the counts of the buckets from..to of a width, ascending,
// the empty ones left out.
func (tx *Tx) buckets(ctx context.Context, c counted, width int, from, to int64) ([]bucketCount, error) {
	if from > to {
		return nil, nil
	}
	found := map[int64]int64{}
	err := tx.db.Query(ctx, sumBuckets,
		[]any{c.client[:], c.table, width, from, to, c.a, c.b}, func(r db.Row) error {
			var tally int
			var bucket, n int64
			err := r.Scan(&tally, &bucket, &n)
			if tally == 1 {
				bucket = bucketOf(width, bucketStart(widthHour, bucket))
			}
			if bucket >= from && bucket <= to {
				found[bucket] += n
			}
			return err
		})
	out := make([]bucketCount, 0, len(found))
	for bucket, n := range found {
		if n > 0 {
			out = append(out, bucketCount{bucket, n})
		}
	}
	slices.SortFunc(out, func(x, y bucketCount) int { return cmp.Compare(x.bucket, y.bucket) })
	return out, err
}

// counterKey names one counter.
type counterKey struct {
	tallyKey // hour is the bucket
	width    int
}

// RollUp puts up to limit of a client's tallies from before an hour into its counters, and
// returns how many. Nothing that is counted changes by it. The installation's counters, which
// have no tallies, follow.
func (tx *Tx) RollUp(ctx context.Context, client till.ID, before till.Time, limit int) (int, error) {
	if _, err := tx.LockHeads(ctx, []till.ID{client}); err != nil {
		return 0, err
	}
	mode, err := tx.modeOf(ctx, client)
	if err != nil {
		return 0, err
	}
	var rolledUp CounterDelta
	var gone [][]any
	for _, table := range slices.Concat(CountedTables, []string{countStored}, SumNouns) {
		err := tx.db.Query(ctx, selectTallies,
			[]any{client[:], table, bucketOf(widthHour, before), limit - len(gone)}, func(r db.Row) error {
				var hour, n, sum int64
				var a, b string
				err := r.Scan(&hour, &a, &b, &n, &sum)
				at := bucketStart(widthHour, hour)
				rolledUp.addSum(client, table, at, a, b, n, sum)
				if noun, ok := houseNoun(table, mode); ok {
					rolledUp.addSum(till.House, noun, at, a, b, n, sum)
				}
				gone = append(gone, []any{client[:], table, hour, a, b, n, sum})
				return err
			})
		if err != nil {
			return 0, err
		}
	}
	if err := tx.db.DeferExactly(deleteTallies, gone); err != nil {
		return 0, err
	}
	return len(gone), tx.addToCounters(ctx, &rolledUp)
}

// addToCounters applies gathered changes to the counters themselves.
func (tx *Tx) addToCounters(ctx context.Context, c *CounterDelta) error {
	changes := map[counterKey]Sum{}
	for _, k := range c.keys() {
		n, sum, at := c.n[k], c.sums[k], bucketStart(widthHour, k.hour)
		for w := widthAll; w <= widthHour; w++ {
			k.hour = bucketOf(w, at)
			changes[counterKey{k, w}] = changes[counterKey{k, w}].plus(Sum{n, sum})
		}
	}
	keys := slices.SortedFunc(maps.Keys(changes), func(x, y counterKey) int {
		return cmp.Or(x.tallyKey.compare(&y.tallyKey), cmp.Compare(x.width, y.width))
	})
	// What goes down is there already. An upsert would hold the constraint
	// against the difference instead of the sum.
	var up, down [][]any
	for i := range keys {
		k := &keys[i]
		s := changes[*k]
		args := []any{s.N, s.Sum, k.client[:], k.table, k.width, k.hour, k.a, k.b}
		if s.N < 0 {
			down = append(down, args)
		} else if s != (Sum{}) {
			up = append(up, args)
		}
	}
	if err := tx.db.DeferExactly(lowerCounters, down); err != nil {
		return err
	}
	return tx.db.Defer(raiseCounters, up)
}

// ClientsToRollUp returns up to limit clients that have tallies from before
// an hour.
func (tx *Tx) ClientsToRollUp(ctx context.Context, before till.Time, limit int) ([]till.ID, error) {
	return db.ReadAll(ctx, tx.db, selectClientsToRollUp, []any{bucketOf(widthHour, before), limit}, func(r db.Row) (till.ID, error) {
		var id till.ID
		err := r.Scan(db.ID(&id))
		return id, err
	})
}
