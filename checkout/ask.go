package checkout

import (
	"context"
	"errors"
	"slices"

	"till"
	"till/collect"
	"till/internal/request"
	"till/store"
	"till/store/checkouts"
)

// Why Ask asks nothing.
var (
	ErrOver = errors.New("checkout: it takes no more asks") // expired, cancelled, or its time is over
	ErrAsks = errors.New("checkout: it has had as many asks, or as many numbers, as it may")
	ErrForm = errors.New("checkout: no form was made for such an ask")
	// ErrBlocked says that pages never ask the number. Why is the house's matter.
	ErrBlocked = errors.New("checkout: pages do not ask this number")
)

// Typed is what somebody typed into a page's form.
type Typed struct {
	N       int // the ask that the form was made for: View.Next
	Phone   string
	Method  string
	Country string // "" where the method and the number say it
}

// Ask asks a customer, or returns the ask that was made already. It returns the ask that the
// page is to show:
//
//   - the ask that the form was made for, new or not: a form that is posted twice asks once
//   - the last ask, while it may still bring money, and the one that was credited
//
// It returns ErrOver, ErrAsks, ErrForm, ErrBlocked, CodePagesNotAvailable or the error of
// Config.Limit if nothing is asked, and CodeValidationFailed with what is wrong with what was typed. If the payment was refused after
// the ask was written down, the ask comes with the error, and its row says so: the next may be
// made. On CodeServiceUnavailable nobody knows yet: to post the form again is right.
func (s *Checkouts) Ask(ctx context.Context, who Client, ref store.Ref, t Typed) (*till.Ask, error) {
	if who.Client == nil || who.ID != ref.Client {
		return nil, notFound()
	}
	s.known.Store(who.ID, true)
	d := &decision{s: s, typed: t, ref: ref, who: who}
	// Twice where the outcome of the commit is unknown: the second run finds what the first left.
	_, err := store.RetryUnknown(ctx, s.c.Store.Update, func(tx *store.Tx, _ bool) error { return d.write(ctx, tx) })
	if err != nil || d.ask == nil {
		return nil, s.unavailable("ask not written down", err)
	}
	if d.ask.Stand() != till.AskUnsent {
		return d.ask, nil
	}
	return s.make(ctx, who, d.row, d.ask)
}

// decision is the first commit of an ask.
type decision struct {
	s     *Checkouts
	typed Typed
	ref   store.Ref
	who   Client

	row *checkouts.Row
	ask *till.Ask // what comes of it
}

// write decides, under the lock of the client's head, and writes down a new ask.
func (d *decision) write(ctx context.Context, tx *store.Tx) error {
	d.ask = nil
	if _, err := tx.LockHeads(ctx, []till.ID{d.ref.Client}); err != nil {
		return err
	}
	var err error
	if d.row, err = checkouts.Get(ctx, tx, d.ref); err != nil {
		return err
	}
	asks, err := checkouts.Asks(ctx, tx, d.ref)
	if err != nil {
		return err
	}
	if d.ask, err = d.shown(asks, tx.Now()); err != nil || d.ask != nil {
		return err
	}
	lost := false
	for {
		a := &till.Ask{ClientID: d.ref.Client, CheckoutID: d.ref.ID, N: len(asks) + 1, AskedAt: tx.Now(), Amount: d.row.Amount,
			Method: d.typed.Method, Country: d.typed.Country, Phone: d.typed.Phone}
		a.Key = d.s.keys.Ask(a.ClientID, d.row.IdempotencyKey, a.N)
		// The payment of an ask that was lost with a database is there, if it was made again.
		p, err := tx.PaymentByKey(ctx, a.ClientID, a.Key)
		switch {
		case err != nil:
			return err
		case p == nil && lost:
			d.ask, err = d.shown(asks, tx.Now())
			return err
		case p == nil:
			return d.add(ctx, tx, asks, a)
		}
		lost = true
		a.Method, a.Country, a.Phone, a.AskedAt = p.Method, p.Country, p.Phone, p.CreatedAt
		if err := checkouts.InsertAsk(ctx, tx, a); err != nil {
			return err
		}
		about(a, p)
		asks = append(asks, *a)
	}
}

// shown returns the ask that answers the form without a new one; nil: a new one may follow.
func (d *decision) shown(asks []till.Ask, now till.Time) (*till.Ask, error) {
	for _, stand := range []till.AskStand{till.AskCredited, till.AskLive} {
		if i := slices.IndexFunc(asks, func(a till.Ask) bool { return a.Stand() == stand }); i >= 0 {
			return &asks[i], nil
		}
	}
	n := len(asks)
	switch {
	case n > 0 && asks[n-1].Stand() == till.AskUnsent && !d.row.Over(now):
		return &asks[n-1], nil
	case d.typed.N >= 1 && d.typed.N <= n && asks[d.typed.N-1].Stand() == till.AskEnded:
		return &asks[d.typed.N-1], nil
	case d.row.Over(now):
		return nil, ErrOver
	case d.typed.N != n+1:
		return nil, ErrForm
	}
	return nil, nil
}

