package till

import (
	"context"
	"strings"
)

// Change is news about an attempt.
type Change struct {
	Kind        string // as PaymentSuccess
	Order       string // "" for a payment that this outbox did not make
	Reference   string // as the payment has it
	Attempt     int
	Key         string // the idempotency key
	Late        bool   // the money came after it had failed or expired
	AlreadyPaid bool   // another attempt of the order was paid before: give this one back
	Payment     *Payment
	Payout      *Payout
	EventID     string // "" where a read brought the news
	Sequence    int64
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

const (
	statusLate     = "late_success"
	statusReversed = "reversed"
)

// rankFinal is the rank from which the attempt has ended.
const rankFinal = 3

// rank orders the news of one payment or payout; 0 is no news of an attempt.
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

// applyEvent is the road of webhooks and the log.
func (t *Teller[T]) applyEvent(ctx context.Context, e *Event, cursor *Cursor) error {
	noun, status, _ := strings.Cut(e.Type, ".")
	c := Change{Kind: e.Type, EventID: e.ID, Sequence: e.Sequence, Payment: e.Data.Payment, Payout: e.Data.Payout}
	known := rank(status) > 0 && (noun == KindPayment && c.Payment != nil || noun == KindPayout && c.Payout != nil)
	if known {
		return t.apply(ctx, c, noun, status, cursor)
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
func (t *Teller[T]) applyRead(ctx context.Context, p *Payment, o *Payout) error {
	noun, status := KindPayment, ""
	switch {
	case p != nil && p.ReversedAt != nil:
		status = statusReversed
	case p != nil && p.LateSuccessAt != nil || o != nil && o.LateSuccessAt != nil:
		status = statusLate
	case p != nil:
		status = p.Status
	default:
		status = o.Status
	}
	if o != nil {
		noun = KindPayout
	}
	if rank(status) == 0 {
		return nil
	}
	return t.apply(ctx, Change{Kind: noun + "." + status, Payment: p, Payout: o}, noun, status, nil)
}

// apply is where all roads end. In one transaction: lock what is known; stop if
// this news was seen, or is older than what is known; call the function; save.
func (t *Teller[T]) apply(ctx context.Context, c Change, noun, status string, cursor *Cursor) error {
	var id string
	if noun == KindPayout {
		id, c.Key, c.Reference = c.Payout.ID, c.Payout.IdempotencyKey, Value(c.Payout.Reference)
	} else {
		id, c.Key, c.Reference = c.Payment.ID, c.Payment.IdempotencyKey, Value(c.Payment.Reference)
	}
	c.Key = strings.ToLower(c.Key)
	c.Late = status == statusLate
	return t.store.Apply(ctx, id, noun, c.Key, func(ctx context.Context, tx T, s Subject, attempts []Row) (Decision, error) {
		if s.Has(status) {
			return Decision{Cursor: cursor}, nil
		}
		c := c
		var row *Row
		for i := range attempts {
			a := &attempts[i]
			if a.Key == c.Key {
				row, c.Order, c.Attempt = a, a.Order, a.Attempt
			} else if a.paid() {
				c.AlreadyPaid = true
			}
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
				d.Settle = t.news(row, id, row.Status, c)
				return d, nil
			}
		}
		s.Rank = rank(status)
		if row != nil {
			d.Settle = t.news(row, id, status, c)
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
func (t *Teller[T]) news(row *Row, id, status string, c Change) *Settlement {
	s := &Settlement{Key: row.Key, RemoteID: &id, Status: &status, State: StateTaken}
	expires := Timestamp("")
	if c.Payment != nil {
		expires = c.Payment.ExpiresAt
	} else {
		expires = c.Payout.ExpiresAt
	}
	s.SendUntil = expires.Time()
	s.NextAt = t.now().Add(t.cfg.openAfter)
	if row.Problem != problemAbandoned {
		s.Problem = Ptr("")
	}
	if rank(status) >= rankFinal {
		s.State = StateEnded
	}
	return s
}
