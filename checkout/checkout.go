package checkout

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"till"
	"till/collect"
	"till/engine"
	"till/store"
	"till/store/checkouts"
)

// Config configures Checkouts.
type Config struct {
	Store     *store.Store
	Collector *collect.Collector
	// Secret is the root of the installation's secret: keys of asks derive from it.
	Secret []byte
	// PageURL is the address under which pages are, without a slash at its end; "": there are none.
	PageURL string
	// Hosts are the names of this service: no way back leads to one of them.
	Hosts []string
	// Limit decides whether a new ask may be made, in the commit that writes it down, under the
	// lock of the client's head. Its error is what Ask returns. nil: every one may.
	Limit func(ctx context.Context, tx *store.Tx, c *till.Checkout, a *till.Ask) error
	// Ended is told what became of an ask, with the reason if it failed. It may be told more
	// than once. nil: nobody is.
	Ended func(ctx context.Context, a *till.Ask, why till.FailureReason) error
	// Opening decides whether a link may open one more checkout, in the commit that makes it, under
	// the same lock. nil: it always may.
	Opening func(ctx context.Context, tx *store.Tx, l *till.Link) error
	// Blocked reports whether pages never ask a number. nil: they may ask each.
	Blocked func(ctx context.Context, tx *store.Tx, phone string) (bool, error)
	// FollowEvery is how long Follow waits without a hint; 0 means two seconds.
	FollowEvery time.Duration
	Log         *slog.Logger // nil: nothing is logged
}

// Checkouts makes checkouts and asks. It is safe for concurrent use.
type Checkouts struct {
	c     Config
	keys  Keys
	rows  engine.Keys
	known sync.Map // by id, clients that have had a checkout, as far as this instance has seen
}

// New returns Checkouts.
func New(c Config) *Checkouts {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Checkouts{c: c, keys: NewKeys(c.Secret), rows: engine.NewKeys(till.SubjectPayment, c.Secret)}
}

// Keys returns what derives from the installation's secret.
func (s *Checkouts) Keys() Keys { return s.keys }

// HasPages reports whether this service has pages to pay on.
func (s *Checkouts) HasPages() bool { return s.c.PageURL != "" }

// URL returns the address of a checkout's page, "" if there are no pages.
func (s *Checkouts) URL(c *till.Checkout) string {
	if s.c.PageURL == "" {
		return ""
	}
	return s.c.PageURL + "/p/" + c.Token
}

// View is a checkout as its page shows it.
type View struct {
	Checkout *till.Checkout
	Last     *till.Ask         // with what there is of its payment; nil: nothing was asked
	Payment  *store.PaymentRow // of the last ask; nil: none
	Link     *till.Link        // the address is a link's: there is no checkout yet; nil elsewhere
	Now      till.Time         // the database's time
	Off      bool              // the house has switched the client's pages off; only Find says so
}

// Find returns what is at an address, a checkout or a link: three reads, each by key. It returns
// CodeCheckoutNotFound for what is no address.
func (s *Checkouts) Find(ctx context.Context, token string) (v View, err error) {
	known, ok := ParseToken(token)
	if !ok {
		return v, notFound()
	}
	err = s.c.Store.View(ctx, func(tx *store.Tx) error {
		at, found, err := checkouts.ByToken(ctx, tx, known)
		switch {
		case err != nil:
			return err
		case found && at.Kind == checkouts.KindCheckout:
			v, err = view(ctx, tx, at.Ref)
			v.Off = at.Off
			return err
		case found && at.Kind == checkouts.KindLink:
			row, err := checkouts.GetLink(ctx, tx, at.Ref)
			if err == nil {
				v.Link, v.Now, v.Off = &row.Link, tx.Now(), at.Off
			}
			return err
		}
		return notFound()
	})
	return v, s.unavailable("checkout not read", err)
}

// View returns a checkout as its page shows it.
func (s *Checkouts) View(ctx context.Context, ref store.Ref) (v View, err error) {
	err = s.c.Store.View(ctx, func(tx *store.Tx) (err error) {
		v, err = view(ctx, tx, ref)
		return err
	})
	return v, s.unavailable("checkout not read", err)
}

func view(ctx context.Context, tx *store.Tx, ref store.Ref) (v View, err error) {
	v.Now = tx.Now()
	row, last, err := checkouts.WithLast(ctx, tx, ref)
	if err != nil {
		return v, err
	}
	v.Checkout, v.Last = &row.Checkout, last
	if last == nil {
		return v, nil
	}
	if v.Payment, err = tx.PaymentByKey(ctx, ref.Client, last.Key); err == nil && v.Payment != nil {
		about(last, v.Payment)
	}
	return v, err
}

// about notes what there is of an ask's payment.
func about(a *till.Ask, p *store.PaymentRow) {
	a.PaymentID, a.Status, a.Credit = p.ID, p.Status, p.LateEvent
	if p.Status == till.Success {
		a.Credit = p.FinalEvent
	}
}

func notFound() error { return till.Errorf(till.CodeCheckoutNotFound, "there is no such checkout") }

// unavailable turns a database error into the error that a client sees, and logs it.
func (s *Checkouts) unavailable(doing string, err error) error {
	var slow *Slow
	if err == nil || errors.As(err, &slow) || errors.Is(err, ErrOver) || errors.Is(err, ErrAsks) || errors.Is(err, ErrForm) || errors.Is(err, ErrLinkOff) || errors.Is(err, ErrBlocked) {
		return err
	}
	return s.c.Collector.Unavailable(doing, err)
}

// MayAsk reports whether a new ask may be made by a view. Ask decides again, under the lock.
func (v *View) MayAsk() bool {
	return !v.Checkout.Over(v.Now) && (v.Last == nil || v.Last.Stand() == till.AskEnded)
}

// Next returns the number that a new ask has.
func (v *View) Next() int {
	if v.Last == nil {
		return 1
	}
	return v.Last.N + 1
}

// Client is who asks: the merchant.
type Client = engine.Client
