package till

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// CheckoutWish is a wish to be paid on a page of the service, by any number and any of
// your methods.
type CheckoutWish struct {
	Order       string // your id of what is paid
	Amount      Money
	Reference   string // Order if empty; the page shows it
	Description string // the page shows it
	Charge      *CreateCheckoutCharge
	Tax         *CreateCheckoutTax
	Metadata    map[string]any

	ExpiresIn  time.Duration // how long the page takes asks; a day if 0
	Country    string        // bounds what is offered, as do Methods; all that you have otherwise
	Methods    []string
	Phone      string // the customer's number, if you know it
	PhoneFixed bool   // no other number may pay
	ReturnURL  string // where the page leads back to
	Language   string // fr or en; the browser's otherwise
}

// Checkout writes a wish to be paid on a page in your transaction, like Collect. An order
// is asked for in one way at a time: while a payment or another checkout of it may bring
// money, that is refused. SendCheckout makes the page.
func (t *Teller[T]) Checkout(ctx context.Context, tx T, c CheckoutWish) error {
	if err := checkOrder(c.Order, c.Description, c.Reference); err != nil {
		return err
	}
	if err := checkAmount(c.Amount); err != nil {
		return err
	}
	if c.Phone == "" && c.PhoneFixed || len(c.Phone) > maxPhone || !digits(c.Phone) {
		return &InvalidWish{"phone", "is digits only, calling code first"}
	}
	metadata, err := metadataOf(c.Metadata)
	if err != nil {
		return err
	}
	body := CreateCheckout{
		Amount: c.Amount, Reference: text(referenceOf(c.Reference, c.Order)), Description: text(c.Description), Charge: c.Charge, Tax: c.Tax, Metadata: metadata,
		Country: text(c.Country), Methods: c.Methods, Phone: text(c.Phone), ReturnURL: text(c.ReturnURL), Language: text(c.Language),
	}
	if c.ExpiresIn != 0 {
		body.ExpiresInSeconds = Ptr(int64(c.ExpiresIn / time.Second))
	}
	if c.PhoneFixed {
		body.PhoneFixed = Ptr(true)
	}
	return t.put(ctx, tx, KindCheckout, c.Order, t.cfg.paymentUntil, func(key string) ([]byte, error) {
		body.IdempotencyKey = key
		return render(body)
	})
}

// SendCheckout makes the page of the newest checkout of an order, like Send. Send the
// customer to Progress.URL. Once it is taken the same call answers from the store, with
// the same address and the same return secret.
func (t *Teller[T]) SendCheckout(ctx context.Context, order string) (Progress, error) {
	return t.sendOrder(ctx, KindCheckout, order)
}

// other is the other kind of attempt by which an order is paid; "" for kinds by which
// none is.
func other(kind string) string {
	return map[string]string{KindPayment: KindCheckout, KindCheckout: KindPayment}[kind]
}

// otherWay refuses a wish to be paid while the order may be paid, or was, in the other way.
func (t *Teller[T]) otherWay(ctx context.Context, tx T, kind, order string) error {
	if other(kind) == "" {
		return nil
	}
	attempts, err := t.store.Attempts(ctx, tx, other(kind), order)
	for i := range attempts {
		switch row := &attempts[i]; {
		case row.paid():
			return &AlreadyPaid{order}
		case row.open():
			return &AttemptOpen{row.Order, row.State, row.SendUntil}
		}
	}
	return err
}

// besides notes in a change that the order was paid in the other way.
func (t *Teller[T]) besides(ctx context.Context, tx T, c *Change, kind string) error {
	if other(kind) == "" {
		return nil
	}
	attempts, err := t.store.Attempts(ctx, tx, other(kind), c.Order)
	for i := range attempts {
		c.AlreadyPaid = c.AlreadyPaid || attempts[i].paid()
	}
	return err
}

// ofCheckout says whose a payment is that may be an ask of a checkout. A checkout that the
// service does not know is nobody's.
func (t *Teller[T]) ofCheckout(ctx context.Context, p *Payment) (owner, error) {
	if p.Checkout == nil {
		return owner{KindPayment, strings.ToLower(p.IdempotencyKey)}, nil
	}
	c, err := t.client.Checkouts.Get(ctx, p.Checkout.ID)
	var refused *Refused
	switch {
	case errors.As(err, &refused) && refused.Code == CodeCheckoutNotFound:
		return owner{KindPayment, strings.ToLower(p.IdempotencyKey)}, nil
	case err != nil:
		return owner{}, err
	}
	return owner{KindCheckout, strings.ToLower(c.IdempotencyKey)}, nil
}

// takenBack is what the reversal of an ask does to the row of its checkout: an order that
// was paid once is paid no more.
func takenBack(of owner, attempts []Row) *Settlement {
	for i := range attempts {
		if a := &attempts[i]; a.Key == of.key && a.Status == CheckoutStatePaid {
			return &Settlement{Key: a.Key, Status: Ptr(statusReversed)}
		}
	}
	return nil
}

// about reports whether a row is a wish for this amount.
func (r *Row) about(amount Money) bool {
	var body struct{ Amount Money }
	return json.Unmarshal(r.Body, &body) == nil && body.Amount == amount
}

// neverGiven reports whether a row was told to have made nothing, so that nobody has the
// address of a page that may exist all the same.
func (r *Row) neverGiven() bool {
	return r.Kind == KindCheckout && (r.State == StateLapsed || r.State == StateRefused)
}

// otherAmount tells, once, that a checkout shows another amount than its wish. It is no
// end of it: the row is read until the service shows what was wished for.
func (t *Teller[T]) otherAmount(ctx context.Context, tx T, c Change, row *Row, s Subject, cursor *Cursor) (Decision, error) {
	s.Seen = s.Seen[:len(s.Seen)-1]
	if s.Has(statusOther) {
		return Decision{Cursor: cursor}, nil
	}
	s.Seen, c.Kind = append(s.Seen, statusOther), KindCheckout+"."+statusOther
	d := Decision{Subject: &s, Cursor: cursor, Settle: &Settlement{Key: row.Key, Problem: Ptr(problemAttention)}}
	if row.RemoteID != "" {
		d.Settle.State, d.Settle.NextAt = StateTaken, t.now()
	}
	return d, t.fn(ctx, tx, c)
}

// stateOf is the last kind of news that a checkout shows.
func stateOf(c *Checkout) string {
	if c.Overpaid {
		return statusOverpaid
	}
	return c.State
}

// whole is the checkout of an event, without the address, which events do not hold.
func (s *CheckoutSnapshot) whole() *Checkout {
	if s == nil {
		return nil
	}
	var c Checkout
	if json.Unmarshal(s.Raw, &c) != nil {
		return nil
	}
	return &c
}

// progress is that of a checkout that was made.
func (c *NewCheckout) progress() Progress {
	p := Progress{State: Taken, ID: c.ID, Checkout: &Checkout{}, URL: Value(c.URL), ReturnSecret: c.ReturnSecret}
	_ = json.Unmarshal(c.Raw, p.Checkout) // it was read as what it is more than that
	return p
}

// paidBy adds the payment that a checkout was paid by.
func (k kept) paidBy(c *Checkout) *string {
	if k.PaymentID = Value(c.PaymentID); k.PaymentID == "" && k.URL == "" {
		return Ptr("")
	}
	return kept{URL: k.URL, ReturnSecret: k.ReturnSecret, PaymentID: k.PaymentID}.text()
}
