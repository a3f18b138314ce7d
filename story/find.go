package story

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"till"
	"till/store"
)

// The limits of a search.
const (
	MaxFound       = 50      // rows that are returned
	maxFoundRefs   = 200     // rows that are read: a mark of a phone may be another's too
	maxPrefixRows  = 500     // references that are read for those that begin alike
	maxScannedRows = 200_000 // rows that are scanned for what has no index yet
	recentPhones   = 10 * time.Minute
)

// Search is what is looked for. One of the texts is set, or the id, or the amounts.
type Search struct {
	Client    till.ID      // till.House: of all clients
	Phone     string       // in full form
	Reference string       // exact, then as a beginning
	Receipt   string       // the operator's
	ID        *till.ID     // of itself, its idempotency key, or an event about it
	Amounts   []till.Money // any of them; rows since Earliest are looked through
	Earliest  till.Time    // older rows are not found
}

// ErrTooManyRows says that an amount would have to be looked for in more rows than a
// search goes through: a later Earliest has fewer.
var ErrTooManyRows = errors.New("there are too many rows to look through")

// FindPayments returns the payments that a search means, newest first; exact matches
// of a reference come first. short says that there may be more.
func FindPayments(ctx context.Context, tx *store.Tx, key store.PhoneKey, q Search) (out []*store.PaymentRow, short bool, err error) {
	return find(ctx, tx, key, q, finder[*store.PaymentRow]{false, tx.Payments, tx.ListPayments, func(p *store.PaymentRow) (store.Ref, string, string, till.Time) {
		return store.Ref{Client: p.ClientID, ID: p.ID}, p.Phone, p.Reference, p.CreatedAt
	}})
}

// FindPayouts is FindPayments for payouts.
func FindPayouts(ctx context.Context, tx *store.Tx, key store.PhoneKey, q Search) (out []*store.PayoutRow, short bool, err error) {
	return find(ctx, tx, key, q, finder[*store.PayoutRow]{true, tx.Payouts, tx.ListPayouts, func(p *store.PayoutRow) (store.Ref, string, string, till.Time) {
		return store.Ref{Client: p.ClientID, ID: p.ID}, p.Phone, p.Reference, p.CreatedAt
	}})
}

// finder is what searches for payments and for payouts do differently.
type finder[R any] struct {
	payouts bool
	read    func(ctx context.Context, refs []store.Ref) (map[store.Ref]R, error)
	list    func(ctx context.Context, client till.ID, f store.PaymentFilter, page store.Page) ([]R, int64, error)
	facts   func(row R) (ref store.Ref, phone, reference string, at till.Time)
}

