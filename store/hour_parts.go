package store

import (
	"context"
	"slices"

	"till"
)

// partRows is how many rows a part of a busy hour has. A page reads one count
// for each part of an hour, and skips half a part at most.
const partRows = 2_000

// BusyHour is an hour in which a client made so many rows that its parts are
// counted.
type BusyHour struct {
	Client till.ID
	Noun   string
	Hour   int64
}

// hourPart is a part of a busy hour with the number of its rows that a list wants.
type hourPart struct {
	bucketRange
	open bool // it had rows that may still change, when it was counted
}

// hourRanges cuts a range of one hour into the parts of that hour, ascending, and
// counts each. n is how many matching rows the range has; -1 if that is unknown.
func (tx *Tx) hourRanges(ctx context.Context, l *list, from, to till.Time, n int64) ([]bucketRange, error) {
	parts, err := tx.hourParts(ctx, l, bucketOf(widthHour, from))
	if err != nil {
		return nil, err
	}
	exact := l.b == "" || !slices.ContainsFunc(parts, func(p hourPart) bool { return p.open })
	if !exact {
		if exact, err = tx.partsAddUp(ctx, l.client, l.noun, bucketOf(widthHour, from)); err != nil {
			return nil, err
		}
	}
	var out []bucketRange
	uncounted := func(to till.Time) {
		if from <= to {
			out = append(out, bucketRange{width: partialHour, from: from, to: to, n: -1})
		}
	}
	for _, p := range parts {
		if p.from >= from && p.to <= to && (exact || !p.open) {
			uncounted(p.from - 1)
			out = append(out, p.bucketRange)
			from = p.to + 1
		}
	}
	uncounted(to)
	return out, tx.countUncounted(ctx, l, out, n)
}

// countUncounted counts the rows of the ranges whose number is -1. n is the sum of
// all ranges; -1 if that is unknown.
func (tx *Tx) countUncounted(ctx context.Context, l *list, ranges []bucketRange, n int64) (err error) {
	missing := 0
	for _, r := range ranges {
		if r.n < 0 {
			missing++
		} else {
			n -= r.n
		}
	}
	for i := range ranges {
		r := &ranges[i]
		switch {
		case r.n >= 0:
		case missing == 1 && n >= 0:
			r.n = n
		default:
			if r.n, err = tx.countBetween(ctx, l, r.from, r.to); err != nil {
				return err
			}
		}
	}
	return nil
}

// hourParts reads the parts of an hour, ascending. An hour that is not busy has
// none.
func (tx *Tx) hourParts(ctx context.Context, l *list, hour int64) (parts []hourPart, err error) {
	from := bucketStart(widthHour, hour)
	err = tx.rows(ctx, `SELECT until, CAST(sum(CASE WHEN ($1 = '' OR a = $1) AND ($2 = '' OR b = $2) THEN n ELSE 0 END) AS BIGINT),
		max(CASE WHEN b = 'pending' OR b = 'processing' THEN 1 ELSE 0 END)
		FROM hour_parts WHERE client_id = $3 AND noun = $4 AND hour = $5 GROUP BY until ORDER BY until`,
		[]any{l.a, l.b, l.client[:], l.noun, hour}, func(r row) error {
			p := hourPart{bucketRange: bucketRange{width: partialHour, from: from}}
			err := r.Scan(&p.to, &p.n, boolDest(&p.open))
			from = p.to + 1
			parts = append(parts, p)
			return err
		})
	return parts, err
}

// partsAddUp reports whether the parts of an hour add up to its counters, for each
// pair. Then no row was made and none has changed since the parts were counted: a
// row never returns to a status that it has left, so changes cannot cancel out.
func (tx *Tx) partsAddUp(ctx context.Context, client till.ID, noun string, hour int64) (bool, error) {
	var n int
	_, err := tx.one(ctx, `SELECT count(*) FROM (SELECT a, b FROM (
		SELECT a, b, n FROM counters WHERE client_id = $1 AND noun = $2 AND width = $3 AND bucket = $4
		UNION ALL SELECT a, b, n FROM tallies WHERE client_id = $1 AND noun = $2 AND hour = $4
		UNION ALL SELECT a, b, -n FROM hour_parts WHERE client_id = $1 AND noun = $2 AND hour = $4) AS counts
		GROUP BY a, b HAVING sum(n) <> 0) AS unequal`, []any{client[:], noun, widthHour, hour}, &n)
	return n == 0, err
}

// HoursToSplit returns the busy hours in which something was counted that the
// counters do not have yet.
func (tx *Tx) HoursToSplit(ctx context.Context) (hours []BusyHour, err error) {
	err = tx.rows(ctx, `SELECT client_id, noun, hour FROM tallies AS t WHERE noun <> 'stored' GROUP BY client_id, noun, hour
		HAVING sum(n) > $1 OR EXISTS (SELECT 1 FROM hour_parts AS p WHERE p.client_id = t.client_id AND p.noun = t.noun AND p.hour = t.hour)`,
		[]any{2 * tx.s.partRows}, func(r row) error {
			var h BusyHour
			err := r.Scan(idDest(&h.Client), &h.Noun, &h.Hour)
			hours = append(hours, h)
			return err
		})
	return hours, err
}

