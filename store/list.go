package store

import (
	"context"
	"slices"

	"till"
)

// Page says which part of a list is wanted.
type Page struct {
	Limit, Offset int
	Ascending     bool // oldest first; otherwise newest first
}

// PaymentFilter says which payments, or payouts, are wanted. Zero fields do
// not filter.
type PaymentFilter struct {
	Status            till.Status // of payouts: a till.PayoutStatus
	Method            string
	From, To          till.Time // both inclusive
	Reference         string
	ProviderReference string
	Key               *till.ID // any UUID is a key, the zero one too
}

// ListPayments returns a page of a client's payments and the exact number of
// all that match, both from this transaction's snapshot.
func (tx *Tx) ListPayments(ctx context.Context, client till.ID, f PaymentFilter, page Page) ([]*PaymentRow, int64, error) {
	return listRows(ctx, tx, nounPayment, "payments p", client, f, page, tx.Payments)
}

// ListPayouts is ListPayments for payouts, at the same cost.
func (tx *Tx) ListPayouts(ctx context.Context, client till.ID, f PaymentFilter, page Page) ([]*PayoutRow, int64, error) {
	return listRows(ctx, tx, nounPayout, "payouts p", client, f, page, tx.Payouts)
}

// listRows lists what has a method and a status.
func listRows[R any](ctx context.Context, tx *Tx, noun, table string, client till.ID, f PaymentFilter, page Page,
	read func(context.Context, []Ref) (map[Ref]R, error)) ([]R, int64, error) {
	l := list{
		counted: counted{client: client, noun: noun, a: f.Method, b: string(f.Status)},
		table:   table, columns: "p.id", from: f.From, to: f.To, page: page,
		indexedByEnd: noun == nounPayment && tx.s.indexesByEnd(),
	}
	l.where("p.method = ?", f.Method != "", f.Method)
	l.where(l.second("status", string(f.Status)), f.Status != "", string(f.Status))
	l.whereIndexed("p.reference = ?", f.Reference != "", f.Reference)
	l.whereIndexed("p.provider_reference = ?", f.ProviderReference != "", f.ProviderReference)
	if f.Key != nil {
		l.whereIndexed("p.idempotency_key = ?", true, f.Key.Bytes())
	}

	refs := make([]Ref, 0, page.Limit)
	total, err := tx.list(ctx, &l, func(r row) error {
		ref := Ref{Client: client}
		err := r.Scan(idDest(&ref.ID))
		refs = append(refs, ref)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	rows, err := read(ctx, refs)
	if err != nil {
		return nil, 0, err
	}
	out := make([]R, len(refs))
	for i, ref := range refs {
		out[i] = rows[ref]
	}
	return out, total, nil
}

// list is one question: conditions that counters know, conditions that only
// an index knows, a span of time and a page.
type list struct {
	counted
	table    string // called p
	columns  string // what is read of it; p.id is among them
	from, to till.Time
	page     Page
	conds    string
	args     []any
	indexed  bool // a condition that counters do not know
	indexedByEnd    bool // the index of kinds knows how a row has ended, and of an open one no more than that it is open
}

func (l *list) where(cond string, on bool, arg any) {
	if on {
		l.conds += " AND " + cond
		l.args = append(l.args, arg)
	}
}

func (l *list) whereIndexed(cond string, on bool, arg any) {
	l.where(cond, on, arg)
	l.indexed = l.indexed || on
}

// list reads a page and returns the exact total. With conditions that
// counters know, the cost does not grow with the number of rows: the total
// is a sum of counters, and a deep offset finds its bucket by counters before
// it reads rows.
func (tx *Tx) list(ctx context.Context, l *list, scan func(r row) error) (total int64, err error) {
	if !l.from.IsZero() && !l.to.IsZero() && l.from > l.to {
		return 0, nil
	}
	if l.indexed {
		return tx.listIndexed(ctx, l, scan)
	}
	spans, err := tx.bucketRanges(ctx, l)
	if err != nil {
		return 0, err
	}
	for _, s := range spans {
		total += s.n
	}
	if int64(l.page.Offset) >= total || l.page.Limit == 0 {
		return total, nil
	}
	at, err := tx.seek(ctx, l, spans, int64(l.page.Offset))
	if err != nil {
		return 0, err
	}
	// No row is looked for that the total says is not there.
	limit := int(min(int64(l.page.Limit), total-int64(l.page.Offset)))
	return total, tx.read(ctx, l, at, limit, scan)
}

// place is where a page begins: behind some rows of a stretch of time, in the
// page's direction.
type position struct {
	from, to   till.Time
	start, end till.ID // the first and the last id that may be in it
	beyond     till.ID // the next one
	skip       int64
	n          int64 // how many rows it has
	hour       int64 // the bucket that it is; -1 where it is none
}

// positionAfter returns the place behind some of the n rows between two times.
func (l *list) positionAfter(from, to till.Time, skip, n, hour int64) position {
	at := position{from: from, to: to, start: till.LastID(to), end: till.FirstID(from), beyond: till.LastID(from - 1), skip: skip, n: n, hour: hour}
	if l.page.Ascending {
		at.start, at.end, at.beyond = at.end, at.start, till.FirstID(to+1)
	}
	return at
}

// stretch is which rows are read, and how.
type idRange struct {
	lo, hi      till.ID
	skip, limit int64
	hour        int64 // the bucket that what is skipped lies in; -1 where it is none
	order       string
	backwards   bool // against the page's direction
}

// read reads rows in the page's direction. Where the page lies in the second
// half of its stretch, that half is read from its end: what is skipped is less.
func (tx *Tx) read(ctx context.Context, l *list, at position, limit int, scan func(r row) error) error {
	var kinds []filterPair
	if !l.indexed && l.noun != "" && (l.a == "") != (l.b == "") {
		var err error
		if kinds, err = tx.pairsFor(ctx, l, at.hour); err != nil || len(kinds) == 0 {
			return err
		}
		if at, err = tx.narrow(ctx, l, at, limit, kinds); err != nil {
			return err
		}
	}
	lo, hi := l.bounds()
	left := at.n - at.skip // from the page's first row on
	if left >= at.skip {
		return tx.readRange(ctx, l, kinds, l.forwards(idRange{lo: lo, hi: hi, skip: at.skip, limit: int64(limit), hour: at.hour}, at.start), scan)
	}
	take := min(int64(limit), left)
	back := idRange{lo: at.start, hi: at.end, skip: left - take, limit: take, hour: at.hour, order: "DESC", backwards: true}
	if !l.page.Ascending {
		back.lo, back.hi, back.order = at.end, at.start, "ASC"
	}
	if err := tx.readRange(ctx, l, kinds, back, scan); err != nil || take == int64(limit) {
		return err
	}
	return tx.readRange(ctx, l, kinds, l.forwards(idRange{lo: lo, hi: hi, limit: int64(limit) - take, hour: -1}, at.beyond), scan)
}

// forwards makes a stretch begin at an id and go in the page's direction.
func (l *list) forwards(s idRange, start till.ID) idRange {
	if l.page.Ascending {
		s.lo, s.order = start, "ASC"
	} else {
		s.hi, s.order = start, "DESC"
	}
	return s
}

// readRange reads rows, which it gives in the page's direction.
func (tx *Tx) readRange(ctx context.Context, l *list, kinds []filterPair, s idRange, scan func(r row) error) error {
	query, args := `SELECT `+l.columns+` FROM `+l.table+` WHERE p.client_id = ? AND p.id BETWEEN ? AND ?`+l.conds+` ORDER BY p.id `+s.order,
		append([]any{l.client[:], s.lo[:], s.hi[:]}, l.args...)
	if len(kinds) > 0 {
		query, args = l.pairsSQL(kinds, s)
	}
	query += ` LIMIT ? OFFSET ?`
	if s.backwards && s.order == "ASC" {
		query = `SELECT * FROM (` + query + `) AS page ORDER BY id DESC`
	} else if s.backwards {
		query = `SELECT * FROM (` + query + `) AS page ORDER BY id ASC`
	}
	return tx.rows(ctx, query, append(args, s.limit, s.skip), scan)
}

// listIndexed answers questions that an index narrows to a few rows.
func (tx *Tx) listIndexed(ctx context.Context, l *list, scan func(r row) error) (total int64, err error) {
	lo, hi := l.bounds()
	args := append([]any{l.client[:], lo[:], hi[:]}, l.args...)
	if _, err := tx.one(ctx, `SELECT count(*) FROM `+l.table+` WHERE p.client_id = ? AND p.id BETWEEN ? AND ?`+l.conds, args, &total); err != nil {
		return 0, err
	}
	start := hi
	if l.page.Ascending {
		start = lo
	}
	return total, tx.readRange(ctx, l, nil, l.forwards(idRange{lo: lo, hi: hi, skip: int64(l.page.Offset), limit: int64(l.page.Limit), hour: -1}, start), scan)
}

// bounds returns the ids between which everything wanted lies.
func (l *list) bounds() (lo, hi till.ID) {
	hi = till.LastID(1<<47*1000 - 1)
	if !l.from.IsZero() {
		lo = till.FirstID(l.from)
	}
	if !l.to.IsZero() {
		hi = till.LastID(l.to)
	}
	return lo, hi
}

// span is a stretch of time with the number of matching rows in it: a whole
// bucket of some width, or a ragged edge inside one hour.
type bucketRange struct {
	width    int // widthHour+1: a ragged edge, not a bucket
	bucket   int64
	from, to till.Time // both inclusive
	n        int64
}

const partialHour = widthHour + 1

// bucketRanges cuts the wanted stretch of time into whole buckets, as wide as fit,
// and at most two ragged edges, ascending, and counts each.
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

// splitIntoBuckets covers from..to: the whole buckets of a width in the middle, and what
// is left on either side by the next narrower width.
func (tx *Tx) splitIntoBuckets(ctx context.Context, l *list, width int, from, to till.Time) ([]bucketRange, error) {
	if from > to {
		return nil, nil
	}
	if width == partialHour {
		s := bucketRange{width: partialHour, from: from, to: to}
		lo, hi := till.FirstID(from), till.LastID(to)
		_, err := tx.one(ctx, `SELECT count(*) FROM `+l.table+` WHERE p.client_id = ? AND p.id BETWEEN ? AND ?`+l.conds,
			append([]any{l.client[:], lo[:], hi[:]}, l.args...), &s.n)
		return []bucketRange{s}, err
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
		out[i] = bucketRange{width: width, bucket: b.bucket, n: b.n,
			from: bucketStart(width, b.bucket), to: bucketStart(width, b.bucket+1) - 1}
	}
	return out, err
}

// seek finds where the page starts: the id at the edge of the narrowest
// bucket that holds the offset, and how many matching rows to skip inside it.
func (tx *Tx) seek(ctx context.Context, l *list, spans []bucketRange, offset int64) (position, error) {
	if !l.page.Ascending {
		slices.Reverse(spans)
	}
	for _, s := range spans {
		if offset >= s.n {
			offset -= s.n
			continue
		}
		if s.width >= widthHour {
			hour := int64(-1)
			if s.width == widthHour {
				hour = s.bucket
			}
			return l.positionAfter(s.from, s.to, offset, s.n, hour), nil
		}
		inner, err := tx.bucketsAsRanges(ctx, l, s.width+1, bucketOf(s.width+1, s.from), bucketOf(s.width+1, s.to))
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
