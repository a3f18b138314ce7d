package till

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// Change is news about an attempt.
type Change struct {
	Kind        string   // as PaymentSuccess; or payment.refused, .lapsed, .lost, which are no events of the service, and so for payouts and refunds
	Order       string   // "" for a payment that this outbox did not make; see WithForeign
	Reference   string   // as the payment, payout or refund has it
	Attempt     int      // of a refund, which one of the order's; 0 if it was made elsewhere
	Key         string   // the idempotency key
	Late        bool     // the money came after it had failed or expired
	AlreadyPaid bool     // another attempt of the order was paid before: give this one back
	Payment     *Payment // nil when it was refused, lapsed or lost, and for payouts and refunds
	Payout      *Payout
	Refund      *Refund
	Left        *Money // of a refund's payment, what can still go back, with Refunded; nil if the service does not know the payment
	EventID     string // "" where no event brought the news
	Sequence    int64
	Problem     string // why it was refused, lapsed or lost: a code of the service, or stale
	Detail      string // of the problem, for people
	Errors      []FieldError
}

// Paid reports that the customer has paid: success, or money that came late.
func (c Change) Paid() bool { return c.Kind == PaymentSuccess || c.Kind == PaymentLateSuccess }

// Failed reports that the payment ended without money.
func (c Change) Failed() bool { return c.Kind == PaymentFailed || c.Kind == PaymentExpired }

// TakenBack reports that the operator took the money back.
func (c Change) TakenBack() bool { return c.Kind == PaymentReversed }

// PaidOut reports that the recipient has the money.
func (c Change) PaidOut() bool { return c.Kind == PayoutSuccess || c.Kind == PayoutLateSuccess }

// PayoutFailed reports that the payout ended, and its money is yours again.
func (c Change) PayoutFailed() bool { return c.Kind == PayoutFailed || c.Kind == PayoutCancelled }

// Refunded reports that the customer has the money of the refund back, and Left
// what can still go back. Book it by Refund.ID.
func (c Change) Refunded() bool { return c.Kind == RefundSuccess || c.Kind == RefundLateSuccess }

// RefundFailed reports that the refund ended, and its money is yours again.
func (c Change) RefundFailed() bool { return c.Kind == RefundFailed || c.Kind == RefundCancelled }

// Refused reports that the service does not take the payment, payout or refund,
// and why: nothing exists.
func (c Change) Refused() bool { return strings.HasSuffix(c.Kind, "."+StateRefused) }

// Lapsed reports that the payment, payout or refund was not sent in its time:
// nothing exists.
func (c Change) Lapsed() bool { return strings.HasSuffix(c.Kind, "."+StateLapsed) }

// Lost reports that the service does not know a payment any more that it had, or
// a payout or refund that it may have had: a person looks.
func (c Change) Lost() bool { return strings.HasSuffix(c.Kind, "."+StateLost) }

const (
	statusLate     = "late_success"
	statusReversed = "reversed"
)

// rankFinal is the rank from which the attempt has ended.
const rankFinal = 3

// rank orders the news of one payment, payout or refund; 0 is no news of an attempt.
func rank(status string) int {
	switch status {
	case Pending:
		return 1
	case Processing:
		return 2
	case Success, Failed, Expired, Cancelled:
		return rankFinal
	case statusLate:
		return 4
	case statusReversed:
		return 5
	}
	return 0
}

// applyEvent is the road of webhooks and the log. Foreign hands over what this
// store did not make.
func (t *Teller[T]) applyEvent(ctx context.Context, e *Event, cursor *Cursor, foreign bool) error {
	noun, status, _ := strings.Cut(e.Type, ".")
	x := thing{e.Data.Payment, e.Data.Payout, e.Data.Refund}.only(noun)
	if rank(status) > 0 && x != (thing{}) {
		return t.applyThing(ctx, x, Change{EventID: e.ID, Sequence: e.Sequence}, noun, status, cursor, foreign)
	}
	if t.onOther == nil {
		return nil
	}
	return t.store.Apply(ctx, e.ID, "", "", func(ctx context.Context, tx T, s Subject, _ []Row) (Decision, error) {
		if s.Has(e.Type) {
			return Decision{Cursor: cursor}, nil
		}
		s.Seen, s.Sequence = append(s.Seen, e.Type), e.Sequence
		return Decision{Subject: &s, Cursor: cursor}, t.onOther(ctx, tx, *e)
	})
}