// add writes the new ask, if what was typed and the bounds allow it.
func (d *decision) add(ctx context.Context, tx *store.Tx, asks []till.Ask, a *till.Ask) error {
	if d.row.PhoneFixed {
		a.Phone = d.row.Phone
	}
	if err := d.refusal(a); err != nil {
		return err
	}
	made, phones := 0, map[string]bool{a.Phone: true}
	for _, b := range asks {
		if b.Refused == "" || !b.PaymentID.IsZero() {
			made++
			phones[b.Phone] = true
		}
	}
	if made >= till.MaxAsks || len(phones) > till.MaxAskNumbers || len(asks) >= till.MaxAskRows {
		return ErrAsks
	}
	if err := d.s.mayAsk(ctx, tx, a); err != nil {
		return err
	}
	if d.s.c.Limit != nil {
		if err := d.s.c.Limit(ctx, tx, &d.row.Checkout, a); err != nil {
			return err
		}
	}
	d.ask = a
	return checkouts.InsertAsk(ctx, tx, a)
}

// refusal says what is wrong with what was typed.
func (d *decision) refusal(a *till.Ask) error {
	if len(d.row.Methods) > 0 && !slices.Contains(d.row.Methods, a.Method) {
		v := request.Validator{}
		v.Add("/method", till.FieldUnknownMethod, "is not one of the methods of this checkout")
		return v.Refusal()
	}
	if d.row.Country != "" && a.Country == "" {
		a.Country = d.row.Country
	}
	if d.row.Country != "" && a.Country != d.row.Country {
		v := request.Validator{}
		v.Add("/country", till.FieldCountryNotSupported, "is not the country of this checkout")
		return v.Refusal()
	}
	r, err := d.s.request(d.row, a)
	if err != nil {
		return err
	}
	return d.s.c.Collector.Refusal(d.who, r)
}

// make makes the payment of an ask that is written down: the second commit.
func (s *Checkouts) make(ctx context.Context, who Client, row *checkouts.Row, a *till.Ask) (*till.Ask, error) {
	r, err := s.request(row, a)
	if err != nil {
		return a, err
	}
	created, err := s.c.Collector.Create(ctx, who, r)
	var refusal *till.Error
	switch {
	case err == nil:
		a.PaymentID, a.Status = created.Payment.ID, created.Payment.Status
		return a, nil
	case !errors.As(err, &refusal) || refusal.Code == till.CodeServiceUnavailable || refusal.Code == till.CodeInternal:
		return a, err // nobody knows
	}
	again, wrong := s.refuse(ctx, row, a, refusal.Code)
	switch {
	case wrong != nil:
		return a, s.unavailable("refused ask not written down", wrong)
	case again.Stand() != till.AskEnded || !again.PaymentID.IsZero(): // somebody else's call has made it
		return again, nil
	}
	return again, err
}

// refuse notes that an ask makes no payment, unless it has one. It returns the ask as it is then.
func (s *Checkouts) refuse(ctx context.Context, row *checkouts.Row, a *till.Ask, code till.Code) (out *till.Ask, err error) {
	_, err = store.RetryUnknown(ctx, s.c.Store.Update, func(tx *store.Tx, _ bool) error {
		c := *a
		out = &c
		if _, err := tx.LockHeads(ctx, []till.ID{a.ClientID}); err != nil {
			return err
		}
		p, err := tx.PaymentByKey(ctx, a.ClientID, a.Key)
		if err != nil {
			return err
		}
		if p != nil {
			about(out, p)
			return nil
		}
		out.Refused = code
		return checkouts.Refuse(ctx, tx, a, code)
	})
	return out, err
}

// admit decides, in the commit that makes an ask's payment, whether it may still be made: the
// checkout may have ended meanwhile, or another call may have written down a refusal. What is
// made already stays.
func (s *Checkouts) admit(ctx context.Context, tx *store.Tx, a *till.Ask) error {
	p, err := tx.PaymentByKey(ctx, a.ClientID, a.Key)
	if err != nil || p != nil {
		return err
	}
	ref := store.Ref{Client: a.ClientID, ID: a.CheckoutID}
	row, err := checkouts.Get(ctx, tx, ref)
	if err != nil {
		return err
	}
	asks, err := checkouts.Asks(ctx, tx, ref)
	if err != nil {
		return err
	}
	for i := range asks {
		b := &asks[i]
		stand := b.Stand()
		if b.N == a.N && stand != till.AskUnsent || b.N != a.N && stand != till.AskEnded || row.Over(tx.Now()) {
			return till.Errorf(till.AskNotSent, "the checkout takes no more asks")
		}
	}
	if err := s.mayAsk(ctx, tx, a); errors.Is(err, ErrBlocked) || till.ErrorCode(err) == till.CodePagesNotAvailable {
		return till.Errorf(till.AskNotSent, "the house does not let the page ask")
	} else if err != nil {
		return err
	}
	return nil
}

// request returns the body of an ask's payment: the same each time, of what the rows say.
func (s *Checkouts) request(row *checkouts.Row, a *till.Ask) (*collect.Request, error) {
	r, err := collect.OfOrder(row.Document)
	if err != nil {
		return nil, err
	}
	key, value := a.Key.String(), a.Amount.Value()
	r.Method, r.Country, r.Reference, r.IdempotencyKey = &a.Method, orNil(a.Country), orNil(row.Reference), &key
	r.Amount = &request.Amount{Value: &value, Currency: &a.Amount.Currency}
	r.Customer = &collect.Customer{Phone: &a.Phone}
	r.Ask = &collect.Ask{Checkout: row.ID, Link: row.LinkID, N: a.N, Admit: func(ctx context.Context, tx *store.Tx) error { return s.admit(ctx, tx, a) }}
	return r, nil
}

func orNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
