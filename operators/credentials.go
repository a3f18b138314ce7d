package operators

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"till"
	"till/config"
	"till/internal/loop"
	"till/provider"
	"till/store"
)

// rereadInterval is the shortest time between two reads of a connection's credentials.
const rereadInterval = time.Minute

// TestTimeout is how long an operator's test may take: a token alone can take
// MTN 20 s.
const TestTimeout = 45 * time.Second

// maxReread is how long a check of all connections may take: each command has 10 s.
const maxReread = 30 * time.Minute

// Credentials reads the credentials of connections again after an operator refused them.
// So rotating an operator's key needs no restart.
type Credentials struct {
	store    *store.Store
	adapters Adapters
	deps     func(c *config.Connection) provider.Deps
	waker    *loop.Waker
	all      atomic.Bool // a person asks to read all again
	log      *slog.Logger

	accounts []*liveAccount
}

// liveAccount is a connection whose credentials can change.
type liveAccount struct {
	connection        *config.Connection
	payments, payouts *renewed // nil: it does not do this
	refused           atomic.Bool
	readAt            time.Time // zero: not since the start
}

// companyOf returns what makes sure whose account a connection is, for payments and payouts.
func (k *Credentials) companyOf(connection string, payments, payouts provider.Provider) (of, ofPayouts *company) {
	return newCompany(k.store, k.log, connection, till.SubjectPayment, payments), newCompany(k.store, k.log, connection, till.SubjectPayout, payouts)
}

// Renew replaces the opened connections, whose credentials can be read again, by ones that
// notice a refusal; and those whose operator says whose account it is by ones that ask.
func (o *Operators) Renew(s *store.Store, a Adapters, deps func(c *config.Connection) provider.Deps, log *slog.Logger) *Credentials {
	if a == nil {
		a = Builtin
	}
	k := &Credentials{store: s, adapters: a, deps: deps, waker: loop.NewWaker(), log: log}
	for _, c := range o.File.Connections {
		payments, payouts := k.companyOf(c.Name, o.Payments[c.Name], o.Payouts[c.Name])
		if !c.CanReread() && payments == nil && payouts == nil {
			continue
		}
		a := &liveAccount{connection: c}
		note := func(err error) {
			if errors.Is(err, provider.ErrCredentials) && !a.refused.Swap(true) {
				k.waker.Wake()
			}
		}
		if p := o.Payments[c.Name]; p != nil {
			a.payments = newRenewed(p, payments, note)
			o.Payments[c.Name] = a.payments.asProvider()
		}
		if p := o.Payouts[c.Name]; p != nil {
			a.payouts = newRenewed(p, payouts, note)
			o.Payouts[c.Name] = a.payouts.asProvider()
		}
		k.accounts = append(k.accounts, a)
	}
	return k
}

// Any reports whether there are credentials that can change, or accounts to be confirmed.
func (k *Credentials) Any() bool { return len(k.accounts) > 0 }

// Reread makes Run read all credentials again at once.
func (k *Credentials) Reread() {
	k.all.Store(true)
	k.waker.Wake()
}

// Run reads again what was refused, each connection at most once a minute.
func (k *Credentials) Run(ctx context.Context) {
	loop.Run(ctx, loop.Options{Interval: rereadInterval, MaxStep: maxReread, Wake: k.waker.C(), Step: func(ctx context.Context) time.Duration {
		k.Look(ctx, k.all.Swap(false))
		return -1
	}})
}

// Look reads again the credentials that were refused, or all if a person asks. It asks first
// whose account the connections are, so that this is known before anything changes.
func (k *Credentials) Look(ctx context.Context, all bool) {
	for _, a := range k.accounts {
		a.payments.confirm(ctx)
		a.payouts.confirm(ctx)
		due := a.refused.Load() && time.Since(a.readAt) >= rereadInterval
		if ctx.Err() != nil || !all && !due {
			continue
		}
		works := !a.refused.Swap(false)
		a.readAt = time.Now()
		if err := k.reread(ctx, a, works); err != nil {
			k.log.Warn("credentials not taken", "connection", a.connection.Name, "error", err)
		}
	}
}

