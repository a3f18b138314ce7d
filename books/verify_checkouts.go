package books

import (
	"context"
	"errors"
	"slices"

	"till"
	"till/collect"
	"till/store"
	"till/store/checkouts"
)

// askedPayment is a payment that says within which checkout it was asked.
type askedPayment struct {
	id, checkout till.ID
	n            int
}

// noteAsk remembers a payment that was asked within a checkout, for verifyCheckouts.
func (v *verifier) noteAsk(id till.ID, document []byte) {
	if checkout, n, ok := collect.AskOf(document); ok {
		v.asked = append(v.asked, askedPayment{id, checkout, n})
	}
}

// verifyCheckouts proves I24 and I25: the asks of a checkout are numbered without gaps and at
// most one of them is live, a payment and its ask name each other, and a checkout is paid by the
// first ask that was credited. It comes after the payments.
func (v *verifier) verifyCheckouts(ctx context.Context) error {
	err := v.view(ctx, func(tx *store.Tx) error {
		ids, err := checkouts.StrayAsks(ctx, tx, v.client, v.o.MaxProblems)
		for _, id := range ids {
			v.problem("I24", id, "there are asks of a checkout that is not there")
		}
		return err
	})
	for last := (till.ID{}); err == nil; {
		var slice []*checkouts.Row
		var asks map[store.Ref][]till.Ask
		var cursor int64
		err = v.view(ctx, func(tx *store.Tx) (err error) {
			if cursor, _, err = checkouts.ReadCursor(ctx, tx, v.client); err != nil {
				return err
			}
			if slice, err = checkouts.Each(ctx, tx, v.client, last, v.o.Slice); err != nil {
				return err
			}
			asks, err = checkouts.AsksOf(ctx, tx, refsOf(slice))
			return err
		})
		if err != nil || len(slice) == 0 {
			break
		}
		for _, row := range slice {
			last = row.ID
			v.verifyAsks(row, asks[row.Ref()])
			v.verifyPaid(row, asks[row.Ref()], cursor)
		}
	}
	for len(v.asked) > 0 && err == nil {
		n := min(len(v.asked), v.o.Slice)
		err = v.verifyAsked(ctx, v.asked[:n])
		v.asked = v.asked[n:]
	}
	return err
}

func refsOf(rows []*checkouts.Row) []store.Ref {
	refs := make([]store.Ref, len(rows))
	for i, row := range rows {
		refs[i] = row.Ref()
	}
	return refs
}

// verifyAsks proves what I24 says of one checkout.
func (v *verifier) verifyAsks(row *checkouts.Row, asks []till.Ask) {
	live := 0
	numbered := len(asks) == row.Asks
	for i := range asks {
		numbered = numbered && asks[i].N == i+1
		if stand := asks[i].Stand(); stand == till.AskLive || stand == till.AskUnsent {
			live++
		}
		v.check(asks[i].Refused == "" || asks[i].PaymentID.IsZero(), "I24", row.ID, "its ask %d was refused and has the payment %s", asks[i].N, asks[i].PaymentID)
	}
	v.check(numbered, "I24", row.ID, "its %d asks are not numbered from 1 to %d", len(asks), row.Asks)
	v.check(live <= 1, "I24", row.ID, "%d of its asks are live", live)
}

// verifyPaid proves I25, of what was followed up to the cursor: states move behind the commits.
func (v *verifier) verifyPaid(row *checkouts.Row, asks []till.Ask, cursor int64) {
	var credited []till.Ask
	for _, a := range asks {
		if a.Stand() == till.AskCredited && a.Credit <= cursor {
			credited = append(credited, a)
		}
	}
	slices.SortFunc(credited, func(a, b till.Ask) int { return int(a.Credit - b.Credit) })
	first := till.ID{}
	if len(credited) > 0 {
		first = credited[0].PaymentID
	}
	v.check((row.State == till.CheckoutPaid) == (len(credited) > 0), "I25", row.ID, "it is %s, and %d of its asks were credited", row.State, len(credited))
	v.check(row.PaymentID == first, "I25", row.ID, "it is said to be paid by %s, and the first that was credited is %s", row.PaymentID, first)
	v.check(row.Overpaid == (len(credited) > 1), "I25", row.ID, "overpaid is %t, and %d of its asks were credited", row.Overpaid, len(credited))
}

// verifyAsked proves the rest of I24: who says that it was asked within a checkout is an ask of
// it. A checkout that is not there was lost with a database, and its client has not made it again.
func (v *verifier) verifyAsked(ctx context.Context, asked []askedPayment) error {
	return v.view(ctx, func(tx *store.Tx) error {
		refs := make([]store.Ref, len(asked))
		for i, a := range asked {
			refs[i] = store.Ref{Client: v.client, ID: a.checkout}
		}
		asks, err := checkouts.AsksOf(ctx, tx, store.SortedRefs(refs))
		if err != nil {
			return err
		}
		for i, a := range asked {
			of := asks[refs[i]]
			if len(of) == 0 {
				var none *till.Error
				if _, err := checkouts.Get(ctx, tx, refs[i]); errors.As(err, &none) {
					continue
				} else if err != nil {
					return err
				}
			}
			is := slices.ContainsFunc(of, func(b till.Ask) bool { return b.N == a.n && b.PaymentID == a.id })
			v.check(is, "I24", a.id, "it says that it is ask %d of the checkout %s, and it is not", a.n, a.checkout)
		}
		return nil
	})
}
