package store

import (
	"context"

	"till"
	"till/internal/db"
)

// Page says which part of a list is wanted.
type Page struct {
	Limit, Offset int
	Ascending     bool // oldest first; otherwise newest first
}

// PaymentFilter says which payments, payouts or refunds are wanted. Zero fields do
// not filter.
type PaymentFilter struct {
	Status            till.Status // of payouts: a till.PayoutStatus
	Method            string
	From, To          till.Time // both inclusive
	Reference         string
	ProviderReference string
	Key               *till.ID // any UUID is a key, the zero one too
	PaymentID         till.ID  // of refunds

	// Phone, Connection, and Amount in minor units of Currency, have no index: every
	// row of the range is read, so the caller bounds the range.
	Phone      string
	Connection string
	Amount     int64
	Currency   string
}

// Scans reports whether the filter has something that no index knows.
func (f *PaymentFilter) Scans() bool { return f.Phone != "" || f.Connection != "" || f.Amount != 0 }

// ListPayments returns a page of a client's payments and the exact number of
// all that match, both from this transaction's snapshot.
func (tx *Tx) ListPayments(ctx context.Context, client till.ID, f PaymentFilter, page Page) ([]*PaymentRow, int64, error) {
	return listRows(ctx, tx, countPayments, client, f, page, tx.Payments)
}

// ListPayouts is ListPayments for payouts, at the same cost.
func (tx *Tx) ListPayouts(ctx context.Context, client till.ID, f PaymentFilter, page Page) ([]*PayoutRow, int64, error) {
	return listRows(ctx, tx, countPayouts, client, f, page, tx.Payouts)
}

// ListRefunds is ListPayouts for refunds.
func ListRefunds(ctx context.Context, tx *Tx, client till.ID, f PaymentFilter, page Page) ([]*PayoutRow, int64, error) {
	return listRows(ctx, tx, countRefunds, client, f, page, tx.Payouts)
}

// list is the filter as a question.
func (f *PaymentFilter) list(byEnd bool, table string, client till.ID, page Page) *list {
	l := newList(byEnd, counted{client: client, table: table, a: f.Method, b: string(f.Status)}, "p.id", f.From, f.To, page)
	if l.fewColumns = "p.id, p.method, p.status, p.phone, p.connection, p.amount, p.currency"; l.indexedByEnd {
		l.fewColumns += ", p.ended"
	}
	l.whereIndexed("p.reference = ", f.Reference != "", f.Reference)
	l.whereIndexed("p.provider_reference = ", f.ProviderReference != "", f.ProviderReference)
	if f.Key != nil {
		l.whereIndexed("p.idempotency_key = ", true, f.Key.Bytes())
	}
	if !f.PaymentID.IsZero() {
		l.whereIndexed("p.payment_id = ", true, f.PaymentID.Bytes())
	}
	l.whereScanned("p.phone = ", f.Phone != "", f.Phone)
	l.whereScanned("p.connection = ", f.Connection != "", f.Connection)
	l.whereScanned("p.amount = ", f.Amount != 0, f.Amount)
	l.whereScanned("p.currency = ", f.Currency != "", f.Currency)
	return l
}