var errOtherAccount = errors.New("they are those of another account: payments under way must be checked where they were sent; restart the service once none is open")

// reread reads a connection's credentials, and uses them from the next call on if they
// changed. Calls under way go on with the old ones. While the old ones work, the operator
// is asked first: a wrong file must not stop what runs.
func (k *Credentials) reread(ctx context.Context, a *liveAccount, works bool) error {
	settings, changed, err := a.connection.Reread()
	if err != nil || !changed {
		return err
	}
	c := *a.connection
	c.Settings = settings
	opened, err := k.adapters[c.Operator].open(settings, k.deps(&c))
	if err != nil {
		return err
	}
	if !a.payments.fits(opened.Payments()) || !a.payouts.fits(opened.Payouts()) {
		return errOtherAccount
	}
	if works {
		if err := k.try(ctx, c.Name, opened.Payments(), opened.Payouts()); err != nil {
			return err
		}
	}
	payments, payouts := k.companyOf(c.Name, opened.Payments(), opened.Payouts())
	asking, cancel := context.WithTimeout(ctx, TestTimeout)
	defer cancel()
	if err := errors.Join(payments.ask(asking), payouts.ask(asking)); err != nil {
		return err
	}
	a.payments.swap(opened.Payments(), payments)
	a.payouts.swap(opened.Payouts(), payouts)
	a.connection = &c
	k.log.Info("credentials taken", "connection", c.Name)
	return nil
}

// try asks the operator whether it takes new credentials, without moving money. Only a
// refusal is an error. If nobody knows, they are taken, and the log says so.
func (k *Credentials) try(ctx context.Context, connection string, providers ...provider.Provider) error {
	for _, p := range providers {
		tester, ok := p.(provider.Tester)
		if !ok {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, TestTimeout)
		err := tester.Test(ctx)
		cancel()
		switch _, unproven := errors.AsType[provider.Unproven](err); {
		case errors.Is(err, provider.ErrCredentials):
			return fmt.Errorf("the operator refuses them, and those from before stay in use: %w", err)
		case err != nil && !unproven:
			k.log.Warn("credentials not tested", "connection", connection, "error", err)
		}
	}
	return nil
}

// renewed is a provider that can be replaced by one of the same account.
type renewed struct {
	current atomic.Pointer[withCompany]
	note    func(err error) // of each call
}

// withCompany is a provider, and what makes sure whose account it is.
type withCompany struct {
	provider.Provider
	company *company // nil: its operator does not say
}

func newRenewed(p provider.Provider, c *company, note func(error)) *renewed {
	r := &renewed{note: note}
	r.swap(p, c)
	return r
}

func (r *renewed) get() provider.Provider { return r.current.Load().Provider }

// confirm asks the operator whose account it is, if that is not known.
func (r *renewed) confirm(ctx context.Context) {
	if r == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, TestTimeout)
	defer cancel()
	r.current.Load().company.confirm(ctx) // who sends then says why it cannot
}

// fits reports whether p is for the same account.
func (r *renewed) fits(p provider.Provider) bool {
	if r == nil || p == nil {
		return r == nil && p == nil
	}
	return r.get().Fingerprint() == p.Fingerprint()
}

func (r *renewed) swap(p provider.Provider, c *company) {
	if r != nil {
		r.current.Store(&withCompany{p, c})
	}
}

// Submit implements provider.Provider. Nothing is sent to an account that may be another
// company's.
func (r *renewed) Submit(ctx context.Context, q provider.Request) (provider.Result, error) {
	a := r.current.Load()
	if err := a.mayRefund(q.Refund); err != nil {
		return provider.Result{}, err
	}
	if err := a.company.confirm(ctx); err != nil {
		r.note(err)
		return provider.Result{}, fmt.Errorf("%w: %w", provider.ErrNotSent, err)
	}
	result, err := a.Submit(ctx, q)
	r.note(err)
	return result, err
}