// HoursNeverSplit returns the busy hours of a client, by its counters, whose parts
// are missing or do not add up: those from before parts were counted.
func (tx *Tx) HoursNeverSplit(ctx context.Context, client till.ID) (out []BusyHour, err error) {
	days, err := tx.busyBuckets(ctx, client, widthDay, 0, 1<<40)
	for _, d := range days {
		hours, err := tx.busyBuckets(ctx, client, widthHour, d.Hour*24, d.Hour*24+23)
		if err != nil {
			return nil, err
		}
		for _, h := range hours {
			if h.Noun != d.Noun {
				continue
			}
			done, err := tx.partsAddUp(ctx, client, h.Noun, h.Hour)
			if err != nil {
				return nil, err
			}
			if !done {
				out = append(out, h)
			}
		}
	}
	return out, err
}

// busyBuckets returns the buckets of a width that have as many rows as a busy hour,
// by the counters.
func (tx *Tx) busyBuckets(ctx context.Context, client till.ID, width int, from, to int64) (out []BusyHour, err error) {
	err = tx.rows(ctx, `SELECT noun, bucket FROM counters WHERE client_id = $1 AND noun IN ('payment', 'payout', 'transaction') AND width = $2 AND bucket BETWEEN $3 AND $4
		GROUP BY noun, bucket HAVING sum(n) > $5`, []any{client[:], width, from, to, 2 * tx.s.partRows}, func(r row) error {
		h := BusyHour{Client: client}
		err := r.Scan(&h.Noun, &h.Hour)
		out = append(out, h)
		return err
	})
	return out, err
}

// SplitHour counts up to limit parts of a busy hour that end later than a time:
// those that had open rows, and new ones for the rows behind the last part. It
// returns the time to go on from; zero if there is nothing left to count.
func (tx *Tx) SplitHour(ctx context.Context, h BusyHour, after till.Time, limit int) (till.Time, error) {
	// While the head is locked, nobody changes what is counted, and every later row
	// has a later time.
	if _, err := tx.LockHeads(ctx, []till.ID{h.Client}); err != nil {
		return 0, err
	}
	if after == 0 {
		if done, err := tx.partsAddUp(ctx, h.Client, h.Noun, h.Hour); err != nil || done {
			return 0, err
		}
	}
	l := tx.listOf(counted{client: h.Client, noun: h.Noun}, "p.id", 0, 0, Page{})
	pairs, err := tx.pairsFor(ctx, l, h.Hour)
	if err != nil {
		return 0, err
	}
	pairs = slices.DeleteFunc(pairs, func(p filterPair) bool { return p.within <= 0 })
	parts, err := tx.hourParts(ctx, l, h.Hour)
	if err != nil || len(pairs) == 0 {
		return 0, err
	}
	next := bucketStart(widthHour, h.Hour)
	for _, p := range parts {
		if next = p.to + 1; p.open && p.to > after && limit > 0 {
			if err := tx.savePart(ctx, h, l, pairs, p.from, p.to); err != nil {
				return 0, err
			}
			after, limit = p.to, limit-1
		}
	}
	for ; limit > 0; limit-- {
		until, err := tx.endOfPart(ctx, h, next)
		if err != nil || until == 0 {
			return 0, err
		}
		if err := tx.savePart(ctx, h, l, pairs, next, until); err != nil {
			return 0, err
		}
		after, next = until, until+1
	}
	return after, nil
}

// endOfPart returns when the last row of the part that begins at a time was
// made; zero if the hour has no row from there on.
func (tx *Tx) endOfPart(ctx context.Context, h BusyHour, from till.Time) (till.Time, error) {
	table, _, _ := countTable(h.Noun)
	lo, hi := till.FirstID(from), till.LastID(bucketStart(widthHour, h.Hour+1)-1)
	var id till.ID
	found, err := tx.one(ctx, `SELECT id FROM `+table+` WHERE client_id = $1 AND id BETWEEN $2 AND $3 ORDER BY id LIMIT 1 OFFSET $4`,
		[]any{h.Client[:], lo[:], hi[:], tx.s.partRows - 1}, idDest(&id))
	if err == nil && !found {
		found, err = tx.one(ctx, `SELECT id FROM `+table+` WHERE client_id = $1 AND id BETWEEN $2 AND $3 ORDER BY id DESC LIMIT 1`,
			[]any{h.Client[:], lo[:], hi[:]}, idDest(&id))
	}
	if err != nil || !found {
		return 0, err
	}
	return id.Time(), nil
}

// savePart counts a part and writes it in place of what was counted of it before.
func (tx *Tx) savePart(ctx context.Context, h BusyHour, l *list, pairs []filterPair, from, until till.Time) error {
	var counts [][]any
	err := tx.count(ctx, l, pairs, till.FirstID(from), till.LastID(until), func(pair int, n int64) {
		if n > 0 {
			counts = append(counts, []any{h.Client[:], h.Noun, h.Hour, int64(until), pairs[pair].a, pairs[pair].b, n})
		}
	})
	if err != nil {
		return err
	}
	if _, err := tx.exec(ctx, `DELETE FROM hour_parts WHERE client_id = ? AND noun = ? AND hour = ? AND until = ?`, h.Client[:], h.Noun, h.Hour, int64(until)); err != nil {
		return err
	}
	return tx.set(ctx, `INSERT INTO hour_parts (client_id, noun, hour, until, a, b, n) VALUES (?, ?, ?, ?, ?, ?, ?)`, counts)
}
