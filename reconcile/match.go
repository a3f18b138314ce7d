package reconcile

import (
	"context"
	"math/big"
	"slices"

	"till"
	"till/store"
	"till/store/matching"
)

// compare finds the lines about a payment or payout and judges them. With old
// set, one without a line is passed over.
func (r *reconciler) compare(c *matching.ReconcileRow, old bool) error {
	if c.Connection != r.Connection {
		return nil
	}
	r.report.Rows++
	r.found = r.found[:0]
	for _, kind := range []int{byReference, byExternalID} {
		r.found = r.lines.indexes[kind].find(key(c.Reference), r.found)
		r.found = r.lines.indexes[kind].find(key(c.ID), r.found)
		r.found = r.lines.indexes[kind].find(tailKey(c.ID), r.found)
	}
	r.keepMatching(c)
	if len(r.found) == 0 && c.Receipt != "" {
		r.found = r.lines.indexes[byReceipt].find(receiptKey(c.Receipt), r.found)
		r.keepMatching(c)
		wait := false
		for _, i := range r.found {
			if l := r.lines.at(i); l.keys[byReference] != (key{}) || l.keys[byExternalID] != (key{}) {
				// It names another, who has not come by yet, or names nothing of ours.
				l.flags |= deferred
				wait = true
			}
		}
		if wait {
			r.deferred = append(r.deferred, store.Ref{Client: c.Client, ID: c.ID})
			return nil
		}
	}
	if len(r.found) == 0 && old {
		return nil
	}
	return r.classifyFound(c)
}

// keepMatching leaves the lines that go the payment's or payout's way, in the order
// of the file.
func (r *reconciler) keepMatching(c *matching.ReconcileRow) {
	way := incoming
	if c.Kind == till.SubjectPayout {
		way = outgoing
	}
	r.found = slices.DeleteFunc(r.found, func(i uint32) bool {
		l := r.lines.at(i)
		return l.flags&outside != 0 || l.direction != anyDirection && l.direction != way
	})
	slices.Sort(r.found)
	r.found = slices.Compact(r.found)
}

// classifyFound judges the lines that were found for a payment or payout, or that
// there are none.
func (r *reconciler) classifyFound(c *matching.ReconcileRow) error {
	if len(r.found) == 0 {
		if v, said := classifyUnmatched(c, r.report.From, r.report.To, till.Time(r.Slack.Microseconds())); said {
			return r.addFinding(v, 0, c)
		}
		return nil
	}
	var b otherLines
	var first *record // that says success
	for _, i := range r.found {
		switch l := r.lines.at(i); {
		case l.status == lineFailed:
			b.failed = l.number
		case l.status == lineReversed:
			b.reversed = l.number
		case l.status == lineSuccess && first == nil && l.flags&claimed == 0:
			first = l
		}
	}
	for _, i := range r.found {
		l := r.lines.at(i)
		if l.flags&claimed != 0 {
			v := classification{ReceiptUsedTwice, "the line is about another payment or payout, too", openACase}
			if err := r.addFinding(v, i+1, c); err != nil {
				return err
			}
			continue
		}
		l.flags |= claimed
		r.claimed++
		b.success, b.sameCode, b.twin = 0, false, 0
		if first != nil && first != l {
			b.success, b.sameCode = first.number, first.keys[byReceipt] == l.keys[byReceipt]
		}
		if t, found := r.lines.twin(i); found && l.status == lineSuccess {
			b.twin = r.lines.at(t).number
		}
		if err := r.addFinding(classify(l, r.lines.money(l), c, b), i+1, c); err != nil {
			return err
		}
	}
	return nil
}

