package store

import (
	"context"
	"slices"

	"till/internal/db"
)

// A total over weeks adds up whole days of counters, and hours only before the first
// and after the last of them. Days of counters are UTC's; the ends of a range may be
// any hours, so the reader's zone does not matter.
var selectTotals = db.Define(db.SQL{Name: "sums.selectTotals",
	SQLite: `SELECT noun, a, b, CAST(sum(n) AS BIGINT), CAST(sum(sum) AS BIGINT) FROM (
		SELECT noun, a, b, n, sum FROM counters WHERE client_id = $1 AND noun IN ($2, $3) AND width = $4 AND bucket BETWEEN $5 AND $6
		UNION ALL SELECT noun, a, b, n, sum FROM counters WHERE client_id = $1 AND noun IN ($2, $3) AND width = $7 AND bucket BETWEEN $8 AND $9
		UNION ALL SELECT noun, a, b, n, sum FROM counters WHERE client_id = $1 AND noun IN ($2, $3) AND width = $7 AND bucket BETWEEN $10 AND $11
		UNION ALL SELECT noun, a, b, n, sum FROM tallies WHERE client_id = $1 AND noun IN ($2, $3) AND hour BETWEEN $12 AND $13) AS all_of_them
		GROUP BY noun, a, b`})

// hourSplit is a range of hours as the whole days in it and the hours around them. An
// empty part ends before it begins.
type hourSplit struct{ firstDay, lastDay, before, beforeEnd, after, afterEnd int64 }

// splitHours splits the hours from..to.
func splitHours(from, to int64) hourSplit {
	firstDay, lastDay := (from+23)/24, (to+1)/24-1
	if firstDay > lastDay {
		return hourSplit{1, 0, from, to, 1, 0}
	}
	return hourSplit{firstDay, lastDay, from, firstDay*24 - 1, (lastDay + 1) * 24, to}
}

// Totals returns what the hours from..to of at most two nouns add up to, of one
// client or of all of a mode. Hour is 0. The same pair may come twice.
func (tx *Tx) Totals(ctx context.Context, scope Scope, nouns [2]string, from, to int64) (all []HourSum, err error) {
	counted := nouns
	if scope.Client.IsZero() {
		// What is not rolled up yet is in the tallies of the clients.
		if all, err = db.ReadAll(ctx, tx.db, selectHouseTallies, []any{string(scope.Mode), from, to}, scanHourSum); err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(s HourSum) bool { return !slices.Contains(nouns[:], s.Noun) })
		for i, noun := range nouns {
			counted[i], _ = houseNoun(noun, scope.Mode)
		}
	}
	client, h := scope.Client, splitHours(from, to)
	err = tx.db.Query(ctx, selectTotals, []any{client[:], counted[0], counted[1], widthDay, h.firstDay, h.lastDay,
		widthHour, h.before, h.beforeEnd, h.after, h.afterEnd, from, to}, func(r db.Row) error {
		var s HourSum
		err := r.Scan(&s.Noun, &s.A, &s.B, &s.N, &s.Sum.Sum)
		s.Noun = nouns[slices.Index(counted[:], s.Noun)]
		all = append(all, s)
		return err
	})
	for i := range all {
		all[i].Hour = 0
	}
	return all, err
}
