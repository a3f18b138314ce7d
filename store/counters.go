package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"till"
)

// The widths of counters. A count over a span of time sums few wide buckets
// in its middle and ever narrower ones towards its edges.
const (
	widthAll = iota
	widthMonth
	widthDay
	widthHour
)

// The nouns that are counted, with what a and b mean for them.
const (
	nounPayment     = "payment"     // a method, b status
	nounPayout      = "payout"      // a method, b status
	nounTransaction = "transaction" // a type, b currency
)

// counterKey names one counter.
type counterKey struct {
	client till.ID
	noun   string
	width  int
	bucket int64
	a, b   string
}

// Counts gathers what a transaction changes, so that each counter is written
// once however many rows moved.
type Counts struct{ n map[counterKey]int64 }

// AddPayment counts a payment in, or out if n is negative.
func (c *Counts) AddPayment(p *till.Payment, status till.Status, n int64) {
	c.add(p.ClientID, nounPayment, p.CreatedAt, p.Method, string(status), n)
}

// AddPayout counts a payout in, or out if n is negative.
func (c *Counts) AddPayout(p *till.Payout, status till.PayoutStatus, n int64) {
	c.add(p.ClientID, nounPayout, p.CreatedAt, p.Method, string(status), n)
}

// AddTransaction counts a transaction in.
func (c *Counts) AddTransaction(client till.ID, at till.Time, typ, currency string) {
	c.add(client, nounTransaction, at, typ, currency, 1)
}

func (c *Counts) add(client till.ID, noun string, at till.Time, a, b string, n int64) {
	if c.n == nil {
		c.n = make(map[counterKey]int64)
	}
	for w := widthAll; w <= widthHour; w++ {
		c.n[counterKey{client, noun, w, bucketOf(w, at), a, b}] += n
	}
}

// bucketOf returns the number of the bucket that a moment falls into.
func bucketOf(width int, t till.Time) int64 {
	switch width {
	case widthHour:
		return int64(t / till.Hour)
	case widthDay:
		return int64(t / till.Day)
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
		return till.Time(bucket) * till.Hour
	case widthDay:
		return till.Time(bucket) * till.Day
	case widthMonth:
		return till.TimeOf(time.Date(int(bucket/12), time.Month(bucket%12)+1, 1, 0, 0, 0, 0, time.UTC))
	}
	return 0
}

// Count applies gathered changes, in one fixed order.
func (tx *Tx) Count(ctx context.Context, c *Counts) error {
	keys := make([]counterKey, 0, len(c.n))
	for k, n := range c.n {
		if n != 0 {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(x, y counterKey) int {
		return cmp.Or(slices.Compare(x.client[:], y.client[:]), cmp.Compare(x.noun, y.noun), cmp.Compare(x.width, y.width),
			cmp.Compare(x.bucket, y.bucket), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
	})
	// What goes down is there already. An upsert would hold the constraint
	// against the difference instead of the sum.
	var up, down [][]any
	for i := range keys {
		k := &keys[i]
		args := []any{c.n[*k], k.client[:], k.noun, k.width, k.bucket, k.a, k.b}
		if c.n[*k] > 0 {
			up = append(up, args)
		} else {
			down = append(down, args)
		}
	}
	if err := tx.setAll(ctx, `UPDATE counters SET n = n + ? WHERE client_id = ? AND noun = ? AND width = ? AND bucket = ? AND a = ? AND b = ?`, down); err != nil {
		return err
	}
	return tx.set(ctx, `INSERT INTO counters (n, client_id, noun, width, bucket, a, b) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (client_id, noun, width, bucket, a, b) DO UPDATE SET n = counters.n + excluded.n`, up)
}

// counted is what a list filters by, as far as counters know it.
type counted struct {
	client till.ID
	noun   string
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
	var out []bucketCount
	err := tx.rows(ctx, `SELECT bucket, CAST(sum(n) AS BIGINT) FROM counters WHERE client_id = ? AND noun = ? AND width = ? AND bucket BETWEEN ? AND ?
		AND (? = '' OR a = ?) AND (? = '' OR b = ?) GROUP BY bucket HAVING sum(n) > 0 ORDER BY bucket`,
		[]any{c.client[:], c.noun, width, from, to, c.a, c.a, c.b, c.b}, func(r row) error {
			var b bucketCount
			err := r.Scan(&b.bucket, &b.n)
			out = append(out, b)
			return err
		})
	return out, err
}
