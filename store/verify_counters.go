package store

import (
	"context"
	"database/sql"

	"till"
	"till/internal/db"
)

var selectNextCountedDay = db.Define(db.SQL{Name: "verify.selectNextCountedDay",
	SQLite: `SELECT min(bucket) FROM (
		SELECT min(bucket) AS bucket FROM counters WHERE client_id = $1 AND noun = $2 AND width = $3 AND bucket > $4
		UNION ALL SELECT min(bucket) / 24 FROM counters WHERE client_id = $1 AND noun = $2 AND width = $5 AND bucket >= $6
		UNION ALL SELECT min(hour) / 24 FROM tallies WHERE client_id = $1 AND noun = $2 AND hour >= $6) AS days`})

var selectNextSplitHour = db.Define(db.SQL{Name: "verify.selectNextSplitHour",
	SQLite: `SELECT min(hour) FROM hour_parts WHERE client_id = $1 AND noun = $2 AND hour > $3`})

var selectCounters = db.Define(db.SQL{Name: "verify.selectCounters",
	SQLite: `SELECT 0, bucket, a, b, n FROM counters WHERE client_id = $1 AND noun = $2 AND width = $3 AND bucket BETWEEN $4 AND $5
		UNION ALL SELECT 1, hour, a, b, n FROM tallies WHERE client_id = $1 AND noun = $2`})

// CountedTables lists what is counted.
var CountedTables = []string{countPayments, countPayouts, countRefunds, countTransactions}

// CountKey names one counter of a client and noun.
type CountKey struct {
	Width  int   // 0 all, 1 month, 2 day, 3 hour, 4 part of an hour
	Bucket int64 // of a part: when it ends
	A, B   string
}

// countTable is where the rows of a noun are, and what a and b are there.
func countTable(name string) (table, a, b string) {
	switch name {
	case countPayments:
		return "payments", "method", "status"
	case countPayouts, countRefunds:
		return "payouts", "method", "status"
	}
	return "transactions", "type", "currency"
}

// countWhich is the condition that says which rows of its table are a noun's: payouts and
// refunds share one.
func countWhich(name string) string {
	switch name {
	case countPayouts:
		return " AND payment_id IS NULL"
	case countRefunds:
		return " AND payment_id IS NOT NULL"
	}
	return ""
}

// defineCounted defines a statement for each noun that is counted.
func defineCounted(name string, text func(table, a, b, which string) string) map[string]*db.SQL {
	out := map[string]*db.SQL{}
	for _, noun := range CountedTables {
		table, a, b := countTable(noun)
		out[noun] = db.Define(db.SQL{Name: name + " " + noun, SQLite: text(table, a, b, countWhich(noun))})
	}
	return out
}

var selectFirstID = defineCounted("verify.selectFirstID", func(table, _, _, which string) string {
	return `SELECT id FROM ` + table + ` WHERE client_id = $1` + which + ` AND id >= $2 ORDER BY id LIMIT 1`
})

var countByHour = defineCounted("verify.countByHour", func(table, a, b, which string) string {
	return `SELECT created_at / $1, ` + a + `, ` + b + `, count(*) FROM ` + table + ` WHERE client_id = $2` + which + ` AND id BETWEEN $3 AND $4 GROUP BY 1, 2, 3`
})

// NextCountedDay returns the next day, beyond after, that has rows of a noun
// or a counter of its own; false if there is none. Days are counted from 0.
func (tx *Tx) NextCountedDay(ctx context.Context, client till.ID, table string, after int64) (int64, bool, error) {
	var day sql.NullInt64
	lowest := bucketStart(widthDay, after+1)
	if _, err := tx.db.QueryRow(ctx, selectNextCountedDay,
		[]any{client[:], table, widthDay, after, widthHour, bucketOf(widthHour, lowest)}, &day); err != nil {
		return 0, false, err
	}
	lo := till.FirstID(lowest)
	var id till.ID
	found, err := tx.db.QueryRow(ctx, selectFirstID[table], []any{client[:], lo[:]}, db.ID(&id))
	if err != nil {
		return 0, false, err
	}
	if d := bucketOf(widthDay, id.Time()); found && (!day.Valid || d < day.Int64) {
		return d, true, nil
	}
	return day.Int64, day.Valid, nil
}

// CountedDay returns the counters of one day, with those of its hours, and
// what they should be by the rows of that day.
func (tx *Tx) CountedDay(ctx context.Context, client till.ID, table string, day int64) (have, want map[CountKey]int64, err error) {
	have, want = map[CountKey]int64{}, map[CountKey]int64{}
	if err := tx.readCounters(ctx, client, table, widthDay, day, day, have); err != nil {
		return nil, nil, err
	}
	if err := tx.readCounters(ctx, client, table, widthHour, day*24, day*24+23, have); err != nil {
		return nil, nil, err
	}
	err = tx.countRows(ctx, client, table, bucketStart(widthDay, day), bucketStart(widthDay, day+1)-1, func(k CountKey, n int64) {
		want[k] += n
		want[CountKey{widthDay, day, k.A, k.B}] += n
	})
	return have, want, err
}