// applyRead is the road of the sweep: the news is what the payment shows. A
// status that is not known is not final, and no news.
func (t *Teller[T]) applyRead(ctx context.Context, x thing) error {
	told := x.facts()
	status := told.status
	switch {
	case told.reversed:
		status = statusReversed
	case told.late:
		status = statusLate
	}
	if rank(status) == 0 {
		return nil
	}
	return t.applyThing(ctx, x, Change{}, told.noun, status, nil, t.cfg.foreign)
}

// applyThing completes a change with what it is about.
func (t *Teller[T]) applyThing(ctx context.Context, x thing, c Change, noun, status string, cursor *Cursor, foreign bool) error {
	told := x.facts()
	c.Kind, c.Payment, c.Payout, c.Refund = noun+"."+status, x.payment, x.payout, x.refund
	c.Key, c.Reference, c.Late = strings.ToLower(told.key), told.reference, status == statusLate
	of := owner{noun, c.Key}
	if noun == KindRefund && rank(status) >= rankFinal {
		if cursor != nil { // it may read the payment, and the log is read without haste
			if err := t.pace.wait(ctx); err != nil {
				return err
			}
		}
		var err error
		if of, err = t.ofPayment(ctx, &c, status); err != nil {
			return err
		}
	}
	return t.apply(ctx, x, c, status, of, cursor, foreign)
}

// owner says by which row of the outbox the order is found that news is about.
type owner struct{ kind, key string }

// ofPayment adds to news of a refund what its payment tells: what is left of it,
// and whose it is, if the refund was not made by this outbox. News that was seen
// needs neither.
func (t *Teller[T]) ofPayment(ctx context.Context, c *Change, status string) (owner, error) {
	of := owner{KindRefund, c.Key}
	own, seen := false, false
	err := t.store.Apply(ctx, c.Refund.ID, of.kind, of.key, func(_ context.Context, _ T, s Subject, attempts []Row) (Decision, error) {
		own, seen = len(attempts) > 0, s.Has(status)
		return Decision{}, nil
	})
	if err != nil || seen || own && !c.Refunded() {
		return of, err
	}
	p, err := t.client.Payments.Get(ctx, c.Refund.PaymentID)
	var refused *Refused
	if errors.As(err, &refused) && refused.Code == CodePaymentNotFound {
		return of, nil
	} else if err != nil {
		return of, err
	}
	if c.Refunded() && p.Refunds != nil {
		c.Left = Ptr(Minor(p.Refunds.Refundable, p.Amount.Currency))
	}
	if !own {
		of = owner{KindPayment, strings.ToLower(p.IdempotencyKey)}
	}
	return of, nil
}

