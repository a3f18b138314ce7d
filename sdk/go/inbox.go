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
	Kind        string   // as PaymentSuccess; or payment.refused, .lapsed, .lost, which are no events of the service, and so for payouts, refunds and checkouts
	Order       string   // "" for a payment that this outbox did not make; see WithForeign
	Reference   string   // as the payment, payout, refund or checkout has it
	Attempt     int      // of a refund, which one of the order's; 0 if it was made elsewhere
	Key         string   // the idempotency key
	Late        bool     // the money came after it had failed, expired or been cancelled
	AlreadyPaid bool     // another attempt of the order was paid before: give this one back, Extra
	Payment     *Payment // nil when it was refused, lapsed or lost, and for payouts, refunds and checkouts
	Payout      *Payout
	Refund      *Refund
	Checkout    *Checkout
	Left        *Money // of a refund's payment, what can still go back, with Refunded; nil if the service does not know the payment
	EventID     string // "" where no event brought the news
	Sequence    int64
	Problem     string // why it was refused, lapsed or lost: a code of the service, or stale
	Detail      string // of the problem, for people
	Errors      []FieldError
}

// Paid reports that the customer has paid: success, or money that came late. Of a
// checkout it is the amount of your wish.
func (c Change) Paid() bool {
	return c.Kind == PaymentSuccess || c.Kind == PaymentLateSuccess || c.Kind == CheckoutPaid
}

// Failed reports that the payment ended without money, or that the checkout expired
// or was cancelled. A customer who declines on a page may pay by another number, so
// that is no news.
func (c Change) Failed() bool {
	return c.Kind == PaymentFailed || c.Kind == PaymentExpired || c.Kind == CheckoutExpired || c.Kind == CheckoutCancelled
}

// Overpaid reports that a checkout that was paid was paid once more. Give back the
// payment Extra. The order was shipped when it was paid the first time.
func (c Change) Overpaid() bool { return c.Kind == CheckoutOverpaid }

// OtherAmount reports that a checkout says of itself that it was paid, and shows
// another amount or currency than your wish. Do not ship: a person looks.
func (c Change) OtherAmount() bool { return c.Kind == KindCheckout+"."+statusOther }

// Extra is the payment that is to be given back: the second one of an overpaid
// checkout, or the one that paid an order that was paid before. It is "" otherwise.
// See GiveBack.Payment.
func (c Change) Extra() string {
	switch {
	case c.Overpaid():
		for _, a := range c.Checkout.Asks {
			if id := Value(a.PaymentID); a.Status == Success && id != "" && id != Value(c.Checkout.PaymentID) {
				return id
			}
		}
	case !c.Paid() || !c.AlreadyPaid:
	case c.Checkout != nil:
		return Value(c.Checkout.PaymentID)
	default:
		return c.Payment.ID
	}
	return ""
}

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

// Refused reports that the service does not take the payment, payout, refund or
// checkout, and why: nothing exists.
func (c Change) Refused() bool { return strings.HasSuffix(c.Kind, "."+StateRefused) }

// Lapsed reports that the payment, payout, refund or checkout was not sent in its
// time: nothing exists that somebody could pay.
func (c Change) Lapsed() bool { return strings.HasSuffix(c.Kind, "."+StateLapsed) }

// Lost reports that the service does not know a payment or checkout any more that it
// had, or a payout or refund that it may have had: a person looks.
func (c Change) Lost() bool { return strings.HasSuffix(c.Kind, "."+StateLost) }

const (
	statusLate     = "late_success"
	statusReversed = "reversed"
	statusOverpaid = "overpaid"
	statusOther    = "other_amount" // what a checkout shows is not what was wished for
)

// brought reports whether a status says that money came.
func brought(status string) bool {
	switch status {
	case Success, statusLate, CheckoutStatePaid, statusOverpaid:
		return true
	}
	return false
}

