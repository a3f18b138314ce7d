package checkout

import (
	"context"
	"errors"
	"strconv"
	"time"
	"unicode/utf8"

	"till"
	"till/collect"
	"till/internal/request"
	"till/store"
	"till/store/checkouts"
)

// Why Open opens nothing.
var (
	ErrLinkOff = errors.New("checkout: the link is switched off, or its time is over")
	ErrOpened  = errors.New("checkout: the form has opened a checkout of another amount or reference")
)

// Opening is what a payer wants to pay on a link's page.
type Opening struct {
	Nonce     []byte // of the form: it names the checkout, so that a form that is posted twice opens one
	Amount    int64  // minor units; the link's own where that is fixed
	Reference string // what the link asks for; "" nothing
}

// Open makes a payer's checkout of a link, or returns the one that the form has opened before. It
// returns ErrLinkOff, ErrOpened with what the form opened, CodeValidationFailed with what the
// link or its client's methods do not take, and the errors of Create.
func (s *Checkouts) Open(ctx context.Context, who Client, link store.Ref, o Opening) (View, error) {
	if who.Client == nil || who.ID != link.Client {
		return View{}, noLink()
	}
	key, token := s.keys.Opened(link.Client, link.ID, o.Nonce), NewToken()
	var ref store.Ref
	var other bool
	_, err := store.RetryUnknown(ctx, s.c.Store.Update, func(tx *store.Tx, _ bool) (err error) {
		ref, other, err = s.open(ctx, tx, who, link, o, key, token)
		return err
	})
	if err != nil {
		return View{}, s.unavailable("checkout of a link not made", err)
	}
	s.known.Store(who.ID, true)
	v, err := s.View(ctx, ref)
	if err == nil && other {
		err = ErrOpened
	}
	return v, err
}

// open writes the checkout, under the lock of the client's head.
func (s *Checkouts) open(ctx context.Context, tx *store.Tx, who Client, link store.Ref, o Opening, key till.ID, token string) (ref store.Ref, other bool, err error) {
	heads, suspended, err := tx.LockMakers(ctx, []till.ID{who.ID})
	if err != nil {
		return ref, false, err
	}
	made, err := checkouts.OfKey(ctx, tx, who.ID, key)
	if err != nil {
		return ref, false, err
	}
	if made != nil {
		return made.Ref(), made.Amount.Minor != o.Amount || made.Reference != o.Reference, nil
	}
	row, err := checkouts.GetLink(ctx, tx, link)
	if err != nil {
		return ref, false, err
	}
	l := &row.Link
	switch {
	case suspended[who.ID]:
		return ref, false, &till.Error{Code: till.CodeClientSuspended}
	case !l.Takes(tx.Now()):
		return ref, false, ErrLinkOff
	}
	r, err := requestOf(l, o, key)
	if err != nil {
		return ref, false, err
	}
	sum, _ := r.hash(bodyVersion)
	c := &checkouts.Row{BodyHash: sum, BodyVersion: bodyVersion, Checkout: till.Checkout{
		ClientID: who.ID, IdempotencyKey: key.String(), Token: token, LinkID: l.ID, State: till.CheckoutOpen, Amount: till.Money{Minor: o.Amount, Currency: l.Amount.Currency},
		Reference: o.Reference, Country: l.Country, Methods: l.Methods, ReturnURL: l.ReturnURL, Language: l.Language, Document: r.order().OrderDocument(),
	}}
	if err := s.refusal(who, r, c); err != nil {
		return ref, false, err
	}
	if s.c.Opening != nil {
		if err := s.c.Opening(ctx, tx, l); err != nil {
			return ref, false, err
		}
	}
	if err := s.place(ctx, tx, who, heads[who.ID], c, lifeOf(l, tx.Now())); err != nil {
		return ref, false, err
	}
	return c.Ref(), false, tx.SaveHeads(ctx, heads)
}

// lifeOf returns how long a payer's checkout can be paid: no longer than the link, but for a
// moment to finish what was begun.
func lifeOf(l *till.Link, now till.Time) time.Duration {
	if l.ExpiresAt.IsZero() {
		return DefaultLife
	}
	return min(DefaultLife, max(MinLife, l.ExpiresAt.Sub(now)))
}

// requestOf returns the order that a payer makes on a link.
func requestOf(l *till.Link, o Opening, key till.ID) (*Request, error) {
	var v request.Validator
	if !l.Fits(o.Amount) {
		v.Add("/amount/value", till.FieldAmountOutOfBounds, "is not an amount that the link takes")
	}
	if n := utf8.RuneCountInString(o.Reference); l.AskRequired && n == 0 || l.AskLabel == "" && n > 0 || n > till.MaxAskReference || !plain(o.Reference) {
		v.Add("/reference", till.FieldInvalidFormat, "is not what the link asks for")
	}
	if len(v.Fields) > 0 {
		return nil, v.Refusal()
	}
	value, id, text := strconv.FormatInt(o.Amount, 10), key.String(), LinkText(l)
	order, err := collect.OfOrder(l.Document)
	if err != nil {
		return nil, err
	}
	r := &Request{Amount: &request.Amount{Value: &value, Currency: &l.Amount.Currency}, IdempotencyKey: &id, Reference: orNil(o.Reference), Description: &text,
		Metadata: order.Metadata, Country: orNil(l.Country), ReturnURL: orNil(l.ReturnURL), Language: orNil(l.Language)}
	if l.Methods != nil {
		r.Methods = &l.Methods
	}
	return r, nil
}

// maxOrderText is how long the description of an order is at most.
const maxOrderText = 255

// LinkText returns what a link's payments are described as: its title, and its description
// behind it.
func LinkText(l *till.Link) string {
	text := l.Title
	if d := LinkDescription(l); d != "" {
		text += " – " + d
	}
	if utf8.RuneCountInString(text) > maxOrderText {
		text = string([]rune(text)[:maxOrderText-1]) + "…"
	}
	return text
}

// LinkDescription returns the text below a link's title, "" if it has none.
func LinkDescription(l *till.Link) string {
	order, err := collect.OfOrder(l.Document)
	if err != nil {
		return ""
	}
	return request.TextOf(order.Description)
}

func noLink() error { return till.Errorf(till.CodeLinkNotFound, "there is no such link") }

// Opened returns the checkout that a form of a link has opened, nil if it has opened none.
func (s *Checkouts) Opened(ctx context.Context, link store.Ref, nonce []byte) (c *till.Checkout, err error) {
	err = s.c.Store.View(ctx, func(tx *store.Tx) error {
		row, err := checkouts.OfKey(ctx, tx, link.Client, s.keys.Opened(link.Client, link.ID, nonce))
		if row != nil {
			c = &row.Checkout
		}
		return err
	})
	return c, s.unavailable("checkout of a link not read", err)
}