// Check implements provider.Provider. "Not found" proves nothing in an account that may be
// another company's.
func (r *renewed) Check(ctx context.Context, q provider.Query) (provider.Result, error) {
	a := r.current.Load()
	if err := a.mayRefund(q.Refund); err != nil {
		return provider.Result{}, err
	}
	result, err := a.Check(ctx, q)
	if err == nil && result.Outcome == provider.NotFound {
		if err = a.company.confirm(ctx); err != nil {
			result = provider.Result{}
		}
	}
	r.note(err)
	return result, err
}

// Traits implements provider.Provider.
func (r *renewed) Traits() provider.Traits { return r.get().Traits() }

// Fingerprint implements provider.Provider.
func (r *renewed) Fingerprint() string { return r.get().Fingerprint() }

// Serves implements provider.Selective.
func (r *renewed) Serves(method, country, currency string) bool {
	return provider.Serves(r.get(), method, country, currency)
}

// SendDelay implements provider.Delayer.
func (r *renewed) SendDelay(q provider.Request) time.Duration {
	if d, ok := r.get().(provider.Delayer); ok {
		return d.SendDelay(q)
	}
	return 0
}

// CanRefund implements provider.Refunder: false if its provider is none.
func (r *renewed) CanRefund(o provider.Original, amount till.Money) bool {
	f, ok := r.get().(provider.Refunder)
	return ok && f.CanRefund(o, amount)
}

// mayRefund returns nil unless a request gives a payment back by naming it, and the provider
// does not do that: it would send a payout.
func (a *withCompany) mayRefund(of *provider.Original) error {
	if _, ok := a.Provider.(provider.Refunder); of != nil && !ok {
		return fmt.Errorf("%w: the operator gives no payment back by naming it", provider.ErrNotSent)
	}
	return nil
}

// ReadClaim implements provider.ClaimReader.
func (r *renewed) ReadClaim(body []byte) (provider.Claim, bool) {
	if c, ok := r.get().(provider.ClaimReader); ok {
		return c.ReadClaim(body)
	}
	return provider.Claim{}, false
}

// renewable returns r, whatever it was wrapped in.
func (r *renewed) renewable() *renewed { return r }

// askMarkets asks the operator what the account may do, once it is known to be the right one.
func (r *renewed) askMarkets(ctx context.Context) ([]provider.MarketInfo, error) {
	a := r.current.Load()
	reader, ok := a.Provider.(provider.MarketReader)
	if !ok {
		return nil, errors.New("the operator does not say what an account may do")
	}
	err := a.company.confirm(ctx)
	var all []provider.MarketInfo
	if err == nil {
		all, err = reader.Markets(ctx)
	}
	r.note(err)
	return all, err
}

// asProvider returns it with what its provider has beyond Provider, where the engine asks
// whether it has it.
func (r *renewed) asProvider() provider.Provider {
	_, callbacks := r.get().(provider.CallbackReader)
	_, handles := r.get().(provider.HandleReader)
	switch {
	case callbacks && handles:
		return struct {
			*renewed
			readsCallbacks
			readsHandles
		}{r, readsCallbacks{r}, readsHandles{r}}
	case callbacks:
		return struct {
			*renewed
			readsCallbacks
		}{r, readsCallbacks{r}}
	case handles:
		return struct {
			*renewed
			readsHandles
		}{r, readsHandles{r}}
	}
	return r
}

type readsCallbacks struct{ of *renewed }

// ReadCallback implements provider.CallbackReader.
func (c readsCallbacks) ReadCallback(in provider.CallbackRequest) (provider.Callback, error) {
	return c.of.get().(provider.CallbackReader).ReadCallback(in)
}

type readsHandles struct{ of *renewed }

// HandleInCallback implements provider.HandleReader.
func (h readsHandles) HandleInCallback(body []byte) string {
	return h.of.get().(provider.HandleReader).HandleInCallback(body)
}
