package store

import (
	"context"
	"slices"

	"till"
	"till/internal/db"
)

// bucketRange is a range of time with the number of matching rows in it. It is a
// whole bucket of some width, or a part of one hour.
type bucketRange struct {
	width    int       // partialHour: a part of an hour, not a bucket
	from, to till.Time // both inclusive
	n        int64
}

const partialHour = widthHour + 1

// bucketRanges cuts the wanted range of time into whole buckets, as wide as fit,
// and at most two partial hours, ascending, and counts each.
func (tx *Tx) bucketRanges(ctx context.Context, l *list) ([]bucketRange, error) {
	if l.from.IsZero() && l.to.IsZero() {
		return tx.bucketsAsRanges(ctx, l, widthMonth, 0, 1<<40)
	}
	from, to := l.from, l.to
	if from.IsZero() {
		from = 1
	}
	if to.IsZero() {
		to = 1<<62 - 1
	}
	return tx.splitIntoBuckets(ctx, l, widthMonth, from, to)
}

// splitIntoBuckets covers from..to: the whole buckets of a width in the middle,
// and what is left on either side by the next narrower width.
func (tx *Tx) splitIntoBuckets(ctx context.Context, l *list, width int, from, to till.Time) ([]bucketRange, error) {
	if from > to {
		return nil, nil
	}
	if width == partialHour {
		edge := min(to, bucketStart(widthHour, bucketOf(widthHour, from)+1)-1)
		head, err := tx.hourRanges(ctx, l, from, edge, -1)
		if err != nil || edge == to {
			return head, err
		}
		tail, err := tx.hourRanges(ctx, l, edge+1, to, -1) // less than an hour may reach into two
		return slices.Concat(head, tail), err
	}
	to = min(to, maxListTime)
	first := bucketOf(width, from)
	if bucketStart(width, first) < from {
		first++
	}
	last := bucketOf(width, to+1) - 1
	if first > last {
		return tx.splitIntoBuckets(ctx, l, width+1, from, to)
	}
	head, err := tx.splitIntoBuckets(ctx, l, width+1, from, bucketStart(width, first)-1)
	if err != nil {
		return nil, err
	}
	middle, err := tx.bucketsAsRanges(ctx, l, width, first, last)
	if err != nil {
		return nil, err
	}
	tail, err := tx.splitIntoBuckets(ctx, l, width+1, bucketStart(width, last+1), to)
	return slices.Concat(head, middle, tail), err
}

// maxListTime keeps the arithmetic of buckets far from overflow.
var maxListTime, _ = till.ParseTime("9999-12-31T23:59:59.999999Z")

func (tx *Tx) bucketsAsRanges(ctx context.Context, l *list, width int, first, last int64) ([]bucketRange, error) {
	bs, err := tx.buckets(ctx, l.counted, width, first, last)
	out := make([]bucketRange, len(bs))
	for i, b := range bs {
		out[i] = bucketRange{width: width, n: b.n, from: bucketStart(width, b.bucket), to: bucketStart(width, b.bucket+1) - 1}
	}
	return out, err
}

// seek finds where the page starts: the narrowest range that holds the offset,
// and how many matching rows to skip inside it.
func (tx *Tx) seek(ctx context.Context, l *list, ranges []bucketRange, offset int64) (position, error) {
	if !l.page.Ascending {
		slices.Reverse(ranges)
	}
	for _, r := range ranges {
		if offset >= r.n {
			offset -= r.n
			continue
		}
		if r.width == partialHour || r.width == widthHour && min(offset, r.n-offset) <= farPages*int64(l.page.Limit) {
			return l.positionAfter(offset, r), nil
		}
		var inner []bucketRange
		var err error
		if r.width == widthHour {
			inner, err = tx.hourRanges(ctx, l, r.from, r.to, r.n)
		} else {
			inner, err = tx.bucketsAsRanges(ctx, l, r.width+1, bucketOf(r.width+1, r.from), bucketOf(r.width+1, r.to))
		}
		if err != nil {
			return position{}, err
		}
		return tx.seek(ctx, l, inner, offset)
	}
	lo, hi := l.bounds() // the counters and the rows disagree; verify finds it
	if l.page.Ascending {
		return position{start: hi, hour: -1}, nil
	}
	return position{start: lo, hour: -1}, nil
}

// narrow counts towards a position that is far from both ends of its range, and
// returns it in a shorter one. The rows of several pairs have to be put in order to
// be skipped, which takes longer than to count them. Where rows come evenly, as
// most do within an hour, the first guess leaves few.
func (tx *Tx) narrow(ctx context.Context, l *list, at position, limit int, pairs []filterPair) (position, error) {
	for range maxNarrowings {
		if min(at.skip, at.n-at.skip) <= farPages*int64(limit) || at.from == at.to {
			return at, nil
		}
		// Times are microseconds, and an hour's fit many times into 63 bits.
		part := till.Time(int64(at.to-at.from) / at.n * at.skip)
		near, rest := bucketRange{from: at.to - part, to: at.to}, bucketRange{from: at.from, to: at.to - part - 1}
		if l.page.Ascending {
			near, rest = bucketRange{from: at.from, to: at.from + part}, bucketRange{from: at.from + part + 1, to: at.to}
		}
		if err := tx.count(ctx, l, pairs, till.FirstID(near.from), till.LastID(near.to), func(_ int, n int64) { near.n += n }); err != nil {
			return at, err
		}
		rest.n = at.n - near.n
		if near.n <= at.skip {
			at = l.positionAfter(at.skip-near.n, rest)
		} else {
			at = l.positionAfter(at.skip, near)
		}
	}
	return at, nil
}

const (
	farPages      = 4 // how many pages may be skipped without counting first
	maxNarrowings = 4 // how often it is counted; rows that all come at one moment are skipped one by one
)

// count counts the rows of a list between two ids, or those of each of its
// pairs.
func (tx *Tx) count(ctx context.Context, l *list, pairs []filterPair, lo, hi till.ID, add func(pair int, n int64)) error {
	s := countSQL(l, pairs, lo, hi)
	return tx.db.Query(ctx, s.sql("list.count"), s.args, func(r db.Row) error {
		var pair int
		var n int64
		err := r.Scan(&pair, &n)
		add(pair, n)
		return err
	})
}

// countBetween counts the matching rows between two times of one hour, by the index
// that has them.
func (tx *Tx) countBetween(ctx context.Context, l *list, from, to till.Time) (n int64, err error) {
	var pairs []filterPair
	if l.ofPairs() {
		if pairs, err = tx.pairsFor(ctx, l, bucketOf(widthHour, from)); err != nil {
			return 0, err
		}
		if pairs = slices.DeleteFunc(slices.Clone(pairs), func(p filterPair) bool { return p.within <= 0 }); len(pairs) == 0 {
			return 0, nil
		}
	}
	err = tx.count(ctx, l, pairs, till.FirstID(from), till.LastID(to), func(_ int, some int64) { n += some })
	return n, err
}