func find[R any](ctx context.Context, tx *store.Tx, key store.PhoneKey, q Search, f finder[R]) (out []R, short bool, err error) {
	if len(q.Amounts) > 0 {
		if err := checkRows(ctx, tx, q, f); err != nil {
			return nil, false, err
		}
	}
	refs, err := findRefs(ctx, tx, key, q, f.payouts)
	if err != nil {
		return nil, false, err
	}
	short = len(refs) >= maxFoundRefs
	rows, err := f.read(ctx, refs)
	if err != nil {
		return nil, false, err
	}
	for _, r := range rows {
		if _, phone, _, _ := f.facts(r); q.Phone == "" || phone == q.Phone {
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
	for _, amount := range q.Amounts {
		if q.Client == till.House {
			break // findRefs has them
		}
		some, n, err := f.list(ctx, q.Client, store.PaymentFilter{Amount: amount.Minor, Currency: amount.Currency, From: q.Earliest}, store.Page{Limit: MaxFound})
		if err != nil {
			return nil, false, err
		}
		out, short = append(out, some...), short || n > MaxFound
	}
	out = slices.DeleteFunc(out, func(r R) bool { _, _, _, at := f.facts(r); return at < q.Earliest })
	slices.SortFunc(out, func(a, b R) int {
		refA, _, referenceA, _ := f.facts(a)
		refB, _, referenceB, _ := f.facts(b)
		if exact := (referenceA == q.Reference) != (referenceB == q.Reference); exact && q.Reference != "" {
			return map[bool]int{true: -1, false: 1}[referenceA == q.Reference]
		}
		return slices.Compare(refB.ID[:], refA.ID[:])
	})
	out = slices.CompactFunc(out, func(a, b R) bool { refA, _, _, _ := f.facts(a); refB, _, _, _ := f.facts(b); return refA == refB })
	if len(out) > MaxFound {
		out, short = out[:MaxFound], true
	}
	return out, short, nil
}

// checkRows refuses to search for an amount in too many rows.
func checkRows[R any](ctx context.Context, tx *store.Tx, q Search, f finder[R]) error {
	var n int64
	if q.Client != till.House {
		var err error
		if _, n, err = f.list(ctx, q.Client, store.PaymentFilter{From: q.Earliest}, store.Page{}); err != nil {
			return err
		}
	} else {
		noun := map[bool]string{false: store.CountedPayments, true: store.CountedPayouts}[f.payouts]
		for _, mode := range []till.Mode{till.Live, till.Test} {
			sums, err := tx.Totals(ctx, store.Scope{Mode: mode}, [2]string{noun, noun}, store.HourOf(q.Earliest), store.HourOf(tx.Now()))
			if err != nil {
				return err
			}
			for _, s := range sums {
				n += s.N
			}
		}
	}
	if n > maxScannedRows {
		return ErrTooManyRows
	}
	return nil
}

// findRefs returns what the indexes have.
func findRefs(ctx context.Context, tx *store.Tx, key store.PhoneKey, q Search, payouts bool) (refs []store.Ref, err error) {
	add := func(column store.FindColumn, value any) {
		if err != nil {
			return
		}
		var more []store.Ref
		more, err = tx.RefsBy(ctx, q.Client, payouts, column, value, maxFoundRefs)
		refs = append(refs, more...)
	}
	switch {
	case q.ID != nil:
		add(store.FindID, q.ID[:])
		add(store.FindKey, q.ID[:])
		if err == nil {
			var about []store.Ref
			about, err = tx.SubjectsOfEvent(ctx, q.Client, *q.ID)
			refs = append(refs, about...)
		}
	case q.Receipt != "":
		add(store.FindReceipt, q.Receipt)
	case q.Reference != "":
		add(store.FindReference, q.Reference)
		if err == nil {
			var rows []store.ReferenceRow
			rows, err = tx.ReferencesFrom(ctx, q.Client, payouts, q.Reference, maxPrefixRows)
			for _, r := range rows {
				if strings.HasPrefix(r.Reference, q.Reference) && len(refs) < maxFoundRefs {
					refs = append(refs, r.Ref)
				}
			}
		}
	case q.Client == till.House && len(q.Amounts) > 0:
		for _, amount := range q.Amounts {
			var some []store.Ref
			if some, err = tx.RefsByAmount(ctx, payouts, amount, q.Earliest, maxFoundRefs); err != nil {
				return nil, err
			}
			refs = append(refs, some...)
		}
	case q.Phone != "":
		if refs, err = tx.RefsByPhone(ctx, q.Client, key.Mark(q.Phone), payouts, maxFoundRefs); err != nil || q.Client != till.House {
			break
		}
		var recent []store.Ref
		recent, err = tx.RecentByPhone(ctx, payouts, q.Phone, tx.Now().Add(-recentPhones), maxFoundRefs)
		refs = append(refs, recent...)
	}
	slices.SortFunc(refs, func(a, b store.Ref) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return slices.Compact(refs), err
}

// findUnindexed searches for a phone in the rows that the index does not have yet: those of
// the last minutes, as a rule. left says that there are too many of them.
func findUnindexed[R any](ctx context.Context, tx *store.Tx, q Search, f finder[R]) (out []R, left bool, err error) {
	cursor, err := tx.PhoneCursor(ctx, q.Client)
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
		if want.From, left = tx.Now().Add(-recentPhones), true; err != nil {
			return nil, false, err
		}
	}
	want.Phone = q.Phone
	out, _, err = f.list(ctx, q.Client, want, store.Page{Limit: MaxFound})
	return out, left, err
}