// listRows lists what has a method and a status.
func listRows[R any](ctx context.Context, tx *Tx, table string, client till.ID, f PaymentFilter, page Page,
	read func(context.Context, []Ref) (map[Ref]R, error)) ([]R, int64, error) {
	l := f.list(tx.s.indexesByEnd(), table, client, page)
	refs := make([]Ref, 0, page.Limit)
	total, err := tx.list(ctx, l, func(r db.Row) error {
		ref := Ref{Client: client}
		err := r.Scan(db.ID(&ref.ID))
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
// an index knows, a range of time and a page.
type list struct {
	counted
	columns      string // what is read; p.id is among them
	from, to     till.Time
	page         Page
	conds        []condition
	indexed      bool                   // a condition that counters do not know
	few          []condition            // of them, those whose few rows an index finds
	fewColumns   string                 // what is read of these: what the other conditions and columns need
	pairs        map[int64][]filterPair // that were read, by hour
	indexedByEnd bool                   // the index of pairs has the status in which a row ended, and of an open row only that it is open
}

// newList returns the list of what is counted, between two times. byEnd says that
// the index of payments is by the status in which they ended.
func newList(byEnd bool, c counted, columns string, from, to till.Time, page Page) *list {
	l := &list{counted: c, columns: columns, from: from, to: to, page: page, indexedByEnd: c.table == countPayments && byEnd}
	if _, column, _ := countTable(c.table); c.a != "" {
		l.conds = append(l.conds, condition{"p." + column + " = ", c.a})
	}
	if c.b != "" {
		l.conds = append(l.conds, l.whereB(c.b))
	}
	return l
}

// whereIndexed adds a condition that an index narrows to a few rows.
func (l *list) whereIndexed(text string, on bool, arg any) {
	if on {
		l.few = append(l.few, condition{text, arg})
		l.indexed = true
	}
}

// whereScanned adds a condition for which each row of the range is looked at.
func (l *list) whereScanned(text string, on bool, arg any) {
	if on {
		l.conds = append(l.conds, condition{text, arg})
		l.indexed = true
	}
}

// ofPairs reports whether the rows are those of several pairs, and not of all
// pairs.
func (l *list) ofPairs() bool { return !l.indexed && (l.a == "") != (l.b == "") }

// list reads a page and returns the exact total. If counters know all conditions,
// the cost does not grow with the number of rows. The total is a sum of counters,
// and counters find the bucket of a deep offset before rows are read.
func (tx *Tx) list(ctx context.Context, l *list, scan func(r db.Row) error) (total int64, err error) {
	if !l.from.IsZero() && !l.to.IsZero() && l.from > l.to {
		return 0, nil
	}
	if l.indexed {
		return tx.listIndexed(ctx, l, scan)
	}
	ranges, err := tx.bucketRanges(ctx, l)
	if err != nil {
		return 0, err
	}
	for _, r := range ranges {
		total += r.n
	}
	if int64(l.page.Offset) >= total || l.page.Limit == 0 {
		return total, nil
	}
	at, err := tx.seek(ctx, l, ranges, int64(l.page.Offset))
	if err != nil {
		return 0, err
	}
	// The total says how many rows there are; no more are read.
	limit := int(min(int64(l.page.Limit), total-int64(l.page.Offset)))
	return total, tx.read(ctx, l, at, limit, scan)
}

// position is where a page begins: behind some rows of a range of time, in the
// page's direction.
type position struct {
	from, to   till.Time
	start, end till.ID // the first and the last id that may be in it
	beyond     till.ID // the next one
	skip       int64
	n          int64 // how many rows it has
	hour       int64 // the hour that it lies in; -1 where it lies in none
}

// positionAfter returns the position behind some of the rows of a range.
func (l *list) positionAfter(skip int64, r bucketRange) position {
	at := position{from: r.from, to: r.to, start: till.LastID(r.to), end: till.FirstID(r.from), beyond: till.LastID(r.from - 1), skip: skip, n: r.n, hour: bucketOf(widthHour, r.from)}
	if l.page.Ascending {
		at.start, at.end, at.beyond = at.end, at.start, till.FirstID(r.to+1)
	}
	return at
}

// idRange is which rows are read, and how.
type idRange struct {
	lo, hi      till.ID
	skip, limit int64
	hour        int64 // the hour that what is skipped lies in; -1 where nothing is skipped
	order       string
	backwards   bool // against the page's direction
}

// read reads rows in the page's direction. Where the page lies in the second
// half of its range, that half is read from its end: what is skipped is less.
func (tx *Tx) read(ctx context.Context, l *list, at position, limit int, scan func(r db.Row) error) error {
	var pairs []filterPair
	if l.ofPairs() {
		var err error
		if pairs, err = tx.pairsFor(ctx, l, at.hour); err != nil || len(pairs) == 0 {
			return err
		}
		if at, err = tx.narrow(ctx, l, at, limit, pairs); err != nil {
			return err
		}
	}
	lo, hi := l.bounds()
	left := at.n - at.skip // from the page's first row on
	if left >= at.skip {
		return tx.readRange(ctx, l, pairs, l.forwards(idRange{lo: lo, hi: hi, skip: at.skip, limit: int64(limit), hour: at.hour}, at.start), scan)
	}
	take := min(int64(limit), left)
	back := idRange{lo: at.start, hi: at.end, skip: left - take, limit: take, hour: at.hour, order: "DESC", backwards: true}
	if !l.page.Ascending {
		back.lo, back.hi, back.order = at.end, at.start, "ASC"
	}
	if err := tx.readRange(ctx, l, pairs, back, scan); err != nil || take == int64(limit) {
		return err
	}
	return tx.readRange(ctx, l, pairs, l.forwards(idRange{lo: lo, hi: hi, limit: int64(limit) - take, hour: -1}, at.beyond), scan)
}

// forwards makes a range begin at an id and go in the page's direction.
func (l *list) forwards(r idRange, start till.ID) idRange {
	if l.page.Ascending {
		r.lo, r.order = start, "ASC"
	} else {
		r.hi, r.order = start, "DESC"
	}
	return r
}

// readRange reads rows, which it gives in the page's direction.
func (tx *Tx) readRange(ctx context.Context, l *list, pairs []filterPair, r idRange, scan func(r db.Row) error) error {
	if tx.db.Dialect() == db.Citus {
		l.columns = db.OfClient(l.columns, "$1") // the first argument of each statement of a list
	}
	s := pageSQL(l, pairs, r)
	return tx.db.Query(ctx, s.sql("list.page"), s.args, scan)
}

// listIndexed answers questions that an index narrows to a few rows.
func (tx *Tx) listIndexed(ctx context.Context, l *list, scan func(r db.Row) error) (total int64, err error) {
	lo, hi := l.bounds()
	if err := tx.count(ctx, l, nil, lo, hi, func(_ int, n int64) { total += n }); err != nil {
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
