package pawapay

import (
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"till"
	"till/provider"
	"till/provider/wire"
)

// Operator is one account at pawaPay.
type Operator struct {
	c             Config
	base          string
	host          string // the authority of the base URL
	client        *wire.Client
	now           func() time.Time
	routes        map[routeKey]*Route
	signer        *ecdsa.PrivateKey // nil: requests are not signed
	keys          *keyring
	answerLog     *wire.AnswerLog
	log           *slog.Logger
	callbackHosts []string // hosts under which callbacks come
	payment       *service
	payout        *service
}

// New returns an operator, or all mistakes in its configuration.
func New(c Config, d provider.Deps) (*Operator, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("pawapay: %w", err)
	}
	o := &Operator{c: c, base: strings.TrimRight(c.BaseURL, "/"), client: wire.ClientOf(d), now: d.Now,
		answerLog: wire.NewAnswerLog(d), routes: mergeRoutes(c.Providers)}
	if o.log = d.Log; o.log == nil {
		o.log = slog.New(slog.DiscardHandler)
	}
	if o.now == nil {
		o.now = time.Now
	}
	if c.SigningKey != "" {
		o.signer, _ = signingKey(c.SigningKey) // Validate has parsed it
	}
	u, _ := url.Parse(o.base)
	o.host = authority(u)
	o.callbackHosts = c.CallbackAuthorities
	if back, err := url.Parse(d.CallbackURL); err == nil && len(o.callbackHosts) == 0 && back.Host != "" {
		o.callbackHosts = []string{authority(back)}
	}
	o.keys = newKeyring(o.now, o.fetchKeys)
	if len(c.Operations) == 0 || slices.Contains(c.Operations, "payments") {
		o.payment = &service{o, &deposits}
	}
	if slices.Contains(c.Operations, "payouts") {
		o.payout = &service{o, &payouts}
	}
	return o, nil
}

// Payments returns the provider of payments, nil if there is none.
func (o *Operator) Payments() provider.Provider { return provider.OrNil(o.payment) }

// Payouts returns the provider of payouts, nil if there is none.
func (o *Operator) Payouts() provider.Provider { return provider.OrNil(o.payout) }

// service is the account's deposits, its payouts or its refunds. That of payouts is given
// refunds, too, and passes them on.
type service struct {
	*Operator
	kind *serviceKind
}

var (
	_ provider.CallbackReader = (*service)(nil)
	_ provider.CompanyReader  = (*service)(nil)
	_ provider.MarketReader   = (*service)(nil)
	_ provider.Tester         = (*service)(nil)
	_ provider.Refunder       = (*service)(nil)
	_ provider.RefundTester   = (*service)(nil)
)

// of returns the service of a request that gives a payment back, and s without one.
func (s *service) of(refund *provider.Original) *service {
	if refund == nil {
		return s
	}
	return &service{s.Operator, &refunds}
}

// CanRefund implements provider.Refunder: a part of a deposit or all of it, if the provider
// can express the amount.
func (s *service) CanRefund(o provider.Original, amount till.Money) bool {
	route := s.routes[routeKey{o.Method, o.Country, amount.Currency}]
	if s.kind != &payouts || route == nil || !o.Holds(amount) {
		return false
	}
	_, ok := route.amount(amount, &refunds)
	return ok
}

// Fingerprint names the account as the configuration does. A new token does not change it:
// Company says whose it is.
func (s *service) Fingerprint() string {
	return strings.TrimSpace("pawapay " + s.kind.id + " " + s.base + " " + s.c.Account)
}

