package store

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"till"
	"till/internal/db"
)

// Counters end at the hour. A page deep inside an hour of 300 000 rows would skip them one by
// one, so the roll-up counts parts of busy hours: ranges of about 4 000 rows. Rows of a client
// are made in the order of their ids, so a part never gains or loses a row; only statuses inside
// it change. No commit of a create or a settlement writes a part. A list relies on a part if it
// does not filter by status, if the part had no open row when it was counted, or if the parts of
// the hour add up to the hour's counters, pair by pair: a row never returns to a status, so equal
// sums prove that nothing has changed. Other ranges are counted from the rows. Empty the table,
// and the parts are counted again at the next start.

var selectHourParts = db.Define(db.SQL{Name: "hour_parts.select",
	SQLite: `SELECT until, counts FROM hour_parts WHERE client_id = $1 AND noun = $2 AND hour = $3 ORDER BY until`})

var selectHourCounts = db.Define(db.SQL{Name: "hour_parts.selectCounts",
	SQLite: `SELECT a, b, n FROM counters WHERE client_id = $1 AND noun = $2 AND width = $3 AND bucket = $4
		UNION ALL SELECT a, b, n FROM tallies WHERE client_id = $1 AND noun = $2 AND hour = $4`})

var selectHoursToSplit = db.Define(db.SQL{Name: "hour_parts.selectToSplit",
	SQLite: `SELECT client_id, noun, hour FROM tallies AS t WHERE noun IN ('payment', 'payout', 'refund', 'transaction') GROUP BY client_id, noun, hour
		HAVING sum(n) > $1 OR EXISTS (SELECT 1 FROM hour_parts AS p WHERE p.client_id = t.client_id AND p.noun = t.noun AND p.hour = t.hour)`,
	Citus: `SELECT client_id, noun, hour FROM (SELECT client_id, noun, hour, sum(n) AS n FROM tallies WHERE noun IN ('payment', 'payout', 'refund', 'transaction')
		GROUP BY client_id, noun, hour) AS t
		WHERE n > $1 OR EXISTS (SELECT 1 FROM hour_parts AS p WHERE p.client_id = t.client_id AND p.noun = t.noun AND p.hour = t.hour)`})

var selectBusyBuckets = db.Define(db.SQL{Name: "hour_parts.selectBusyBuckets",
	SQLite: `SELECT noun, bucket FROM counters WHERE client_id = $1 AND noun IN ('payment', 'payout', 'refund', 'transaction') AND width = $2 AND bucket BETWEEN $3 AND $4
		GROUP BY noun, bucket HAVING sum(n) > $5`})

var saveHourPart = db.Define(db.SQL{Name: "hour_parts.save",
	SQLite: `INSERT INTO hour_parts (client_id, noun, hour, until, counts) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (client_id, noun, hour, until) DO UPDATE SET counts = excluded.counts`})

var forgetHourParts = db.Define(db.SQL{Name: "hour_parts.forget",
	SQLite: `DELETE FROM hour_parts WHERE client_id = $1 AND hour >= $2`})

var selectIDAt = defineCounted("hour_parts.selectIDAt", func(table, _, _, which string) string {
	return `SELECT id FROM ` + table + ` WHERE client_id = $1` + which + ` AND id BETWEEN $2 AND $3 ORDER BY id LIMIT 1 OFFSET $4`
})

var selectLastID = defineCounted("hour_parts.selectLastID", func(table, _, _, which string) string {
	return `SELECT id FROM ` + table + ` WHERE client_id = $1` + which + ` AND id BETWEEN $2 AND $3 ORDER BY id DESC LIMIT 1`
})

// partRows is how many rows a part of a busy hour has. A page reads the counts of each
// part of its hour, and skips half a part at most.
const partRows = 4_000

// BusyHour is an hour in which a client made so many rows that its parts are
// counted.
type BusyHour struct {
	Client till.ID
	Table  string
	Hour   int64
}

// hourPart is a part of a busy hour.
type hourPart struct {
	from, until till.Time // both inclusive
	counts      []pairCount
}

// pairCount is how many rows there are of a pair.
type pairCount struct {
	a, b string
	n    int64
}

// open reports whether the part had rows that might still change, when it was
// counted.
func (p *hourPart) open() bool {
	return slices.ContainsFunc(p.counts, func(c pairCount) bool { return c.b == string(till.Pending) || c.b == string(till.Processing) })
}

