package store

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"till"
	"till/internal/db"
)

// counterKey names one counter.
type counterKey struct {
	tallyKey // hour is the bucket
	width    int
}

// Fold puts up to limit of a client's tallies from before an hour into its counters, and
// returns how many. Nothing that is counted changes by it.
func (tx *Tx) Fold(ctx context.Context, client till.ID, before till.Time, limit int) (int, error) {
	if _, err := tx.LockHeads(ctx, []till.ID{client}); err != nil {
		return 0, err
	}
	var folded Counts
	var gone [][]any
	for _, noun := range append(slices.Clone(Nouns), nounStored) {
		err := tx.rows(ctx, `SELECT hour, a, b, n FROM tallies WHERE client_id = ? AND noun = ? AND hour < ? ORDER BY hour, a, b LIMIT ?`,
			[]any{client[:], noun, bucketOf(widthHour, before), limit - len(gone)}, func(r db.Row) error {
				var hour, n int64
				var a, b string
				err := r.Scan(&hour, &a, &b, &n)
				folded.add(client, noun, bucketStart(widthHour, hour), a, b, n)
				gone = append(gone, []any{client[:], noun, hour, a, b, n})
				return err
			})
		if err != nil {
			return 0, err
		}
	}
	if err := tx.setAll(ctx, `DELETE FROM tallies WHERE client_id = ? AND noun = ? AND hour = ? AND a = ? AND b = ? AND n = ?`, gone); err != nil {
		return 0, err
	}
	return len(gone), tx.countFolded(ctx, &folded)
}

// countFolded applies gathered changes to the counters themselves.
func (tx *Tx) countFolded(ctx context.Context, c *Counts) error {
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
		args := []any{sums[*k], k.client[:], k.noun, k.width, k.hour, k.a, k.b}
		if sums[*k] > 0 {
			up = append(up, args)
		} else if sums[*k] < 0 {
			down = append(down, args)
		}
	}
	if err := tx.setAll(ctx, `UPDATE counters SET n = n + ? WHERE client_id = ? AND noun = ? AND width = ? AND bucket = ? AND a = ? AND b = ?`, down); err != nil {
		return err
	}
	return tx.set(ctx, `INSERT INTO counters (n, client_id, noun, width, bucket, a, b) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (client_id, noun, width, bucket, a, b) DO UPDATE SET n = counters.n + excluded.n`, up)
}

// UnfoldedClients returns up to limit clients that have tallies from before
// an hour.
func (tx *Tx) UnfoldedClients(ctx context.Context, before till.Time, limit int) ([]till.ID, error) {
	var out []till.ID
	err := tx.rows(ctx, `SELECT DISTINCT client_id FROM tallies WHERE hour < ? LIMIT ?`, []any{bucketOf(widthHour, before), limit}, func(r db.Row) error {
		var id till.ID
		err := r.Scan(idDest(&id))
		out = append(out, id)
		return err
	})
	return out, err
}
