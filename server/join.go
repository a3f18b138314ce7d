package server

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"time"

	"till"
	"till/account"
	"till/api"
	"till/books"
	"till/checkout"
	"till/collect"
	"till/engine"
	"till/internal/seal"
	"till/internal/trace"
	"till/meter"
	"till/operators"
	"till/payout"
	"till/provider"
	"till/provider/sandbox"
	"till/store"
	"till/store/auditlog"
	"till/store/lookup"
	"till/webhook"
)

// Opened is what the parts of an instance are joined from. Join fills in the rest of
// Engine, API, Dispatch and Sender: they hold only what the instance decides itself.
type Opened struct {
	Store      *store.Store
	Ring       *seal.Ring
	Operators  *operators.Operators
	Sandbox    *sandbox.Operator // nil: none
	Operator   provider.Provider // replaces the sandbox's payments; nil: nothing does
	BaseURL    string
	PageURL    string   // where browsers open pages to pay on; "": there are none
	PageHosts  []string // the names of this service
	AcceptOnly bool     // it leaves the work to others
	Markets    func(connection string) provider.Markets

	Engine   engine.Config
	API      api.Config
	Sender   webhook.SenderConfig
	Dispatch webhook.Config

	FollowEvery time.Duration // as in checkout.Config

	Meter  *meter.Meter  // nil: nothing is counted
	Tracer *trace.Tracer // nil: nothing is traced
	Log    *slog.Logger
}

// Joined are the parts of an instance that serve clients, call operators and post webhooks,
// without addresses, files and pages.
type Joined struct {
	accepts    bool // only
	log        *slog.Logger
	sealKey    auditlog.ChainKey
	phoneKey   lookup.PhoneKey
	sandbox    *sandbox.Operator
	collector  *collect.Collector
	checkouts  *checkout.Checkouts
	limits     *checkout.Limits
	payouts    *payout.Disburser
	accounts   *account.Accounts
	sender     *webhook.Sender
	endpoints  *webhook.Endpoints
	dispatcher *webhook.Dispatcher // nil if it leaves the work to others
	handler    http.Handler
}

// Join connects the parts. Nothing runs yet: see Workers.
func Join(o *Opened) (j *Joined, err error) {
	j = &Joined{accepts: o.AcceptOnly, log: o.Log, sandbox: o.Sandbox}
	if j.phoneKey, err = lookup.NewPhoneKey(o.Ring.Root()); err != nil {
		return nil, err
	}
	if j.sealKey, err = books.ChainKey(o.Ring.Root()); err != nil {
		return nil, err
	}
	strays, err := books.NewStrays(o.Store, o.Ring)
	if err != nil {
		return nil, err
	}
	secrets, err := webhook.NewSecretSealer(o.Ring)
	if err != nil {
		return nil, err
	}
	j.accounts = account.New(o.Store, o.Log)
	j.joinEngines(o)
	if j.limits, err = checkout.NewLimits(o.Ring.Root()); err != nil {
		return nil, err
	}
	j.checkouts = checkout.New(checkout.Config{
		Store: o.Store, Collector: j.collector, Secret: o.Ring.Root(), PageURL: o.PageURL, Hosts: o.PageHosts, Limit: j.limits.Limit, Opening: j.limits.Opening, Blocked: j.limits.Blocked,
		Ended: func(ctx context.Context, a *till.Ask, why till.FailureReason) error {
			return j.limits.Note(ctx, o.Store, a, why)
		}, FollowEvery: o.FollowEvery, Log: o.Log,
	})
	j.joinWebhooks(o, secrets)
	a := o.API
	a.Store, a.Collector, a.Payouts, a.Checkouts, a.Accounts, a.Endpoints, a.Sandbox = o.Store, j.collector, j.payouts, j.checkouts, j.accounts, j.endpoints, o.Sandbox
	a.BaseURL, a.CallbackPolicies, a.Strays, a.TrustedProxies = o.BaseURL, o.callbackPolicies(), strays, o.Operators.File.TrustedProxies
	a.Meter, a.Tracer, a.Log = o.Meter, o.Tracer, o.Log
	j.handler = api.New(a)
	return j, nil
}

// joinEngines creates what sends payments and payouts.
func (j *Joined) joinEngines(o *Opened) {
	c := o.Engine
	c.Store, c.Secret, c.Ring, c.Limits, c.CallbackBase = o.Store, o.Ring.Root(), o.Ring, o.Operators.Limits(), o.BaseURL+"/callbacks"
	c.Hosts = o.PageHosts
	c.AcceptOnly, c.Slots, c.Markets, c.Meter, c.Tracer, c.Log = o.AcceptOnly, o.Operators.File.Calls, o.Markets, o.Meter, o.Tracer, o.Log
	c.Connections, c.Routes = o.connections(), o.Operators.Routes(till.SubjectPayment)
	j.collector = collect.New(c)
	c.Refunds = o.Operators.Refunds(o.connections(), o.payoutConnections())
	c.Connections, c.Routes, c.MaxBatch = o.payoutConnections(), o.Operators.Routes(till.SubjectPayout), 0
	j.payouts = payout.New(c)
}