// matching returns how many rows a list wants of the part.
func (p *hourPart) matching(l *list) (n int64) {
	for _, c := range p.counts {
		if (l.a == "" || c.a == l.a) && (l.b == "" || c.b == l.b) {
			n += c.n
		}
	}
	return n
}

// hourRanges cuts a range of one hour into the parts of that hour, ascending, and
// counts each. n is how many matching rows the range has; -1 if that is unknown.
func (tx *Tx) hourRanges(ctx context.Context, l *list, from, to till.Time, n int64) ([]bucketRange, error) {
	h := BusyHour{l.client, l.table, bucketOf(widthHour, from)}
	parts, err := tx.hourParts(ctx, h)
	if err != nil {
		return nil, err
	}
	exact := l.b == "" || !slices.ContainsFunc(parts, func(p hourPart) bool { return p.open() })
	if !exact {
		if exact, err = tx.addUp(ctx, h, parts); err != nil {
			return nil, err
		}
	}
	var out []bucketRange
	uncounted := func(to till.Time) {
		if from <= to {
			out = append(out, bucketRange{width: partialHour, from: from, to: to, n: -1})
		}
	}
	for i := range parts {
		if p := &parts[i]; p.from >= from && p.until <= to && (exact || !p.open()) {
			uncounted(p.from - 1)
			out = append(out, bucketRange{width: partialHour, from: p.from, to: p.until, n: p.matching(l)})
			from = p.until + 1
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
func (tx *Tx) hourParts(ctx context.Context, h BusyHour) (parts []hourPart, err error) {
	from := bucketStart(widthHour, h.Hour)
	err = tx.db.Query(ctx, selectHourParts,
		[]any{h.Client[:], h.Table, h.Hour}, func(r db.Row) error {
			p, counts := hourPart{from: from}, ""
			err := r.Scan(&p.until, &counts)
			from, p.counts = p.until+1, parsePart(counts)
			parts = append(parts, p)
			return err
		})
	return parts, err
}

// parsePart reads the counts of a part. A number that is damaged counts as 0: verify
// finds it.
func parsePart(text string) (counts []pairCount) {
	for one := range strings.SplitSeq(text, ",") {
		var c pairCount
		var n string
		c.a, n, _ = strings.Cut(one, " ")
		c.b, n, _ = strings.Cut(n, " ")
		c.n, _ = strconv.ParseInt(n, 10, 64)
		counts = append(counts, c)
	}
	return counts
}

// addUp reports whether the parts of an hour add up to its counters, for each
// pair. If they do, no row was made or changed since the parts were counted.
// Changes cannot cancel out, because a row never returns to a status that it has
// left.
func (tx *Tx) addUp(ctx context.Context, h BusyHour, parts []hourPart) (bool, error) {
	left := map[[2]string]int64{}
	for i := range parts {
		for _, c := range parts[i].counts {
			left[[2]string{c.a, c.b}] += c.n
		}
	}
	err := tx.db.Query(ctx, selectHourCounts,
		[]any{h.Client[:], h.Table, widthHour, h.Hour}, func(r db.Row) error {
			var c pairCount
			err := r.Scan(&c.a, &c.b, &c.n)
			left[[2]string{c.a, c.b}] -= c.n
			return err
		})
	for _, n := range left {
		if n != 0 {
			return false, err
		}
	}
	return true, err
}

// HoursToSplit returns the busy hours in which something was counted that the
// counters do not have yet.
func (tx *Tx) HoursToSplit(ctx context.Context) (hours []BusyHour, err error) {
	err = tx.db.Query(ctx, selectHoursToSplit,
		[]any{2 * tx.s.partRows}, func(r db.Row) error {
			var h BusyHour
			err := r.Scan(db.ID(&h.Client), &h.Table, &h.Hour)
			hours = append(hours, h)
			return err
		})
	return hours, err
}

// HoursNeverSplit returns a client's busy hours whose parts are missing or do not
// add up to the counters. They are from before parts were counted.
func (tx *Tx) HoursNeverSplit(ctx context.Context, client till.ID) (out []BusyHour, err error) {
	days, err := tx.busyBuckets(ctx, client, widthDay, 0, 1<<40)
	for _, d := range days {
		hours, err := tx.busyBuckets(ctx, client, widthHour, d.Hour*24, d.Hour*24+23)
		if err != nil {
			return nil, err
		}
		for _, h := range hours {
			if h.Table != d.Table {
				continue
			}
			parts, err := tx.hourParts(ctx, h)
			if err != nil {
				return nil, err
			}
			done, err := tx.addUp(ctx, h, parts)
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
func (tx *Tx) busyBuckets(ctx context.Context, client till.ID, width int, from, to int64) ([]BusyHour, error) {
	return db.ReadAll(ctx, tx.db, selectBusyBuckets, []any{client[:], width, from, to, 2 * tx.s.partRows}, func(r db.Row) (BusyHour, error) {
		h := BusyHour{Client: client}
		err := r.Scan(&h.Table, &h.Hour)
		return h, err
	})
}

// AddParts adds up to limit parts to a busy hour, for the rows behind its last part.
// It reports whether there are more of them; if not, whether the parts of the hour are
// stale, because rows in them have changed.
func (tx *Tx) AddParts(ctx context.Context, h BusyHour, limit int) (more, stale bool, err error) {
	// While the head is locked, no other transaction changes what is counted, and
	// every later row has a later time.
	if _, err := tx.LockHeads(ctx, []till.ID{h.Client}); err != nil {
		return false, false, err
	}
	parts, err := tx.hourParts(ctx, h)
	if err != nil {
		return false, false, err
	}
	p := hourPart{from: bucketStart(widthHour, h.Hour)}
	if n := len(parts); n > 0 {
		p.from = parts[n-1].until + 1
	}
	for more = true; more && limit > 0; limit-- {
		if p.until, more, err = tx.endOfPart(ctx, h, p.from); err != nil {
			return false, false, err
		}
		if p.until == 0 {
			break
		}
		if err := tx.savePart(ctx, h, &p); err != nil {
			return false, false, err
		}
		parts = append(parts, p)
		p = hourPart{from: p.until + 1}
	}
	if more {
		return true, false, nil
	}
	exact, err := tx.addUp(ctx, h, parts)
	return false, !exact, err
}

// RecountParts counts up to limit parts of a busy hour again that end later than a
// time and had open rows. It returns the time to go on from; zero if none is left.
func (tx *Tx) RecountParts(ctx context.Context, h BusyHour, after till.Time, limit int) (till.Time, error) {
	if _, err := tx.LockHeads(ctx, []till.ID{h.Client}); err != nil {
		return 0, err
	}
	parts, err := tx.hourParts(ctx, h)
	if err != nil {
		return 0, err
	}
	for i := range parts {
		p := &parts[i]
		if !p.open() || p.until <= after {
			continue
		}
		if limit--; limit < 0 {
			return after, nil
		}
		if err := tx.savePart(ctx, h, p); err != nil {
			return 0, err
		}
		after = p.until
	}
	return 0, nil
}

// endOfPart returns the time of the last row of the part that begins at a time,
// and whether the part is full. The time is zero if the hour has no row from there
// on.
func (tx *Tx) endOfPart(ctx context.Context, h BusyHour, from till.Time) (until till.Time, full bool, err error) {
	lo, hi := till.FirstID(from), till.LastID(bucketStart(widthHour, h.Hour+1)-1)
	var id till.ID
	full, err = tx.db.QueryRow(ctx, selectIDAt[h.Table],
		[]any{h.Client[:], lo[:], hi[:], tx.s.partRows - 1}, db.ID(&id))
	if err != nil || full {
		return id.Time(), full, err
	}
	found, err := tx.db.QueryRow(ctx, selectLastID[h.Table],
		[]any{h.Client[:], lo[:], hi[:]}, db.ID(&id))
	if err != nil || !found {
		return 0, false, err
	}
	return id.Time(), false, nil
}

// savePart counts a part and writes it in place of what was counted of it before.
func (tx *Tx) savePart(ctx context.Context, h BusyHour, p *hourPart) error {
	p.counts = nil
	err := tx.countRows(ctx, h.Client, h.Table, p.from, p.until, func(k CountKey, n int64) {
		p.counts = append(p.counts, pairCount{k.A, k.B, n})
	})
	if err != nil {
		return err
	}
	text := make([]string, len(p.counts))
	for i, c := range p.counts {
		text[i] = c.a + " " + c.b + " " + strconv.FormatInt(c.n, 10)
	}
	_, err = tx.db.Exec(ctx, saveHourPart, h.Client[:], h.Table, h.Hour, int64(p.until), strings.Join(text, ","))
	return err
}

// ForgetParts deletes the parts of a client's busy hours from a time on. They are counted
// again. A caller that inserts a row with an older id than the newest has to call it.
func (tx *Tx) ForgetParts(ctx context.Context, client till.ID, from till.Time) error {
	_, err := tx.db.Exec(ctx, forgetHourParts, client[:], bucketOf(widthHour, from))
	return err
}
