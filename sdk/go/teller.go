package till

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"
)

// Teller collects, opens checkouts, pays out, refunds, listens and sweeps. It is a client, a store and one
// function of yours.
type Teller[T any] struct {
	client *Client
	store  Store[T]
	fn     func(ctx context.Context, tx T, c Change) error
	cfg    tellerConfig

	onOther    func(ctx context.Context, tx T, e Event) error
	onProgress func(ctx context.Context, tx T, c Change) error

	sends chan struct{} // at most four at a time
	pace  pace
}

// tellerConfig is what options change.
type tellerConfig struct {
	paymentUntil, payoutUntil time.Duration // how long a wish is sent; a checkout like a payment, a refund like a payout
	lookAfter                 time.Duration // how long after a try one may ask whether it arrived
	openAfter                 time.Duration // how long a taken one is left to the other roads
	cursor                    string
	foreign, fromStart        bool
	onReport                  func(Report, error)
	now                       func() time.Time
}

// TellerOption changes a Teller.
type TellerOption func(*tellerConfig)

// WithSendUntil sets how long a payment and a payout are sent, 10 minutes and 24
// hours otherwise; a checkout as long as a payment, a refund as a payout. Nobody's phone rings at night for an order of the afternoon.
func WithSendUntil(payment, payout time.Duration) TellerOption {
	return func(c *tellerConfig) { c.paymentUntil, c.payoutUntil = payment, payout }
}

// WithLookAfter sets how long after the deadline of a try the service is asked
// whether it arrived, 60 s otherwise. A request can be that long on its way.
func WithLookAfter(d time.Duration) TellerOption { return func(c *tellerConfig) { c.lookAfter = d } }

// WithOpenAfter sets how long a payment that was taken is left to webhooks and
// the log before a sweep reads it, 2 minutes otherwise.
func WithOpenAfter(d time.Duration) TellerOption { return func(c *tellerConfig) { c.openAfter = d } }

// WithCursor names the cursor of the event log, for two tellers on one database.
func WithCursor(name string) TellerOption { return func(c *tellerConfig) { c.cursor = name } }

// WithForeign asks for news of all payments, payouts and refunds of the client,
// those too that this store did not make: with another store, or by hand. Their
// Change has no Order. Without it the function hears of its own orders only, and
// of refunds of their payments, also those that others made. Checkouts that this store
// did not make, as those of links, come to OnOther either way.
func WithForeign() TellerOption { return func(c *tellerConfig) { c.foreign = true } }

// WithFromStart begins a new store at the start of the event log. Without it a
// new store begins at the end: what was paid before it was made is no news.
func WithFromStart() TellerOption { return func(c *tellerConfig) { c.fromStart = true } }

// WithOnReport is told what each round of Run did, and the error of your function
// in a webhook, whose sender is told nothing about it.
func WithOnReport(f func(Report, error)) TellerOption {
	return func(c *tellerConfig) { c.onReport = f }
}

// WithClock sets the clock, for tests.
func WithClock(now func() time.Time) TellerOption { return func(c *tellerConfig) { c.now = now } }

const (
	maxSends = 4
	sweepGap = 50 * time.Millisecond // at most 20 calls a second
)

// NewTeller returns a teller. The function is called once for each change of an
// attempt, inside a transaction of the store. If it fails, nothing is saved and
// the change comes again. What does not roll back, as mail, belongs into a queue
// that it writes in the transaction.
func NewTeller[T any](client *Client, store Store[T], fn func(ctx context.Context, tx T, c Change) error, options ...TellerOption) *Teller[T] {
	t := &Teller[T]{client: client, store: store, fn: fn, sends: make(chan struct{}, maxSends)}
	t.cfg = tellerConfig{
		paymentUntil: 10 * time.Minute, payoutUntil: 24 * time.Hour, lookAfter: time.Minute, openAfter: 2 * time.Minute,
		cursor: "events", now: time.Now,
	}
	for _, option := range options {
		option(&t.cfg)
	}
	return t
}

// OnOther is told about events that are no change of an attempt, each once, and
// about checkouts that this store did not make. It
// is to be set before the teller is used; without it they are accepted and
// forgotten.
func (t *Teller[T]) OnOther(f func(ctx context.Context, tx T, e Event) error) { t.onOther = f }

// OnProgress is told about pending and processing, each once. It is to be set
// before the teller is used.
func (t *Teller[T]) OnProgress(f func(ctx context.Context, tx T, c Change) error) { t.onProgress = f }

