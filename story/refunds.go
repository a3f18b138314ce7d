package story

import (
	"context"

	"till"
	"till/store"
	"till/store/refunds"
)

// shownRefunds is how many refunds of a payment its story has, the newest.
const shownRefunds = 5

// Refund is a refund of a payment, with what happened to it.
type Refund struct {
	*store.PayoutRow
	Events   []*store.EventRow
	Attempts []*store.Attempt
}

// Unsure reports whether the refund's outcome is not known: it is open, and its time is over or
// a person looks at it.
func (r *Refund) Unsure() bool {
	return !r.Status.Final() && (r.Attention || r.Resolution.State != till.Waiting)
}

// readRefunds reads what went back of a payment. Only one whose money came has refunds.
func (s *Story) readRefunds(ctx context.Context, tx *store.Tx, ref store.Ref) error {
	if s.Payment == nil || !s.Payment.Credited() {
		return nil
	}
	sums, err := refunds.Sums(ctx, tx, []store.Ref{ref})
	if err != nil {
		return err
	}
	var any bool
	if s.Sums, any = sums[ref]; !any {
		s.Sums.Amount = s.Payment.Amount.Minor
		return nil
	}
	rows, err := refunds.Of(ctx, tx, ref)
	if err != nil {
		return err
	}
	var sequences []int64
	for _, p := range rows[:min(len(rows), shownRefunds)] {
		s.Refunds = append(s.Refunds, &Refund{PayoutRow: p})
		sequences = append(sequences, eventsOf(p)...)
	}
	events, err := tx.EventBodiesAt(ctx, ref.Client, sequences)
	if err != nil {
		return err
	}
	for _, r := range s.Refunds {
		for _, e := range events {
			if e.SubjectID == r.ID {
				r.Events = append(r.Events, e)
			}
		}
		if r.Attempts, err = tx.Attempts(ctx, store.Ref{Client: ref.Client, ID: r.ID}); err != nil {
			return err
		}
	}
	return nil
}

// explainRefunds explains a payment of which money went back or is on its way. It reports false
// if there is none.
func (s *Situation) explainRefunds(w *Why) bool {
	money := func(minor int64) till.Money { return till.Money{Minor: minor, Currency: s.Subject.Amount.Currency} }
	back := s.Sums.Refunded + s.Sums.Late
	switch {
	case back+s.Sums.Refunding == 0:
		return false
	case !s.ReversedAt.IsZero():
		w.Code, w.Next, w.At, w.Amount = WhyRefundReversed, Us, s.ReversedAt, money(back+s.Sums.Refunding)
	case s.Refund == nil: // its sums say more than is shown
		return false
	case s.Refund.Unsure():
		w.Code, w.Next, w.At, w.Amount = WhyRefundUnknown, Operator, s.Refund.CreatedAt, s.Refund.Amount
		if s.Refund.Attention {
			w.Next = Us
		}
	case !s.Refund.Status.Final():
		w.Code, w.Next, w.At, w.Amount = WhyRefunding, Operator, s.Refund.CreatedAt, s.Refund.Amount
	case s.Sums.Left() > 0:
		w.Code, w.At, w.Amount, w.Other = WhyRefundedPart, s.BackAt, money(back), money(s.Sums.Left())
	default:
		w.Code, w.At, w.Amount = WhyRefunded, s.BackAt, money(back)
	}
	return true
}

// openOrLast returns the refund that is open, or else the newest one; nil if there is none.
func (s *Story) openOrLast() *Refund {
	for _, r := range s.Refunds {
		if !r.Status.Final() {
			return r
		}
	}
	if len(s.Refunds) > 0 {
		return s.Refunds[0]
	}
	return nil
}

// backAt returns when money last went back; zero if none of the refunds that are shown did.
func (s *Story) backAt() (at till.Time) {
	for _, r := range s.Refunds {
		if !r.LateSuccessAt.IsZero() {
			at = max(at, r.LateSuccessAt)
		} else if r.Status == till.PayoutSuccess {
			at = max(at, r.UpdatedAt)
		}
	}
	return at
}
