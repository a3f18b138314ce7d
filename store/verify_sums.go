package store

import (
	"context"
	"database/sql"
	"maps"
	"slices"

	"till"
	"till/internal/db"
)

var selectNextSumDay = db.Define(db.SQL{Name: "verify.selectNextSumDay",
	SQLite: `SELECT min(bucket) FROM (
		SELECT min(bucket) AS bucket FROM counters WHERE client_id = $1 AND noun IN ` + sumNouns + ` AND width = $2 AND bucket > $3
		UNION ALL SELECT min(bucket) / 24 FROM counters WHERE client_id = $1 AND noun IN ` + sumNouns + ` AND width = $4 AND bucket >= $5
		UNION ALL SELECT min(hour) / 24 FROM tallies WHERE client_id = $1 AND noun IN ` + sumNouns + ` AND hour >= $5) AS days`})

// NextSumDay returns the next day, beyond after, on which a client's wallets have
// lines, or any sum is; false if there is none. Days are counted from 0.
func (tx *Tx) NextSumDay(ctx context.Context, client till.ID, after int64) (int64, bool, error) {
	day, found, err := tx.NextCountedDay(ctx, client, countTransactions, after)
	if err != nil {
		return 0, false, err
	}
	var sums sql.NullInt64
	_, err = tx.db.QueryRow(ctx, selectNextSumDay, []any{client[:], widthDay, after, widthHour, (after + 1) * 24}, &sums)
	if sums.Valid && (!found || sums.Int64 < day) {
		day, found = sums.Int64, true
	}
	return day, found, err
}

// DayLines returns how many lines the wallets of a client have on a day, by its
// counters.
func (tx *Tx) DayLines(ctx context.Context, client till.ID, day int64) (int64, error) {
	return tx.DaySize(ctx, client, countTransactions, day)
}

// DaySums returns the sums of one day, and what they should be by those of its
// hours. It is for the installation too.
func (tx *Tx) DaySums(ctx context.Context, client till.ID, day int64) (have, want map[SumKey]Sum, err error) {
	have, want = map[SumKey]Sum{}, map[SumKey]Sum{}
	hours := map[SumKey]Sum{}
	if err := tx.readWidth(ctx, client, widthDay, day, day, have); err != nil {
		return nil, nil, err
	}
	if err := tx.readWidth(ctx, client, widthHour, day*24, day*24+23, hours); err != nil {
		return nil, nil, err
	}
	for k, s := range hours {
		k.Width, k.Bucket = widthDay, day
		want[k] = want[k].plus(s)
	}
	return have, want, nil
}

// WideSums returns the sums of all months and of all time, and what they should
// be by those of the days. It is for the installation too.
func (tx *Tx) WideSums(ctx context.Context, client till.ID) (have, want map[SumKey]Sum, err error) {
	have, want = map[SumKey]Sum{}, map[SumKey]Sum{}
	days := map[SumKey]Sum{}
	for width, into := range map[int]map[SumKey]Sum{widthAll: have, widthMonth: have, widthDay: days} {
		if err := tx.readWidth(ctx, client, width, 0, allHours, into); err != nil {
			return nil, nil, err
		}
	}
	for k, s := range days {
		at := bucketStart(widthDay, k.Bucket)
		for _, k.Width = range []int{widthAll, widthMonth} {
			k.Bucket = bucketOf(k.Width, at)
			want[k] = want[k].plus(s)
		}
	}
	return have, want, nil
}

func (tx *Tx) readWidth(ctx context.Context, client till.ID, width int, from, to int64, into map[SumKey]Sum) error {
	if client.IsZero() {
		return tx.readHouse(ctx, width, from, to, into)
	}
	return tx.readSums(ctx, client, width, from, to, into)
}

// HouseDays returns the days of which clients may have counters, or the installation has
// some, ascending.
func (tx *Tx) HouseDays(ctx context.Context) ([]int64, error) {
	counted, days := map[SumKey]Sum{}, map[int64]bool{}
	if err := tx.readHouse(ctx, widthDay, 0, allHours, counted); err != nil {
		return nil, err
	}
	for k := range counted {
		days[k.Bucket] = true
	}
	var month sql.NullInt64
	if _, err := tx.db.QueryRow(ctx, selectFirstMonth, nil, &month); err != nil {
		return nil, err
	}
	if month.Valid {
		for d := bucketOf(widthDay, bucketStart(widthMonth, month.Int64)); d <= bucketOf(widthDay, tx.Now())+1; d++ {
			days[d] = true
		}
	}
	return slices.Sorted(maps.Keys(days)), nil
}