// Collect is a wish to be paid.
type Collect struct {
	Order       string // your id of what is paid
	Method      string
	Country     string
	Amount      Money
	Phone       string // digits only; see ReadPhone
	Name, Email string
	Reference   string // Order if empty
	Description string
	Charge      *CreatePaymentCharge
	Tax         *CreatePaymentTax
	Metadata    map[string]any
}

// PayOut is a wish to pay somebody.
type PayOut struct {
	Order       string // your id of what is paid out
	Method      string
	Country     string
	Amount      Money
	Phone       string
	Reference   string // Order if empty
	Description string
	Metadata    map[string]any
}

// GiveBack is a wish to give a payment back, all of it or a part, to who paid it.
type GiveBack struct {
	Order       string // your id of what was paid
	Payment     string // the id of the payment, as Change.Extra; needed only if the order was paid more than once
	Amount      *Money // nil for all that is left
	Reason      string // as duplicate; see the guide
	Reference   string // Order if empty
	Description string
	Metadata    map[string]any
}

// InvalidWish says what is wrong with a wish before anything was written.
type InvalidWish struct{ Member, Problem string }

func (e *InvalidWish) Error() string { return "till: " + e.Member + " " + e.Problem }

// AttemptOpen says that the order has an attempt with another wish that may
// still bring money; or a refund that may still give it back.
type AttemptOpen struct {
	Order     string
	State     string
	ExpiresAt time.Time // when the customer's time ends, or when it is sent no more
}

func (e *AttemptOpen) Error() string {
	return fmt.Sprintf("till: order %s has an open attempt (%s)", e.Order, e.State)
}

// AlreadyPaid says that an attempt for the order was paid.
type AlreadyPaid struct{ Order string }

func (e *AlreadyPaid) Error() string { return "till: order " + e.Order + " is paid already" }

// NotPaid says that no attempt for the order was paid, so there is nothing to
// give back.
type NotPaid struct{ Order string }

func (e *NotPaid) Error() string { return "till: order " + e.Order + " is not paid" }

// Collect writes a wish in your transaction, beside the order, with its key and
// the bytes that will be sent. It makes no call. The same wish again while the
// attempt is open changes nothing: a double click is one payment.
func (t *Teller[T]) Collect(ctx context.Context, tx T, c Collect) error {
	if err := check(c.Order, c.Method, c.Amount, c.Phone, c.Description, c.Reference); err != nil {
		return err
	}
	metadata, err := metadataOf(c.Metadata)
	if err != nil {
		return err
	}
	return t.put(ctx, tx, KindPayment, c.Order, t.cfg.paymentUntil, func(key string) ([]byte, error) {
		return render(CreatePayment{
			Method: c.Method, Country: text(c.Country), Amount: c.Amount, IdempotencyKey: key,
			Customer:  CreatePaymentCustomer{Phone: c.Phone, Name: text(c.Name), Email: text(c.Email)},
			Reference: text(referenceOf(c.Reference, c.Order)), Description: text(c.Description),
			Charge: c.Charge, Tax: c.Tax, Metadata: metadata,
		})
	})
}

// PayOut writes a wish to pay somebody in your transaction, like Collect.
func (t *Teller[T]) PayOut(ctx context.Context, tx T, p PayOut) error {
	if err := check(p.Order, p.Method, p.Amount, p.Phone, p.Description, p.Reference); err != nil {
		return err
	}
	metadata, err := metadataOf(p.Metadata)
	if err != nil {
		return err
	}
	return t.put(ctx, tx, KindPayout, p.Order, t.cfg.payoutUntil, func(key string) ([]byte, error) {
		return render(CreatePayout{
			Method: p.Method, Country: text(p.Country), Amount: p.Amount, IdempotencyKey: key,
			Recipient: CreatePayoutRecipient{Phone: p.Phone},
			Reference: text(referenceOf(p.Reference, p.Order)), Description: text(p.Description), Metadata: metadata,
		})
	})
}

