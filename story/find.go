package story

import (
	"context"
	"slices"
	"strings"
	"time"

	"till"
	"till/store"
	"till/store/lookup"
)

// The limits of a search.
const (
	maxFound       = 50      // rows that are returned
	maxFoundRefs   = 200     // rows that are read for one meaning: a mark may be another's too
	maxTextRefs    = 80      // of each piece of a text
	maxPrefixRows  = 500     // references that are read for those that begin alike
	maxScannedRows = 200_000 // rows that are scanned for a phone that the index does not have yet
	newestRows     = 300     // the newest rows are always compared
	newestPage     = 500     // and younger ones than the index of words has, by pages,
	maxNewestRows  = 5_000   // up to so many
	recentRows     = 10 * time.Minute
)

// Search is what is looked for. A row is found by any of what is set.
type Search struct {
	Client    till.ID      // till.House: of all clients
	Text      string       // any part of a reference or a receipt, words of the description, the end of a phone, of an id its beginning
	Phone     string       // in full form
	Reference string       // exact, then as a beginning
	Receipt   string       // the operator's, in capitals or not
	ID        *till.ID     // of itself, its idempotency key, or an event about it
	Amounts   []till.Money // any of them
	Earliest  till.Time    // older rows are not found
}

// FindPayments returns the payments that a search means, newest first; exact matches
// of a reference come first. short says that there may be more.
func FindPayments(ctx context.Context, tx *store.Tx, key lookup.PhoneKey, q Search) (out []*store.PaymentRow, short bool, err error) {
	return find(ctx, tx, key, q, finder[*store.PaymentRow]{false, tx.Payments, tx.ListPayments, func(p *store.PaymentRow) *lookup.WordRow {
		return &lookup.WordRow{Ref: store.Ref{Client: p.ClientID, ID: p.ID}, Phone: p.Phone, Reference: p.Reference, Receipt: p.ProviderReference, Amount: p.Amount, Document: p.Document}
	}})
}

// FindPayouts is FindPayments for payouts.
func FindPayouts(ctx context.Context, tx *store.Tx, key lookup.PhoneKey, q Search) (out []*store.PayoutRow, short bool, err error) {
	return find(ctx, tx, key, q, finder[*store.PayoutRow]{true, tx.Payouts, tx.ListPayouts, func(p *store.PayoutRow) *lookup.WordRow {
		return &lookup.WordRow{Ref: store.Ref{Client: p.ClientID, ID: p.ID}, Phone: p.Phone, Reference: p.Reference, Receipt: p.ProviderReference, Amount: p.Amount, Document: p.Document}
	}})
}

// finder is what searches for payments and for payouts do differently.
type finder[R any] struct {
	payouts bool
	read    func(ctx context.Context, refs []store.Ref) (map[store.Ref]R, error)
	list    func(ctx context.Context, client till.ID, f store.PaymentFilter, page store.Page) ([]R, int64, error)
	row     func(row R) *lookup.WordRow
}

func find[R any](ctx context.Context, tx *store.Tx, key lookup.PhoneKey, q Search, f finder[R]) (out []R, short bool, err error) {
	text := lookup.NewText(q.Text)
	sure, maybe, short, err := findRefs(ctx, tx, key, q, f.payouts, text)
	if err != nil {
		return nil, false, err
	}
	newest, left, err := findNewest(ctx, tx, q, f.payouts, text)
	if err != nil {
		return nil, false, err
	}
	sure, short = append(sure, newest...), short || left
	rows, err := f.read(ctx, unique(append(maybe, sure...)))
	if err != nil {
		return nil, false, err
	}
	known := make(map[store.Ref]bool, len(sure))
	for _, ref := range sure {
		known[ref] = true
	}
	for ref, r := range rows {
		if w := f.row(r); known[ref] || q.Phone != "" && w.Phone == q.Phone || slices.Contains(q.Amounts, w.Amount) || text.Finds(w) {
			out = append(out, r)
		}
	}
	if q.Phone != "" && q.Client != till.House {
		recent, left, err := findUnindexed(ctx, tx, q, f)
		if err != nil {
			return nil, false, err
		}
		out, short = append(out, recent...), short || left
	}
	out = slices.DeleteFunc(out, func(r R) bool { return f.row(r).ID.Time() < q.Earliest })
	exact := func(w *lookup.WordRow) bool {
		return q.Reference != "" && w.Reference == q.Reference || text.IsExact(w.Reference) || text.IsExact(w.Receipt)
	}
	slices.SortFunc(out, func(a, b R) int {
		x, y := f.row(a), f.row(b)
		if first := exact(x); first != exact(y) {
			return map[bool]int{true: -1, false: 1}[first]
		}
		return slices.Compare(y.ID[:], x.ID[:])
	})
	out = slices.CompactFunc(out, func(a, b R) bool { return f.row(a).Ref == f.row(b).Ref })
	if len(out) > maxFound {
		out, short = out[:maxFound], true
	}
	return out, short, nil
}

// unique returns each of some rows once, in the order of their ids.
func unique(refs []store.Ref) []store.Ref {
	slices.SortFunc(refs, func(a, b store.Ref) int {
		if a.ID != b.ID {
			return slices.Compare(a.ID[:], b.ID[:])
		}
		return slices.Compare(a.Client[:], b.Client[:])
	})
	return slices.Compact(refs)
}

