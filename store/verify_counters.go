package store

import (
	"context"
	"database/sql"

	"till"
)

// Nouns lists what is counted.
var Nouns = []string{nounPayment, nounPayout, nounTransaction}

// CountKey names one counter of a client and noun.
type CountKey struct {
	Width  int // 0 all, 1 month, 2 day, 3 hour
	Bucket int64
	A, B   string
}

// countTable is where the rows of a noun are, and what a and b are there.
func countTable(noun string) (table, a, b string) {
	switch noun {
	case nounPayment:
		return "payments", "method", "status"
	case nounPayout:
		return "payouts", "method", "status"
	}
	return "transactions", "type", "currency"
}

// NextCountedDay returns the next day, beyond after, that has rows of a noun
// or a counter of its own; false if there is none. Days are counted from 0.
func (tx *Tx) NextCountedDay(ctx context.Context, client till.ID, noun string, after int64) (int64, bool, error) {
	var day sql.NullInt64
	lowest := bucketStart(widthDay, after+1)
	if _, err := tx.one(ctx, `SELECT min(bucket) FROM (
		SELECT min(bucket) AS bucket FROM counters WHERE client_id = ? AND noun = ? AND width = ? AND bucket > ?
		UNION ALL SELECT min(bucket) / 24 FROM counters WHERE client_id = ? AND noun = ? AND width = ? AND bucket >= ?) AS days`,
		[]any{client[:], noun, widthDay, after, client[:], noun, widthHour, bucketOf(widthHour, lowest)}, &day); err != nil {
		return 0, false, err
	}
	lo := till.FirstID(lowest)
	table, _, _ := countTable(noun)
	var id till.ID
	found, err := tx.one(ctx, `SELECT id FROM `+table+` WHERE client_id = ? AND id >= ? ORDER BY id LIMIT 1`, []any{client[:], lo[:]}, idDest(&id))
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
func (tx *Tx) CountedDay(ctx context.Context, client till.ID, noun string, day int64) (have, want map[CountKey]int64, err error) {
	have, want = map[CountKey]int64{}, map[CountKey]int64{}
	from, to := bucketStart(widthDay, day), bucketStart(widthDay, day+1)-1
	if err := tx.readCounters(ctx, client, noun, widthDay, day, day, have); err != nil {
		return nil, nil, err
	}
	if err := tx.readCounters(ctx, client, noun, widthHour, bucketOf(widthHour, from), bucketOf(widthHour, to), have); err != nil {
		return nil, nil, err
	}
	table, a, b := countTable(noun)
	lo, hi := till.FirstID(from), till.LastID(to)
	err = tx.rows(ctx, `SELECT created_at / ?, `+a+`, `+b+`, count(*) FROM `+table+` WHERE client_id = ? AND id BETWEEN ? AND ? GROUP BY 1, 2, 3`,
		[]any{int64(till.Hour), client[:], lo[:], hi[:]}, func(r row) error {
			k, n := CountKey{Width: widthHour}, int64(0)
			err := r.Scan(&k.Bucket, &k.A, &k.B, &n)
			want[k] += n
			want[CountKey{widthDay, day, k.A, k.B}] += n
			return err
		})
	return have, want, err
}

// CountedMonths returns the counters of all months and of all time, and what
// they should be by the counters of the days.
func (tx *Tx) CountedMonths(ctx context.Context, client till.ID, noun string) (have, want map[CountKey]int64, err error) {
	have, want = map[CountKey]int64{}, map[CountKey]int64{}
	days := map[CountKey]int64{}
	for width, into := range map[int]map[CountKey]int64{widthAll: have, widthMonth: have, widthDay: days} {
		if err := tx.readCounters(ctx, client, noun, width, 0, 1<<40, into); err != nil {
			return nil, nil, err
		}
	}
	for k, n := range days {
		want[CountKey{widthMonth, bucketOf(widthMonth, bucketStart(widthDay, k.Bucket)), k.A, k.B}] += n
		want[CountKey{widthAll, 0, k.A, k.B}] += n
	}
	return have, want, nil
}

func (tx *Tx) readCounters(ctx context.Context, client till.ID, noun string, width int, from, to int64, into map[CountKey]int64) error {
	return tx.rows(ctx, `SELECT bucket, a, b, n FROM counters WHERE client_id = ? AND noun = ? AND width = ? AND bucket BETWEEN ? AND ?`,
		[]any{client[:], noun, width, from, to}, func(r row) error {
			k, n := CountKey{Width: width}, int64(0)
			err := r.Scan(&k.Bucket, &k.A, &k.B, &n)
			into[k] = n
			return err
		})
}