// Refund writes a wish to give a payment back in your transaction, like Collect.
// The order must be paid, and no refund of it may be open: the same wish again is
// refused, too, because two refunds of the same sum may be meant.
func (t *Teller[T]) Refund(ctx context.Context, tx T, g GiveBack) error {
	if err := checkOrder(g.Order, g.Description, g.Reference); err != nil {
		return err
	}
	if g.Amount != nil {
		if err := checkAmount(*g.Amount); err != nil {
			return err
		}
	}
	metadata, err := metadataOf(g.Metadata)
	if err != nil {
		return err
	}
	payment := g.Payment
	if payment == "" {
		if payment, err = t.paidBy(ctx, tx, g.Order); err != nil {
			return err
		}
	}
	return t.put(ctx, tx, KindRefund, g.Order, t.cfg.payoutUntil, func(key string) ([]byte, error) {
		return render(CreateRefund{
			PaymentID: payment, Amount: g.Amount, IdempotencyKey: key, Reason: text(g.Reason),
			Reference: text(referenceOf(g.Reference, g.Order)), Description: text(g.Description), Metadata: metadata,
		})
	})
}

// paidBy returns the id of the one payment that an order was paid by.
func (t *Teller[T]) paidBy(ctx context.Context, tx T, order string) (id string, err error) {
	attempts, err := t.store.Attempts(ctx, tx, KindPayment, order)
	if err != nil {
		return "", err
	}
	pages, err := t.store.Attempts(ctx, tx, KindCheckout, order)
	if err != nil {
		return "", err
	}
	for _, a := range append(attempts, pages...) {
		if !a.paid() {
			continue
		}
		if id != "" || a.Status == statusOverpaid {
			return "", &InvalidWish{"payment", "is missing: the order was paid more than once"}
		}
		if id = a.RemoteID; a.Kind == KindCheckout {
			id = keptOf(a.Details).PaymentID
		}
	}
	if id == "" {
		return "", &NotPaid{order}
	}
	return id, nil
}

// What the service takes, checked before a row is written that it would refuse.
const (
	maxOrder       = 128
	maxReference   = 128
	maxDescription = 255
	maxAmount      = 15 // digits
	maxPhone       = 15
)

func check(order, method string, amount Money, phone, description, reference string) error {
	if err := checkOrder(order, description, reference); err != nil {
		return err
	}
	if method == "" {
		return &InvalidWish{"method", "is missing"}
	}
	if err := checkAmount(amount); err != nil {
		return err
	}
	if phone == "" || len(phone) > maxPhone || !digits(phone) {
		return &InvalidWish{"phone", "is digits only, calling code first"}
	}
	return nil
}

func checkAmount(amount Money) error {
	if err := amount.Check(); err != nil {
		return &InvalidWish{"amount", "is digits in minor units of a currency"}
	}
	if amount.Value == "0" || len(amount.Value) > maxAmount {
		return &InvalidWish{"amount", "is more than nothing and has at most 15 digits"}
	}
	return nil
}

func checkOrder(order, description, reference string) error {
	if order == "" || len(order) > maxOrder {
		return &InvalidWish{"order", "has 1 to 128 bytes"}
	}
	if utf8.RuneCountInString(description) > maxDescription || utf8.RuneCountInString(reference) > maxReference {
		return &InvalidWish{"description or reference", "is too long"}
	}
	return nil
}

func metadataOf(m map[string]any) (json.RawMessage, error) {
	if m == nil {
		return nil, nil
	}
	b, err := render(m)
	if err != nil {
		return nil, &InvalidWish{"metadata", "is no JSON"}
	}
	return b, nil
}

func referenceOf(reference, order string) string {
	if reference == "" {
		return order
	}
	return reference
}

// text is nil for nothing.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// newKey draws a UUID of version 4.
func newKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails; it ends the program instead
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Errors of a Teller.
var (
	ErrNoAttempt  = errors.New("till: the order has no attempt")
	ErrStillOpen  = errors.New("till: the outcome is not known yet")
	ErrMayArrive  = errors.New("till: the attempt may have arrived, so it cannot be withdrawn")
	ErrNotLost    = errors.New("till: only an attempt that is lost is sent again by hand")
	ErrNotStuck   = errors.New("till: there is no open attempt to abandon")
	ErrOtherWrite = errors.New("till: another program changed the attempt at the same moment")
)

// pace keeps calls apart.
type pace struct {
	mu   sync.Mutex
	next time.Time
}

// wait waits for its turn.
func (p *pace) wait(ctx context.Context) error {
	p.mu.Lock()
	now := time.Now()
	at := p.next
	if at.Before(now) {
		at = now
	}
	p.next = at.Add(sweepGap)
	p.mu.Unlock()
	if at == now {
		return ctx.Err()
	}
	return sleep(ctx, at.Sub(now))
}