// Traits returns how pawaPay behaves.
func (s *service) Traits() provider.Traits {
	t := provider.Traits{
		ClientReference: true,
		ApprovalWindow:  s.c.window().Duration(),
		SubmitTimeout:   15 * time.Second,
		CheckTimeout:    10 * time.Second,
		// pawaPay's rule: "not found" counts from 15 minutes after the initiation on.
		NotFoundDelay: 15 * time.Minute,
		Poll:          15 * time.Second, // callbacks usually come first
		PollMax:       time.Hour,
		Grace:         5 * time.Minute,
		LateReads:     []time.Duration{5 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 72 * time.Hour},
		SubmitRate:    wire.Rate(s.c.SubmitRate, defaultRate),
		CheckRate:     wire.Rate(s.c.CheckRate, defaultRate),
	}
	if s.kind == &payouts {
		t.RefundsBounded = true
		// No customer approves. The window leaves time for a second send after "not found"
		// is proven.
		t.ApprovalWindow, t.Grace = time.Hour, 15*time.Minute
	}
	return t
}

// Submit requests a deposit, a payout or a refund.
func (s *service) Submit(ctx context.Context, r provider.Request) (provider.Result, error) {
	s = s.of(r.Refund)
	route := s.routes[routeKey{r.Method, r.Country, r.Amount.Currency}]
	if route == nil {
		return provider.Result{}, fmt.Errorf("pawapay: %w: no provider is configured for %s in %s with %s",
			provider.ErrNotSent, r.Method, r.Country, r.Amount.Currency)
	}
	amount, ok := route.amount(r.Amount, s.kind)
	if !ok {
		// Routes reject such an amount before a payment is created. It was not sent, and
		// never will be.
		return provider.Result{Outcome: provider.Rejected, Reason: reasonNotRepresentable, Code: codeNotRepresentable,
			Message: "this provider cannot express the amount"}, nil
	}
	body, err := json.Marshal(s.initiation(r, route, amount))
	if err != nil {
		return provider.Result{}, fmt.Errorf("pawapay: %w: %w", provider.ErrNotSent, err)
	}
	reply, err := s.call(ctx, http.MethodPost, s.kind.path, body)
	if err != nil {
		return provider.Result{}, fmt.Errorf("pawapay submit: %w", err)
	}
	result, err := readSubmit(s.kind, reply.Status, reply.Body, r.Reference.String())
	if err != nil {
		s.answerLog.Unreadable(s.kind.id+" submit", reply, err)
		return provider.Result{}, fmt.Errorf("pawapay submit: %w", err)
	}
	return s.vetted(result), nil
}

// Check reads the status of a deposit, payout or refund.
func (s *service) Check(ctx context.Context, q provider.Query) (provider.Result, error) {
	s = s.of(q.Refund)
	id := q.Reference.String()
	reply, err := s.call(ctx, http.MethodGet, s.kind.path+"/"+id, nil)
	if err != nil {
		return provider.Result{}, fmt.Errorf("pawapay check: %w", err)
	}
	result, err := readCheck(s.kind, reply.Status, reply.Body, id)
	if err != nil {
		s.answerLog.Unreadable(s.kind.id+" check", reply, err)
		return provider.Result{}, fmt.Errorf("pawapay check: %w", err)
	}
	return s.vetted(result), nil
}

// call makes one call. Only an initiation has a body, and only it is signed.
func (o *Operator) call(ctx context.Context, method, path string, body []byte) (*wire.Reply, error) {
	return o.callUpTo(ctx, wire.MaxAnswer, method, path, body)
}

// callUpTo is call for an answer that may have so many bytes.
func (o *Operator) callUpTo(ctx context.Context, most int, method, path string, body []byte) (*wire.Reply, error) {
	h := http.Header{
		"Authorization": {"Bearer " + o.c.APIToken},
		"Accept":        {"application/json"},
	}
	if body != nil {
		h["Content-Type"] = contentType
		if o.signer != nil {
			if err := o.sign(h, method, path, body); err != nil {
				return nil, fmt.Errorf("%w: signing: %w", provider.ErrNotSent, err)
			}
		}
	}
	reply, err := o.client.DoUpTo(ctx, most, method, o.base+path, h, body)
	if err == nil {
		err = wire.TooMany(reply)
	}
	return reply, err
}

var contentType = []string{"application/json"}

// authority returns an address's host and port as RFC 9421 requires: lower case, without
// the scheme's default port.
func authority(u *url.URL) string {
	host := strings.ToLower(u.Host)
	switch u.Scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	return host
}