// findRefs returns what the indexes have: what is sure, and what has to be compared.
func findRefs(ctx context.Context, tx *store.Tx, key lookup.PhoneKey, q Search, payouts bool, text lookup.Text) (sure, maybe []store.Ref, short bool, err error) {
	add := func(to *[]store.Ref, more []store.Ref, e error) {
		*to, short = append(*to, more...), short || len(more) >= maxTextRefs
		if err == nil {
			err = e
		}
	}
	by := func(column lookup.FindColumn, value any) {
		if err == nil {
			more, e := lookup.RefsBy(ctx, tx, q.Client, payouts, column, value, maxFoundRefs)
			add(&sure, more, e)
		}
	}
	if q.ID != nil {
		by(lookup.FindID, q.ID[:])
		by(lookup.FindKey, q.ID[:])
		about, e := lookup.SubjectsOfEvent(ctx, tx, q.Client, *q.ID)
		add(&sure, about, e)
	}
	for _, receipt := range spellings(q.Receipt) {
		by(lookup.FindReceipt, receipt)
	}
	references := spellings(q.Text)
	if q.Reference != "" {
		references = []string{q.Reference}
	}
	for _, reference := range references {
		by(lookup.FindReference, reference)
		rows, e := lookup.ReferencesFrom(ctx, tx, q.Client, payouts, reference, maxPrefixRows)
		var begin []store.Ref
		for _, r := range rows {
			if strings.HasPrefix(r.Reference, reference) && len(begin) < maxFoundRefs {
				begin = append(begin, r.Ref)
			}
		}
		add(&sure, begin, e)
	}
	for _, amount := range q.Amounts {
		refs, e := lookup.RefsByAmount(ctx, tx, key, q.Client, payouts, amount, maxTextRefs)
		add(&maybe, refs, e)
	}
	if q.Text != "" {
		refs, e := lookup.RefsByText(ctx, tx, key, q.Client, payouts, text, maxTextRefs)
		add(&maybe, refs, e)
	}
	if q.Phone != "" {
		refs, e := lookup.RefsByPhone(ctx, tx, q.Client, key.Mark(q.Phone), payouts, maxFoundRefs)
		add(&maybe, refs, e)
		if q.Client == till.House {
			refs, e = lookup.RecentByPhone(ctx, tx, payouts, q.Phone, tx.Now().Add(-recentRows), maxFoundRefs)
			add(&maybe, refs, e)
		}
	}
	return sure, maybe, short, err
}

// spellings returns a receipt or reference as it was typed, in capitals and in small letters: most are written in one of them.
func spellings(receipt string) (out []string) {
	receipt = strings.TrimSpace(receipt)
	for _, s := range []string{receipt, strings.ToUpper(receipt), strings.ToLower(receipt)} {
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// findNewest compares the newest rows, and all that the index of words does not have yet: those of the last
// minutes, as a rule. left says that there are too many of them.
func findNewest(ctx context.Context, tx *store.Tx, q Search, payouts bool, text lookup.Text) (found []store.Ref, left bool, err error) {
	if q.Text == "" && len(q.Amounts) == 0 {
		return nil, false, nil
	}
	each := func(r *lookup.WordRow) {
		if len(found) <= maxFound && (slices.Contains(q.Amounts, r.Amount) || text.Finds(r)) {
			found = append(found, r.Ref)
		}
	}
	if q.Client == till.House {
		_, n, err := lookup.EachNewest(ctx, tx, q.Client, payouts, till.FirstID(tx.Now().Add(-recentRows)), till.ID{}, maxNewestRows, each)
		return found, n == maxNewestRows, err
	}
	cursor, err := lookup.ReadWordCursor(ctx, tx, q.Client)
	if err != nil {
		return nil, false, err
	}
	indexed := cursor.Payment
	if payouts {
		indexed = cursor.Payout
	}
	before, limit := till.LastID(1<<47*1000-1), newestRows
	for seen := 0; seen < maxNewestRows && len(found) <= maxFound; limit = newestPage {
		last, n, err := lookup.EachNewest(ctx, tx, q.Client, payouts, till.FirstID(q.Earliest), before, limit, each)
		if err != nil || n < limit || slices.Compare(last[:], indexed[:]) <= 0 {
			return found, false, err
		}
		before, seen = last, seen+n
	}
	return found, true, nil
}

// findUnindexed searches for a phone in the rows that the index does not have yet: those of
// the last minutes, as a rule. left says that there are too many of them.
func findUnindexed[R any](ctx context.Context, tx *store.Tx, q Search, f finder[R]) (out []R, left bool, err error) {
	cursor, err := lookup.ReadPhoneCursor(ctx, tx, q.Client)
	if err != nil {
		return nil, false, err
	}
	last := cursor.Payment
	if f.payouts {
		last = cursor.Payout
	}
	want := store.PaymentFilter{From: max(last.Time(), q.Earliest)}
	if _, n, err := f.list(ctx, q.Client, want, store.Page{}); err != nil || n > maxScannedRows {
		// While an old database's index is being filled, only what is recent.
		if want.From, left = tx.Now().Add(-recentRows), true; err != nil {
			return nil, false, err
		}
	}
	want.Phone = q.Phone
	out, _, err = f.list(ctx, q.Client, want, store.Page{Limit: maxFound})
	return out, left, err
}