// CountedHour is CountedDay for one hour, of a day that has too many rows for
// one snapshot.
func (tx *Tx) CountedHour(ctx context.Context, client till.ID, table string, hour int64) (have, want map[CountKey]int64, err error) {
	have, want = map[CountKey]int64{}, map[CountKey]int64{}
	if err := tx.readCounters(ctx, client, table, widthHour, hour, hour, have); err != nil {
		return nil, nil, err
	}
	err = tx.countRows(ctx, client, table, bucketStart(widthHour, hour), bucketStart(widthHour, hour+1)-1, func(k CountKey, n int64) { want[k] += n })
	return have, want, err
}

// CountedHours returns the counters of one day, and what they should be by
// those of its hours.
func (tx *Tx) CountedHours(ctx context.Context, client till.ID, table string, day int64) (have, want map[CountKey]int64, err error) {
	have, want = map[CountKey]int64{}, map[CountKey]int64{}
	hours := map[CountKey]int64{}
	if err := tx.readCounters(ctx, client, table, widthDay, day, day, have); err != nil {
		return nil, nil, err
	}
	if err := tx.readCounters(ctx, client, table, widthHour, day*24, day*24+23, hours); err != nil {
		return nil, nil, err
	}
	for k, n := range hours {
		want[CountKey{widthDay, day, k.A, k.B}] += n
	}
	return have, want, nil
}

// DaySize returns how many rows of a noun a day has, by its counters.
func (tx *Tx) DaySize(ctx context.Context, client till.ID, table string, day int64) (n int64, err error) {
	sums, err := tx.buckets(ctx, counted{client: client, table: table}, widthDay, day, day)
	for _, b := range sums {
		n += b.n
	}
	return n, err
}

// countRows counts rows by hour and kind.
func (tx *Tx) countRows(ctx context.Context, client till.ID, table string, from, to till.Time, add func(k CountKey, n int64)) error {
	lo, hi := till.FirstID(from), till.LastID(to)
	return tx.db.Query(ctx, countByHour[table],
		[]any{hourMicros, client[:], lo[:], hi[:]}, func(r db.Row) error {
			k, n := CountKey{Width: widthHour}, int64(0)
			err := r.Scan(&k.Bucket, &k.A, &k.B, &n)
			add(k, n)
			return err
		})
}

// CountedMonths returns the counters of all months and of all time, and what
// they should be by the counters of the days.
func (tx *Tx) CountedMonths(ctx context.Context, client till.ID, table string) (have, want map[CountKey]int64, err error) {
	have, want = map[CountKey]int64{}, map[CountKey]int64{}
	days := map[CountKey]int64{}
	for width, into := range map[int]map[CountKey]int64{widthAll: have, widthMonth: have, widthDay: days} {
		if err := tx.readCounters(ctx, client, table, width, 0, 1<<40, into); err != nil {
			return nil, nil, err
		}
	}
	for k, n := range days {
		want[CountKey{widthMonth, bucketOf(widthMonth, bucketStart(widthDay, k.Bucket)), k.A, k.B}] += n
		want[CountKey{widthAll, 0, k.A, k.B}] += n
	}
	return have, want, nil
}

// NextSplitHour returns the next hour, beyond after, whose parts are counted; false
// if there is none.
func (tx *Tx) NextSplitHour(ctx context.Context, client till.ID, table string, after int64) (int64, bool, error) {
	var hour sql.NullInt64
	_, err := tx.db.QueryRow(ctx, selectNextSplitHour, []any{client[:], table, after}, &hour)
	return hour.Int64, hour.Valid, err
}

// CountedParts returns the counts of up to limit parts of an hour that end after a
// time, and what they should be by the rows. It also returns the time to continue
// from; zero after the last part. A part that lists do not use may be older than
// the statuses of its rows. Its counts are summed over all statuses then, under B
// "".
func (tx *Tx) CountedParts(ctx context.Context, client till.ID, table string, hour int64, after till.Time, limit int) (have, want map[CountKey]int64, next till.Time, err error) {
	have, want = map[CountKey]int64{}, map[CountKey]int64{}
	h := BusyHour{client, table, hour}
	parts, err := tx.hourParts(ctx, h)
	if err != nil {
		return nil, nil, 0, err
	}
	exact, err := tx.addUp(ctx, h, parts)
	if err != nil {
		return nil, nil, 0, err
	}
	for _, p := range parts {
		if p.until <= after {
			continue
		}
		if limit--; limit < 0 {
			return have, want, next, nil
		}
		key := func(a, b string) CountKey {
			if p.open() && !exact {
				b = ""
			}
			return CountKey{partialHour, int64(p.until), a, b}
		}
		for _, c := range p.counts {
			have[key(c.a, c.b)] += c.n
		}
		if err := tx.countRows(ctx, client, table, p.from, p.until, func(k CountKey, n int64) { want[key(k.A, k.B)] += n }); err != nil {
			return nil, nil, 0, err
		}
		next = p.until
	}
	return have, want, 0, nil
}

// readCounters reads counters of one width, and the tallies that belong to them.
func (tx *Tx) readCounters(ctx context.Context, client till.ID, table string, width int, from, to int64, into map[CountKey]int64) error {
	return tx.db.Query(ctx, selectCounters,
		[]any{client[:], table, width, from, to}, func(r db.Row) error {
			var tally int
			k, n := CountKey{Width: width}, int64(0)
			err := r.Scan(&tally, &k.Bucket, &k.A, &k.B, &n)
			if tally == 1 {
				k.Bucket = bucketOf(width, bucketStart(widthHour, k.Bucket))
			}
			if k.Bucket >= from && k.Bucket <= to {
				into[k] += n
			}
			return err
		})
}