// apply is where all roads end. In one transaction: lock what is known; stop if
// this news was seen, or is older than what is known; call the function; save.
func (t *Teller[T]) apply(ctx context.Context, x thing, c Change, status string, of owner, cursor *Cursor, foreign bool) error {
	told := x.facts()
	return t.store.Apply(ctx, told.id, of.kind, of.key, func(ctx context.Context, tx T, s Subject, attempts []Row) (Decision, error) {
		if s.Has(status) {
			return Decision{Cursor: cursor}, nil
		}
		c := c
		var row *Row
		for i := range attempts {
			a := &attempts[i]
			switch {
			case a.Key == c.Key:
				row, c.Order, c.Attempt = a, a.Order, a.Attempt
			case a.Key == of.key: // the payment of a refund that was made elsewhere
				c.Order = a.Order
			case a.paid() && told.noun != KindRefund: // of a payment there may be several refunds
				c.AlreadyPaid = true
			}
		}
		if c.Order == "" && !foreign {
			return Decision{Cursor: cursor}, nil
		}
		s.Seen, s.Sequence = append(s.Seen, status), max(s.Sequence, c.Sequence)
		d := Decision{Subject: &s, Cursor: cursor}
		if rank(status) <= s.Rank {
			return d, nil
		}
		if row != nil && s.Rank < rankFinal && rank(row.Status) >= rankFinal {
			// The attempt ended under another id: a restored service made it
			// again. What it brought before is no news, but money after none is.
			s.Rank = rank(status)
			if !row.unpaid() || !(status == Success || status == statusLate) {
				d.Settle = t.news(row, told, row.Status)
				return d, nil
			}
		}
		s.Rank = rank(status)
		if row != nil {
			d.Settle = t.news(row, told, status)
		}
		switch {
		case s.Rank >= rankFinal:
			return d, t.fn(ctx, tx, c)
		case t.onProgress != nil:
			return d, t.onProgress(ctx, tx, c)
		}
		return d, nil
	})
}

// news is what a change does to its row.
func (t *Teller[T]) news(row *Row, told facts, status string) *Settlement {
	s := &Settlement{Key: row.Key, RemoteID: &told.id, Status: &status, State: StateTaken, SendUntil: told.expires.Time()}
	s.NextAt = t.now().Add(t.cfg.openAfter)
	if row.Problem != problemAbandoned {
		s.Problem, s.Details = Ptr(""), Ptr("")
	}
	if rank(status) >= rankFinal {
		s.State = StateEnded
	}
	return s
}

// end settles a row that is sent no more, as refused, lapsed or lost, and tells
// it: in one transaction, and once, because the row must be as expected. It
// reports whether it was.
func (t *Teller[T]) end(ctx context.Context, row *Row, s Settlement) (done bool, err error) {
	s.Key = row.Key
	why := keptOf(Value(s.Details))
	c := Change{Kind: row.Kind + "." + s.State, Order: row.Order, Attempt: row.Attempt, Key: row.Key, Reference: row.reference(),
		Problem: Value(s.Problem), Detail: why.Detail, Errors: why.Errors}
	err = t.store.Apply(context.WithoutCancel(ctx), row.Key, row.Kind, row.Key, func(ctx context.Context, tx T, _ Subject, attempts []Row) (Decision, error) {
		c := c
		done = false
		for _, a := range attempts {
			if a.Key == row.Key {
				done = slices.Contains(s.From, a.State) && (s.Lease.IsZero() || a.Lease.Equal(s.Lease))
			} else if a.paid() && row.Kind != KindRefund {
				c.AlreadyPaid = true
			}
		}
		if !done {
			return Decision{}, nil
		}
		return Decision{Settle: &s}, t.fn(ctx, tx, c)
	})
	if done = done && err == nil; done {
		row.State = s.State
	}
	return done, err
}

// kept is what a row keeps of an answer, beside its code.
type kept struct {
	Status    int          `json:"status,omitempty"`
	Detail    string       `json:"detail,omitempty"`
	RequestID string       `json:"request_id,omitempty"`
	Errors    []FieldError `json:"errors,omitempty"`
}

// detailsOf writes what a row keeps of an error.
func detailsOf(f *Failure) *string {
	b, err := json.Marshal(kept{f.Status, f.Detail, f.RequestID, f.Errors})
	if err != nil {
		return Ptr("")
	}
	return Ptr(string(b))
}

// keptOf reads it again.
func keptOf(details string) (p kept) {
	_ = json.Unmarshal([]byte(details), &p) // nothing was kept
	return p
}

// reference is what the wish says of the order.
func (r *Row) reference() string {
	var body struct {
		Reference string `json:"reference"`
	}
	_ = json.Unmarshal(r.Body, &body)
	return body.Reference
}