// addFinding counts a verdict, plans its remedy and reports it. line is 1 +
// the record, 0 for none.
func (r *reconciler) addFinding(v classification, line uint32, c *matching.ReconcileRow) error {
	f := &r.finding
	*f = Finding{Class: v.class, Why: v.why, Remedy: v.remedy, Ours: c}
	var said, ours int64
	currency := ""
	if c != nil {
		currency = c.Amount.Currency
		if ours = c.Booked.Minor; c.Booked.Currency != c.Amount.Currency {
			ours = 0 // nothing, or a fault that the class names
		}
	}
	if v.remedy != "" && r.Plan {
		p := planned{line: line, class: v.class, remedy: v.remedy}
		if c != nil {
			p.client, p.id, p.kind = c.Client, c.ID, c.Kind
		}
		r.report.plan = append(r.report.plan, p)
	}
	if line == 0 {
		return r.emit(f, currency, 0, ours)
	}
	l := r.lines.at(line - 1)
	f.Line, f.Said, f.SaidStatus, f.SaidAt = l.number, r.lines.money(l), l.status.String(), l.at
	switch l.status {
	case lineSuccess:
		said = l.amount
	case lineReversed:
		said = -l.amount
	}
	switch {
	case v.class == NoMoney:
		said, ours = 0, 0
	case v.class == Matched && l.status == lineReversed:
		ours = -ours
	case v.class == ReceiptUsedTwice || v.class == PaidTwice:
		ours = 0 // the first line has it
	}
	if c != nil && f.Said.Currency != currency && ours != 0 {
		r.sum(v.class, currency).add(0, 0, ours)
		ours = 0
	}
	if r.Found != nil && (r.All || v.class.Difference() || v.class == Elsewhere) {
		words, err := r.parser.reread(r.File, l, r.buffer)
		if err != nil {
			return err
		}
		f.Reference, f.ExternalID, f.Receipt = words.reference, words.externalID, words.receipt
	}
	return r.emit(f, f.Said.Currency, said, ours)
}

// emit counts a finding and passes it on.
func (r *reconciler) emit(f *Finding, currency string, said, ours int64) error {
	r.sum(f.Class, currency).add(1, said, ours)
	if r.Found == nil || !r.All && !f.Class.Difference() && f.Class != Elsewhere {
		return nil
	}
	return r.Found(f)
}

func (r *reconciler) sum(class Class, currency string) *ClassSum {
	for _, s := range r.report.Sums {
		if s.Class == class && s.Currency == currency {
			return s
		}
	}
	s := &ClassSum{Class: class, Currency: currency}
	r.report.Sums = append(r.report.Sums, s)
	return s
}

// add adds to a sum, which a million lines of fifteen digits do not fit into
// an int64.
func (s *ClassSum) add(count, operator, ours int64) {
	s.Count += count
	var n big.Int
	s.Operator.Add(&s.Operator, n.SetInt64(operator))
	s.Ours.Add(&s.Ours, n.SetInt64(ours))
}

// unmatched reports whether nothing was found for a line yet.
func (l *record) unmatched() bool { return l.flags&(claimed|deferred|outside) == 0 }

// findByLine searches for what lines name that was made at another time: by key if
// they are few, and otherwise by walking all that was made before.
func (r *reconciler) findByLine(ctx context.Context) error {
	var left []uint32
	for i := range uint32(r.lines.n) {
		if l := r.lines.at(i); l.unmatched() && l.keys != ([3]key{}) {
			left = append(left, i)
		}
	}
	if len(left)*len(r.clients) > r.maxLookups {
		for _, client := range r.clients {
			if err := r.walk(ctx, client, till.ID{}, r.first, true); err != nil {
				return err
			}
		}
		return nil
	}
	for chunk := range slices.Chunk(left, min(lookupSlice, r.slice)) {
		sought := make([]matching.StatementKey, 0, len(chunk))
		for _, i := range chunk {
			line, err := r.parser.reread(r.File, r.lines.at(i), r.buffer)
			if err != nil {
				return err
			}
			s := matching.StatementKey{Receipt: line.receipt}
			for _, k := range line.keys[:byReceipt] {
				if k != (key{}) && !k.isTail() {
					s.References = append(s.References, till.ID(k))
				}
			}
			sought = append(sought, s)
		}
		for _, client := range r.clients {
			err := r.view(ctx, func(tx *store.Tx) error {
				refs, err := matching.FindByStatement(ctx, tx, r.Connection, client, sought)
				if err != nil {
					return err
				}
				r.rows, err = matching.ReconcileRowsByID(ctx, tx, r.Connection, r.unseen(refs), r.rows[:0])
				return err
			})
			if err != nil {
				return err
			}
			if err := r.compareRows(); err != nil {
				return err
			}
		}
		r.progress(0)
	}
	return nil
}

// matchDeferred comes back to those whose receipt is on a line with a
// reference that is not theirs: by now it is known whether it is another's.
func (r *reconciler) matchDeferred(ctx context.Context) error {
	for chunk := range slices.Chunk(r.deferred, r.slice) {
		err := r.view(ctx, func(tx *store.Tx) (err error) {
			r.rows, err = matching.ReconcileRowsByID(ctx, tx, r.Connection, chunk, r.rows[:0])
			return err
		})
		if err != nil {
			return err
		}
		for i := range r.rows {
			c := &r.rows[i]
			r.found = r.lines.indexes[byReceipt].find(receiptKey(c.Receipt), r.found[:0])
			r.keepMatching(c)
			if err := r.classifyFound(c); err != nil {
				return err
			}
		}
	}
	return nil
}