// rankFinal is the rank from which the attempt has ended.
const rankFinal = 3

// rank orders the news of one payment, payout, refund or checkout; 0 is no news of an
// attempt.
func rank(status string) int {
	switch status {
	case Pending, CheckoutStateOpen:
		return 1
	case Processing:
		return 2
	case Success, Failed, Expired, Cancelled:
		return rankFinal
	case statusLate, CheckoutStatePaid: // money that comes after it had expired wins
		return 4
	case statusReversed, statusOverpaid:
		return 5
	}
	return 0
}

// applyEvent is the road of webhooks and the log. Foreign hands over what this
// store did not make.
func (t *Teller[T]) applyEvent(ctx context.Context, e *Event, cursor *Cursor, foreign bool) error {
	noun, status, _ := strings.Cut(e.Type, ".")
	x := thing{e.Data.Payment, e.Data.Payout, e.Data.Refund, e.Data.Checkout.whole()}.only(noun)
	if rank(status) > 0 && x != (thing{}) {
		w := road[T]{cursor: cursor, foreign: foreign}
		if t.onOther != nil && noun == KindCheckout {
			w.notOurs = func(ctx context.Context, tx T) error { return t.onOther(ctx, tx, *e) }
		}
		return t.applyThing(ctx, x, Change{EventID: e.ID, Sequence: e.Sequence}, noun, status, w)
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
	return t.applyThing(ctx, x, Change{}, told.noun, status, road[T]{foreign: t.cfg.foreign})
}

// road is by which way news comes.
type road[T any] struct {
	cursor  *Cursor                               // of the log
	foreign bool                                  // news of what this store did not make is wanted
	notOurs func(ctx context.Context, tx T) error // hears of checkouts that this store did not make; nil if nobody does
}

// applyThing completes a change with what it is about.
func (t *Teller[T]) applyThing(ctx context.Context, x thing, c Change, noun, status string, w road[T]) error {
	told := x.facts()
	c.Kind, c.Payment, c.Payout, c.Refund, c.Checkout = noun+"."+status, x.payment, x.payout, x.refund, x.checkout
	c.Key, c.Reference, c.Late = strings.ToLower(told.key), told.reference, status == statusLate
	of := owner{noun, c.Key}
	ask := x.payment != nil && x.payment.Checkout != nil
	if ask && status != statusReversed && !w.foreign {
		return nil // its checkout tells what became of the order
	}
	if ask || noun == KindRefund && rank(status) >= rankFinal {
		if w.cursor != nil { // it may read the payment or checkout, and the log is read without haste
			if err := t.pace.wait(ctx); err != nil {
				return err
			}
		}
		var err error
		if ask {
			of, err = t.ofCheckout(ctx, x.payment)
		} else {
			of, err = t.ofPayment(ctx, &c, status)
		}
		if err != nil {
			return err
		}
	}
	if noun == KindCheckout {
		c.Late = x.checkout.Late
		if status == statusOverpaid { // it was paid once before, whether or not that was heard
			first := c
			first.Kind = CheckoutPaid
			if err := t.apply(ctx, x, first, CheckoutStatePaid, of, road[T]{foreign: w.foreign}); err != nil {
				return err
			}
		}
	}
	return t.apply(ctx, x, c, status, of, w)
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
	if own {
		return of, nil
	}
	return t.ofCheckout(ctx, p)
}

// apply is where all roads end. In one transaction: lock what is known; stop if
// this news was seen, or is older than what is known; call the function; save.
func (t *Teller[T]) apply(ctx context.Context, x thing, c Change, status string, of owner, w road[T]) error {
	told := x.facts()
	return t.store.Apply(ctx, told.id, of.kind, of.key, func(ctx context.Context, tx T, s Subject, attempts []Row) (Decision, error) {
		if s.Has(status) {
			return Decision{Cursor: w.cursor}, nil
		}
		c := c
		row, made := whose(&c, of, attempts, told.noun)
		s.Seen, s.Sequence = append(s.Seen, status), max(s.Sequence, c.Sequence)
		d := Decision{Subject: &s, Cursor: w.cursor}
		switch {
		case c.Order == "" && told.noun == KindCheckout:
			if w.notOurs == nil {
				return Decision{Cursor: w.cursor}, nil
			}
			return d, w.notOurs(ctx, tx)
		case c.Order == "" && !w.foreign, made && told.noun == KindPayment && status != statusReversed:
			return Decision{Cursor: w.cursor}, nil
		}
		if row != nil {
			if err := t.besides(ctx, tx, &c, row.Kind); err != nil {
				return d, err
			}
			if x.checkout != nil && brought(status) && !row.about(x.checkout.Amount) {
				return t.otherAmount(ctx, tx, c, row, s, w.cursor)
			}
		}
		if rank(status) <= s.Rank {
			return d, nil
		}
		if row != nil && s.Rank < rankFinal && rank(row.Status) >= rankFinal {
			// The attempt ended under another id: a restored service made it
			// again. What it brought before is no news, but money after none is.
			s.Rank = rank(status)
			if !row.unpaid() || !brought(status) {
				d.Settle = t.news(row, x, row.Status)
				return d, nil
			}
		}
		s.Rank = rank(status)
		switch {
		case row != nil && row.neverGiven() && !brought(status):
			d.Settle = t.news(row, x, status)
			return d, nil // nobody had the page's address, and the order was told that nothing exists
		case row != nil:
			d.Settle = t.news(row, x, status)
		case made && told.noun == KindPayment: // an ask of its checkout was reversed
			d.Settle = takenBack(of, attempts)
		}
		switch {
		case s.Rank >= rankFinal:
			return d, t.fn(ctx, tx, c)
		case t.onProgress != nil && x.checkout == nil:
			return d, t.onProgress(ctx, tx, c)
		}
		return d, nil
	})
}

// whose finds the order that news is about: the row of the attempt itself, or the
// one of the payment or checkout that it belongs to, then made is true.
func whose(c *Change, of owner, attempts []Row, noun string) (row *Row, made bool) {
	for i := range attempts {
		a := &attempts[i]
		switch {
		case a.Key == c.Key:
			row, c.Order, c.Attempt = a, a.Order, a.Attempt
		case a.Key == of.key: // the payment or checkout of a refund that was made elsewhere; the checkout of an ask
			c.Order, made = a.Order, of.kind == KindCheckout
		case a.paid() && noun != KindRefund: // of a payment there may be several refunds
			c.AlreadyPaid = true
		}
	}
	return row, made
}

// news is what a change does to its row.
func (t *Teller[T]) news(row *Row, x thing, status string) *Settlement {
	told := x.facts()
	s := &Settlement{Key: row.Key, RemoteID: &told.id, Status: &status, State: StateTaken, SendUntil: told.expires.Time()}
	s.NextAt = t.now().Add(t.cfg.openAfter)
	if row.Problem != problemAbandoned {
		s.Problem, s.Details = Ptr(""), Ptr("")
	}
	if x.checkout != nil {
		s.Details = keptOf(row.Details).paidBy(x.checkout)
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
		if err := t.besides(ctx, tx, &c, row.Kind); err != nil {
			return Decision{}, err
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

	// Of a checkout.
	URL          string `json:"url,omitempty"`
	ReturnSecret string `json:"return_secret,omitempty"`
	PaymentID    string `json:"payment_id,omitempty"`
}

// text writes it.
func (k kept) text() *string {
	b, err := json.Marshal(k)
	if err != nil {
		return Ptr("")
	}
	return Ptr(string(b))
}

// detailsOf writes what a row keeps of an error.
func detailsOf(f *Failure) *string {
	return kept{Status: f.Status, Detail: f.Detail, RequestID: f.RequestID, Errors: f.Errors}.text()
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
