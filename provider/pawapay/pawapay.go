package pawapay

import (
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"till/provider"
	"till/provider/wire"
)

// Config is one account at pawaPay. Secrets are filled in from files or the
// environment: api_token_file or api_token_env, signing_key_file or
// signing_key_env.
type Config struct {
	// BaseURL is https://api.sandbox.pawapay.io or https://api.pawapay.io.
	BaseURL string `toml:"base_url"`
	// APIToken is made in the dashboard. The sandbox and the live system have
	// different ones.
	APIToken string `toml:"-" secret:"api_token"`
	// Account tells two accounts at one base URL apart. It goes nowhere: the
	// token may change while the account stays.
	Account string `toml:"account"`
	// Operations are "payments", "payouts" or both; empty means payments. Only
	// what is named is served: paying out is never on by accident.
	Operations []string `toml:"operations"`
	// Providers extend or replace rows of the table in routes.go.
	Providers []Route `toml:"provider"`
	// CustomerMessage is what the customer reads where a payment has no
	// description that fits: 4 to 22 letters, digits and spaces.
	CustomerMessage string `toml:"customer_message"`

	// SigningKey is a private key (PEM, EC P-256); with it every initiation is
	// signed. SigningKeyID is what the dashboard calls its public half.
	SigningKey   string `toml:"-" secret:"signing_key"`
	SigningKeyID string `toml:"signing_key_id"`
	// SignatureEncoding is "der" or "raw". pawaPay's own examples sign in DER,
	// RFC 9421 wants raw: der is the default.
	SignatureEncoding string `toml:"signature_encoding"`

	// VerifyCallbacks refuses callbacks without a good signature. Turn it on
	// once signed callbacks are on in the dashboard.
	VerifyCallbacks bool `toml:"verify_callbacks"`
	// CallbackAuthorities are the hosts, with a port unless it is 443, under
	// which pawaPay calls us. Empty means that of the callback URL.
	CallbackAuthorities []string `toml:"callback_authorities"`

	// ApprovalWindowSeconds is how long a customer has. pawaPay does not say: it
	// is the operator's behind it. 0 means 300.
	ApprovalWindowSeconds int `toml:"approval_window_seconds"`
	// SubmitRate and CheckRate are calls per second by all instances. pawaPay
	// publishes no limit; 0 means 100.
	SubmitRate int `toml:"submit_rate"`
	CheckRate  int `toml:"check_rate"`
}

// The limits of what a configuration may hold.
const (
	maxProviders   = 200
	maxAuthorities = 16
	maxRate        = 100_000
	maxWindow      = 24 * 60 * 60
	defaultMessage = "Mobile payment"
	defaultWindow  = 300
	defaultRate    = 100
)

// Validate returns every mistake in the configuration, each with its key.
func (c Config) Validate() error {
	var wrong []error
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if err := wire.CheckBaseURL(c.BaseURL); err != nil {
		say("base_url: %w", err)
	}
	if c.APIToken == "" || strings.ContainsAny(c.APIToken, " \r\n\t") {
		say("api_token: give the token of the dashboard, without spaces, by api_token_file or api_token_env")
	}
	for _, op := range c.Operations {
		if op != "payments" && op != "payouts" {
			say("operations: %q is neither \"payments\" nor \"payouts\"", wire.Truncate(op, 40))
		}
	}
	if len(c.Providers) > maxProviders {
		say("provider: at most %d rows", maxProviders)
	}
	for i, r := range c.Providers {
		if err := r.validate(); err != nil {
			say("provider: row %d: %w", i+1, err)
		}
	}
	if c.CustomerMessage != "" && customerMessage(c.CustomerMessage, "") != c.CustomerMessage {
		say("customer_message: 4 to 22 letters, digits and single spaces")
	}
	c.validateSigning(say)
	if c.ApprovalWindowSeconds < 0 || c.ApprovalWindowSeconds > maxWindow {
		say("approval_window_seconds: from 1 to %d", maxWindow)
	}
	for _, r := range []struct {
		key string
		n   int
	}{{"submit_rate", c.SubmitRate}, {"check_rate", c.CheckRate}} {
		if r.n < 0 || r.n > maxRate {
			say("%s: from 1 to %d calls per second", r.key, maxRate)
		}
	}
	return errors.Join(wrong...)
}