// joinWebhooks creates the endpoints and the dispatcher. An instance that leaves the work
// to others has only the endpoints.
func (j *Joined) joinWebhooks(o *Opened, secrets *webhook.SecretSealer) {
	j.sender = webhook.NewSender(o.Sender)
	j.endpoints = &webhook.Endpoints{Store: o.Store, Secrets: secrets, Sender: j.sender, Allow: o.Sender.Allow}
	if o.AcceptOnly {
		return
	}
	d := o.Dispatch
	d.Store, d.Secrets, d.Sender, d.Meter, d.Tracer, d.Log = o.Store, secrets, j.sender, o.Meter, o.Tracer, o.Log
	j.dispatcher = webhook.New(d)
	j.endpoints.Wake = j.dispatcher.Wake
}

// Checkouts returns what makes orders that are paid on a page, and their asks.
func (j *Joined) Checkouts() *checkout.Checkouts { return j.checkouts }

// Handler returns the API.
func (j *Joined) Handler() http.Handler { return j.handler }

// Workers returns what runs beside the requests, by name.
func (j *Joined) Workers() map[string]func(context.Context) {
	w := map[string]func(context.Context){"accounts": j.accounts.Run, "health": j.collector.Watch, "payout health": j.payouts.Watch}
	if !j.accepts {
		w["collector"], w["payouts"], w["webhooks"], w["checkouts"] = j.collector.Run, j.payouts.Run, j.dispatcher.Run, j.checkouts.Follow
		if j.sandbox != nil {
			w["sandbox"] = j.sandbox.Run
		}
	}
	return w
}

// Close finishes what was begun; each part has so much time. Call it when the workers have
// returned and no request comes any more.
func (j *Joined) Close(most time.Duration) {
	end := func(failed string, parts ...func(context.Context) error) {
		ctx, cancel := context.WithTimeout(context.Background(), most)
		defer cancel()
		for _, closePart := range parts {
			if err := closePart(ctx); err != nil {
				j.log.Warn(failed, "error", err)
			}
		}
	}
	if j.dispatcher != nil {
		end("webhook deliveries not finished", j.dispatcher.Close)
	}
	j.sender.Close()
	end("operator calls not finished", j.collector.Close, j.payouts.Close)
}

// connections returns the instance's connections for payments.
func (o *Opened) connections() map[string]provider.Provider {
	c := map[string]provider.Provider{}
	if o.Sandbox != nil {
		c = operators.Connections(o.Sandbox)
	}
	if o.Operator != nil {
		c[till.SandboxConnection] = o.Operator
	}
	maps.Copy(c, o.Operators.Payments)
	return c
}

// payoutConnections returns the instance's connections for payouts.
func (o *Opened) payoutConnections() map[string]provider.Provider {
	c := map[string]provider.Provider{}
	if o.Sandbox != nil {
		c = operators.PayoutConnections(o.Sandbox)
	}
	maps.Copy(c, o.Operators.Payouts)
	return c
}

// callbackPolicies says how operators may call.
func (o *Opened) callbackPolicies() map[string]*api.CallbackPolicy {
	out := map[string]*api.CallbackPolicy{}
	for _, c := range o.Operators.File.Connections {
		payments, payouts := o.Operators.Payments[c.Name], o.Operators.Payouts[c.Name]
		d := &api.CallbackPolicy{Secrets: func() []string { return operators.CallbackSecrets(o.Ring, c.Name) }, Networks: c.CallbackNetworks, Claims: claimReaders(payments, payouts)}
		for _, p := range []provider.Provider{payments, payouts} {
			if called, ok := p.(provider.CallbackReader); ok {
				d.Readers = append(d.Readers, called)
			}
		}
		out[c.Name] = d
	}
	if o.Sandbox != nil {
		out[till.SandboxConnection] = &api.CallbackPolicy{Claims: claimReaders(o.Sandbox, o.Sandbox.Payouts())}
	}
	return out
}

// claimReaders returns the readers of a connection's callbacks.
func claimReaders(payments, payouts provider.Provider) map[till.SubjectKind]provider.ClaimReader {
	out := map[till.SubjectKind]provider.ClaimReader{}
	for kind, p := range map[till.SubjectKind]provider.Provider{till.SubjectPayment: payments, till.SubjectPayout: payouts} {
		if c, ok := p.(provider.ClaimReader); ok {
			out[kind] = c
		}
	}
	return out
}
