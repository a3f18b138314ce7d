package store

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"till"
	"till/internal/db"
)

var selectTallies = db.Define(db.SQL{Name: "counters.selectTallies",
	SQLite: `SELECT hour, a, b, n FROM tallies WHERE client_id = $1 AND noun = $2 AND hour < $3 ORDER BY hour, a, b LIMIT $4`})

var deleteTallies = db.Define(db.SQL{Name: "counters.deleteTallies",
	SQLite: `DELETE FROM tallies WHERE client_id = $1 AND noun = $2 AND hour = $3 AND a = $4 AND b = $5 AND n = $6`,
	Postgres: `WITH changed AS (DELETE FROM tallies
		USING (SELECT unnest($1::bytea[]) AS a1, unnest($2::text[]) AS a2, unnest($3::bigint[]) AS a3, unnest($4::text[]) AS a4, unnest($5::text[]) AS a5,
			unnest($6::bigint[]) AS a6 LIMIT $7::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a1]) AND noun = u.a2 AND hour = u.a3 AND a = u.a4 AND b = u.a5 AND n = u.a6
		RETURNING 1)
		SELECT till_expect_rows(count(*), $7) FROM changed`,
	Arrays: true})

var lowerCounters = db.Define(db.SQL{Name: "counters.lower",
	SQLite: `UPDATE counters SET n = n + $1 WHERE client_id = $2 AND noun = $3 AND width = $4 AND bucket = $5 AND a = $6 AND b = $7`,
	Postgres: `WITH changed AS (UPDATE counters SET n = n + u.a1
		FROM (SELECT unnest($1::bigint[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::text[]) AS a3, unnest($4::bigint[]) AS a4, unnest($5::bigint[]) AS a5,
			unnest($6::text[]) AS a6, unnest($7::text[]) AS a7 LIMIT $8::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a2]) AND noun = u.a3 AND width = u.a4 AND bucket = u.a5 AND a = u.a6 AND b = u.a7
		RETURNING 1)
		SELECT till_expect_rows(count(*), $8) FROM changed`,
	Arrays: true})

var raiseCounters = db.Define(db.SQL{Name: "counters.raise",
	SQLite: `INSERT INTO counters (n, client_id, noun, width, bucket, a, b) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (client_id, noun, width, bucket, a, b) DO UPDATE SET n = counters.n + excluded.n`,
	Postgres: `INSERT INTO counters (n, client_id, noun, width, bucket, a, b)
		SELECT u.a1, u.a2, u.a3, u.a4, u.a5, u.a6, u.a7
		FROM (SELECT unnest($1::bigint[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::text[]) AS a3, unnest($4::bigint[]) AS a4, unnest($5::bigint[]) AS a5,
			unnest($6::text[]) AS a6, unnest($7::text[]) AS a7 LIMIT $8::bigint) AS u
		ON CONFLICT (client_id, noun, width, bucket, a, b) DO UPDATE SET n = counters.n + excluded.n`,
	Arrays: true})

var selectClientsToRollUp = db.Define(db.SQL{Name: "counters.selectClientsToRollUp",
	SQLite: `SELECT DISTINCT client_id FROM tallies WHERE hour < $1 LIMIT $2`})

// counterKey names one counter.
type counterKey struct {
	tallyKey // hour is the bucket
	width    int
}

// RollUp puts up to limit of a client's tallies from before an hour into its counters, and
// returns how many. Nothing that is counted changes by it.
func (tx *Tx) RollUp(ctx context.Context, client till.ID, before till.Time, limit int) (int, error) {
	if _, err := tx.LockHeads(ctx, []till.ID{client}); err != nil {
		return 0, err
	}
	var folded CounterDelta
	var gone [][]any
	for _, table := range append(slices.Clone(CountedTables), countStored) {
		err := tx.db.Query(ctx, selectTallies,
			[]any{client[:], table, bucketOf(widthHour, before), limit - len(gone)}, func(r db.Row) error {
				var hour, n int64
				var a, b string
				err := r.Scan(&hour, &a, &b, &n)
				folded.add(client, table, bucketStart(widthHour, hour), a, b, n)
				gone = append(gone, []any{client[:], table, hour, a, b, n})
				return err
			})
		if err != nil {
			return 0, err
		}
	}
	if err := tx.db.DeferExactly(deleteTallies, gone); err != nil {
		return 0, err
	}
	return len(gone), tx.addToCounters(ctx, &folded)
}

// addToCounters applies gathered changes to the counters themselves.
func (tx *Tx) addToCounters(ctx context.Context, c *CounterDelta) error {
	sums := map[counterKey]int64{}
	for _, k := range c.keys() {
		n, at := c.n[k], bucketStart(widthHour, k.hour)
		for w := widthAll; w <= widthHour; w++ {
			k.hour = bucketOf(w, at)
			sums[counterKey{k, w}] += n
		}
	}
	keys := slices.SortedFunc(maps.Keys(sums), func(x, y counterKey) int {
		return cmp.Or(x.tallyKey.compare(&y.tallyKey), cmp.Compare(x.width, y.width))
	})
	// What goes down is there already. An upsert would hold the constraint
	// against the difference instead of the sum.
	var up, down [][]any
	for i := range keys {
		k := &keys[i]
		args := []any{sums[*k], k.client[:], k.table, k.width, k.hour, k.a, k.b}
		if sums[*k] > 0 {
			up = append(up, args)
		} else if sums[*k] < 0 {
			down = append(down, args)
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
	var out []till.ID
	err := tx.db.Query(ctx, selectClientsToRollUp, []any{bucketOf(widthHour, before), limit}, func(r db.Row) error {
		var id till.ID
		err := r.Scan(idDest(&id))
		out = append(out, id)
		return err
	})
	return out, err
}