func (c Config) validateSigning(say func(string, ...any)) {
	if c.SignatureEncoding != "" && c.SignatureEncoding != "der" && c.SignatureEncoding != "raw" {
		say("signature_encoding: \"der\" or \"raw\"")
	}
	if c.SigningKey != "" {
		if _, err := signingKey(c.SigningKey); err != nil {
			say("signing_key: %w", err)
		}
	}
	if (c.SigningKey == "") != (c.SigningKeyID == "") {
		say("signing_key_id: it goes with signing_key, the one is useless without the other")
	}
	if strings.ContainsFunc(c.SigningKeyID, func(r rune) bool { return r < 0x20 || r > 0x7e || r == '"' || r == '\\' }) {
		say("signing_key_id: plain characters without quotes")
	}
	if len(c.CallbackAuthorities) > maxAuthorities {
		say("callback_authorities: at most %d", maxAuthorities)
	}
	for _, a := range c.CallbackAuthorities {
		if a == "" || strings.ContainsAny(a, "/ \r\n\t\"") {
			say("callback_authorities: %q is not a host with or without a port", wire.Truncate(a, 80))
		}
	}
}

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
	callbackHosts []string // authorities under which callbacks come
	payment       *service
	payout        *service
}

// New returns an operator, or every mistake in its configuration.
func New(c Config, d provider.Deps) (*Operator, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("pawapay: %w", err)
	}
	o := &Operator{c: c, base: strings.TrimRight(c.BaseURL, "/"), client: wire.NewClient(d.Conns), now: d.Now,
		answerLog: wire.NewAnswerLog(d), routes: mergeRoutes(c.Providers)}
	if o.now == nil {
		o.now = time.Now
	}
	if c.SigningKey != "" {
		o.signer, _ = signingKey(c.SigningKey) // Validate has read it
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
func (o *Operator) Payments() provider.Provider { return o.payment.orNil() }

// Payouts returns the provider of payouts, nil if there is none.
func (o *Operator) Payouts() provider.Provider { return o.payout.orNil() }

// side is one kind of what the account does.
type service struct {
	*Operator
	kind *serviceKind
}

var (
	_ provider.CallbackReader = (*service)(nil)
	_ provider.Tester         = (*service)(nil)
)

// orNil keeps a nil pointer from becoming an interface that is not nil.
func (s *service) orNil() provider.Provider {
	if s == nil {
		return nil
	}
	return s
}

// Fingerprint names the account; a new token changes nothing.
func (s *service) Fingerprint() string {
	return strings.TrimSpace("pawapay " + s.kind.id + " " + s.base + " " + s.c.Account)
}

// Traits says how pawaPay behaves.
func (s *service) Traits() provider.Traits {
	t := provider.Traits{
		ClientReference: true,
		ApprovalWindow:  time.Duration(orDefault(s.c.ApprovalWindowSeconds, defaultWindow)) * time.Second,
		SubmitTimeout:   15 * time.Second,
		CheckTimeout:    10 * time.Second,
		// pawaPay: "not found" counts from 15 minutes after the initiation on.
		NotFoundDelay: 15 * time.Minute,
		Poll:          15 * time.Second, // callbacks come first, as a rule
		PollMax:       time.Hour,
		Grace:         5 * time.Minute,
		LateReads:     []time.Duration{5 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 72 * time.Hour},
		SubmitRate:    provider.Rate{PerSecond: orDefault(s.c.SubmitRate, defaultRate), Burst: orDefault(s.c.SubmitRate, defaultRate)},
		CheckRate:     provider.Rate{PerSecond: orDefault(s.c.CheckRate, defaultRate), Burst: orDefault(s.c.CheckRate, defaultRate)},
	}
	if s.kind == &payouts {
		// Nobody approves. The window leaves time for a second send after "not
		// found" has been proven.
		t.ApprovalWindow, t.Grace = time.Hour, 15*time.Minute
	}
	return t
}

// Submit asks for a deposit or a payout.
func (s *service) Submit(ctx context.Context, r provider.Request) (provider.Result, error) {
	route := s.routes[routeKey{r.Method, r.Country, r.Amount.Currency}]
	if route == nil {
		return provider.Result{}, fmt.Errorf("pawapay: %w: no provider is configured for %s in %s with %s",
			provider.ErrNotSent, r.Method, r.Country, r.Amount.Currency)
	}
	amount, ok := route.amount(r.Amount, s.kind)
	if !ok {
		// Routes refuse such an amount before a payment is made. One that comes
		// this far has not been sent, and never will be.
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
	return result, nil
}

// Check reads how a deposit or payout stands.
func (s *service) Check(ctx context.Context, q provider.Query) (provider.Result, error) {
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
	return result, nil
}

// call makes one call. Only an initiation has a body, and only that is signed.
func (o *Operator) call(ctx context.Context, method, path string, body []byte) (*wire.Reply, error) {
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
	reply, err := o.client.Do(ctx, method, o.base+path, h, body)
	if err == nil {
		err = wire.TooMany(reply)
	}
	return reply, err
}

var contentType = []string{"application/json"}

// orDefault returns n, or the default where n is not set.
func orDefault(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// authority returns host and port of an address as RFC 9421 wants them: lower
// case, without the scheme's own port.
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
