package store

import (
	"context"
	"fmt"
	"strings"

	"till"
)

// kind is a pair that counters are kept for, and how many rows of it an hour
// has.
type filterPair struct {
	a, b   string
	within int64
}

// pairsFor returns the kinds that a list of one method in any status takes from, or
// of one status by any method, and the like of transactions. The index has each
// kind in order: however rare they are among the others, none of the others is
// read.
func (tx *Tx) pairsFor(ctx context.Context, l *list, hour int64) (kinds []filterPair, err error) {
	err = tx.rows(ctx, `SELECT a, b, CAST(sum(within) AS BIGINT) FROM (
		SELECT a, b, n, 0 AS within FROM counters WHERE client_id = ? AND noun = ? AND width = ? AND (? = '' OR a = ?) AND (? = '' OR b = ?)
		UNION ALL SELECT a, b, 0, n FROM counters WHERE client_id = ? AND noun = ? AND width = ? AND bucket = ? AND (? = '' OR a = ?) AND (? = '' OR b = ?)
		UNION ALL SELECT a, b, n, CASE WHEN hour = ? THEN n ELSE 0 END FROM tallies WHERE client_id = ? AND noun = ? AND (? = '' OR a = ?) AND (? = '' OR b = ?)
		) AS parts GROUP BY a, b HAVING sum(n) > 0 ORDER BY a, b`,
		[]any{l.client[:], l.noun, widthAll, l.a, l.a, l.b, l.b, l.client[:], l.noun, widthHour, hour, l.a, l.a, l.b, l.b,
			hour, l.client[:], l.noun, l.a, l.a, l.b, l.b}, func(r row) error {
			var k filterPair
			err := r.Scan(&k.a, &k.b, &k.within)
			kinds = append(kinds, k)
			return err
		})
	return kinds, err
}

// indexesByEnd reports whether the index of payments by kind knows how they have
// ended, instead of their status: there a payment's first move costs no index.
func (s *Store) indexesByEnd() bool { return s.e.name() == "postgres" }

// second is the condition on the second column of a kind.
func (l *list) second(column, value string) string {
	switch {
	case !l.indexedByEnd:
		return "p." + column + " = ?"
	case till.Status(value).Final():
		return "p.ended = ?"
	}
	return "p.ended = '' AND p." + column + " = ?" // the few that are open are told apart by the row
}

// pairsSQL is what is read of some kinds. What is skipped lies in one hour, so
// no more is read of a kind than that hour has of it, and a page.
func (l *list) pairsSQL(kinds []filterPair, s idRange) (query string, args []any) {
	_, columnA, columnB := countTable(l.noun)
	parts := make([]string, len(kinds))
	for i, k := range kinds {
		skip := s.skip
		if s.hour >= 0 {
			skip = min(skip, k.within)
		}
		parts[i] = fmt.Sprintf(`SELECT * FROM (SELECT %s FROM %s WHERE p.client_id = ? AND p.%s = ? AND %s
			AND p.id BETWEEN ? AND ? ORDER BY p.id %s LIMIT ?) AS kind%d`, l.columns, l.table, columnA, l.second(columnB, k.b), s.order, i)
		args = append(args, l.client[:], k.a, k.b, s.lo[:], s.hi[:], skip+s.limit)
	}
	return strings.Join(parts, " UNION ALL ") + ` ORDER BY id ` + s.order, args
}

// countPairs counts the rows of some kinds between two times.
func (tx *Tx) countPairs(ctx context.Context, l *list, kinds []filterPair, from, to till.Time) (n int64, err error) {
	_, columnA, columnB := countTable(l.noun)
	lo, hi := till.FirstID(from), till.LastID(to)
	parts, args := make([]string, len(kinds)), []any(nil)
	for i, k := range kinds {
		parts[i] = fmt.Sprintf(`SELECT count(*) FROM %s WHERE p.client_id = ? AND p.%s = ? AND %s AND p.id BETWEEN ? AND ?`, l.table, columnA, l.second(columnB, k.b))
		args = append(args, l.client[:], k.a, k.b, lo[:], hi[:])
	}
	err = tx.rows(ctx, strings.Join(parts, " UNION ALL "), args, func(r row) error {
		var some int64
		err := r.Scan(&some)
		n += some
		return err
	})
	return n, err
}

// narrow counts towards a place that is far from both ends of its stretch, and
// returns it by a shorter one. The rows of many kinds have to be put in order to
// be skipped, which takes longer than to count them. Where they come evenly, as
// most do within an hour, the first guess leaves few.
func (tx *Tx) narrow(ctx context.Context, l *list, at position, limit int, kinds []filterPair) (position, error) {
	for range maxNarrowings {
		if min(at.skip, at.n-at.skip) <= farPages*int64(limit) || at.from == at.to {
			return at, nil
		}
		// Times are microseconds, and an hour's fit many times into 63 bits.
		part := till.Time(int64(at.to-at.from) / at.n * at.skip)
		near, rest := position{from: at.to - part, to: at.to}, position{from: at.from, to: at.to - part - 1}
		if l.page.Ascending {
			near, rest = position{from: at.from, to: at.from + part}, position{from: at.from + part + 1, to: at.to}
		}
		n, err := tx.countPairs(ctx, l, kinds, near.from, near.to)
		if err != nil {
			return at, err
		}
		if n <= at.skip {
			at = l.positionAfter(rest.from, rest.to, at.skip-n, at.n-n, at.hour)
		} else {
			at = l.positionAfter(near.from, near.to, at.skip, n, at.hour)
		}
	}
	return at, nil
}

const (
	farPages  = 4 // how many pages may be skipped without counting first
	maxNarrowings = 4 // how often it is counted; whoever comes all at one moment is skipped row by row
)
