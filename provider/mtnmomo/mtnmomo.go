package mtnmomo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"till"
	"till/provider"
	"till/provider/wire"
)

// Operator is one account at MTN: collections, disbursements or both.
type Operator struct {
	payments, payouts *service
}

// New returns the operator of a configuration. It makes no call.
func New(c Config, d provider.Deps) (*Operator, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if d.Tokens == nil {
		return nil, errors.New("mtnmomo: no token store is given")
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.CallbackURL != "" && c.CallbackHost != "" && !onHost(d.CallbackURL, c.CallbackHost) {
		d.Log.Warn("MTN callbacks disabled", "connection", d.Connection, "callback_host", c.CallbackHost, "reason", "callback_host is not the host of the service's address")
	}
	client, complaints := wire.ClientOf(d), wire.NewAnswerLog(d)
	o := &Operator{}
	if c.CollectionKey != "" {
		o.payments = newService(collection, c, d, client, complaints)
	}
	if c.DisbursementKey != "" {
		o.payouts = newService(disbursement, c, d, client, complaints)
		refunds := *o.payouts
		refunds.serviceKind = refunding
		o.payouts.refunds = &refunds
	}
	return o, nil
}

// Payments returns the provider of payments, nil if the account has no subscription key for
// it.
func (o *Operator) Payments() provider.Provider { return provider.OrNil(o.payments) }

// Payouts returns the provider of payouts, nil if the account has no subscription key for
// it.
func (o *Operator) Payouts() provider.Provider { return provider.OrNil(o.payouts) }

// serviceKind is what MTN calls a product, with one call of it that we use.
type serviceKind struct {
	name     string // in paths: "collection"
	resource string // "requesttopay", "transfer" or "refund"
	payout   bool
	note     string // the customer's message if there is no description
}

var (
	collection   = serviceKind{"collection", "requesttopay", false, "Payment"}
	disbursement = serviceKind{"disbursement", "transfer", true, "Payout"}
	refunding    = serviceKind{"disbursement", "refund", true, "Refund"}
)

// service is one product of one account: a provider.Provider.
type service struct {
	serviceKind
	base, environment            string
	user, secret, key            string
	callbackHost                 string
	currencyOverride             string
	client                       *wire.Client
	answerLog                    *wire.AnswerLog
	access                       wire.Access
	traits                       provider.Traits
	fingerprint                  string
	keyHeader, environmentHeader []string // header values that never change
	refunds                      *service // of payouts: the product's call that gives payments back
}

var _ provider.Refunder = (*service)(nil)

// of returns the service of a request that gives a payment back, and p without one.
func (p *service) of(refund *provider.Original) *service {
	if refund == nil || p.refunds == nil {
		return p
	}
	return p.refunds
}

// CanRefund implements provider.Refunder: a payment of this country, or a part of it. That MTN
// bounds the sum is not published, so nothing is given back so unless the configuration says it
// (Traits.RefundsBounded).
func (p *service) CanRefund(o provider.Original, amount till.Money) bool {
	return p.refunds != nil && o.Holds(amount) && p.Serves(o.Method, o.Country, amount.Currency)
}

func newService(k serviceKind, c Config, d provider.Deps, client *wire.Client, complaints *wire.AnswerLog) *service {
	p := &service{serviceKind: k, base: strings.TrimRight(c.BaseURL, "/"), environment: c.TargetEnvironment,
		user: c.APIUser, secret: c.APIKey, key: c.CollectionKey,
		callbackHost: c.CallbackHost, currencyOverride: c.CurrencyOverride, client: client, answerLog: complaints}
	if k.payout {
		p.key = c.DisbursementKey
		if c.DisbursementUser != "" {
			p.user, p.secret = c.DisbursementUser, c.DisbursementSecret
		}
	}
	p.keyHeader, p.environmentHeader = []string{p.key}, []string{p.environment}
	p.access = wire.Access{Tokens: d.Tokens, Name: k.name, Fetch: p.fetchToken}
	p.traits = traitsOf(k, c)
	// The user is no secret on the old platform, but looks like one on the new platform.
	sum := sha256.Sum256([]byte(p.user))
	p.fingerprint = strings.Join([]string{"mtnmomo", k.name, p.base, p.environment, hex.EncodeToString(sum[:6])}, " ")
	return p
}

// traitsOf returns MTN's traits, each with its reason.
func traitsOf(k serviceKind, c Config) provider.Traits {
	t := provider.Traits{
		ClientReference: true, // X-Reference-Id: 409 on a second use, and the key of the read
		// A customer has five minutes to type the PIN [common errors page].
		ApprovalWindow: c.window().Duration(),
		// Shorter than the lease of 20 s, and longer than the gateway takes on slow days.
		SubmitTimeout: 15 * time.Second,
		CheckTimeout:  10 * time.Second,
		// A 404 right after a 202 is known to happen. MTN does not say for how long.
		// Minutes cost nothing, because a lost request is rare.
		NotFoundDelay: c.settle().Duration(),
		Poll:          c.poll(paymentPoll).Duration(),
		PollMax:       15 * time.Minute,
		// MTN decides after five minutes, and reports it a little later.
		Grace:     2 * time.Minute,
		LateReads: []time.Duration{5 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 72 * time.Hour},
		// Reads were limited to 10 a second, later to 150 per IP address [best practices
		// 93, product updates 271]. Nothing is published for other calls.
		CheckRate: provider.Rate{PerSecond: 100, Burst: 100},
	}
	if k.payout {
		// The window is how long an unsent payout is tried. It leaves time for a second
		// send once the first is proven lost.
		t.Poll = c.poll(payoutPoll).Duration()
		t.ApprovalWindow = max(5*time.Minute, wire.TimeToProveLost(t.NotFoundDelay, t.Poll)+time.Minute)
	}
	return t
}

// Traits returns how MTN behaves.
func (p *service) Traits() provider.Traits { return p.traits }

// Fingerprint names the platform, the country, the product and the user.
func (p *service) Fingerprint() string { return p.fingerprint }

// header returns the headers of each call.
func (p *service) header(token string) http.Header {
	return http.Header{
		"Authorization":             {"Bearer " + token},
		"Ocp-Apim-Subscription-Key": p.keyHeader,
		"X-Target-Environment":      p.environmentHeader,
	}
}

// Submit requests money from a customer, sends it, or gives it back.
func (p *service) Submit(ctx context.Context, r provider.Request) (provider.Result, error) {
	p = p.of(r.Refund)
	body, err := p.requestBody(r)
	if err != nil {
		return provider.Result{}, err
	}
	callback := p.mayCallBack(r.CallbackURL)
	reply, err := p.access.Call(ctx, tokenRefused, func(token string) (*wire.Reply, error) {
		h := p.header(token)
		h["Content-Type"] = jsonType
		h["X-Reference-Id"] = []string{r.Reference.String()}
		if callback {
			h["X-Callback-Url"] = []string{r.CallbackURL}
		}
		return p.client.Do(ctx, http.MethodPost, p.base+"/"+p.name+"/v1_0/"+p.resource, h, body)
	})
	if err != nil {
		return provider.Result{}, fmt.Errorf("mtnmomo %s: %w", p.resource, err)
	}
	result, err := p.readSubmit(reply)
	if err != nil {
		p.answerLog.Unreadable(p.resource, reply, err)
		return provider.Result{}, fmt.Errorf("mtnmomo %s: %w", p.resource, err)
	}
	return result, nil
}

var jsonType = []string{"application/json"}

// requestBody returns the body of a submit.
func (p *service) requestBody(r provider.Request) ([]byte, error) {
	decimals, ok := till.CurrencyDecimals(r.Amount.Currency)
	if !ok || r.Amount.Minor <= 0 {
		return nil, fmt.Errorf("%w: mtnmomo: the amount cannot be written", provider.ErrNotSent)
	}
	note := wire.PlainASCII(r.Description, maxNote)
	if note == "" {
		note = p.note
	}
	// The external id is the reference, not the row's id. MTN repeats it in each read. A
	// row that was lost with a restored database and created again has another id, but the
	// same reference.
	m := transferRequest{Amount: wire.FormatMinor(r.Amount.Minor, decimals), Currency: r.Amount.Currency,
		ExternalID: r.Reference.String(), PayerMessage: note, PayeeNote: note}
	if p.currencyOverride != "" {
		m.Currency = p.currencyOverride
	}
	switch who := (&party{"MSISDN", r.Phone}); {
	case r.Refund != nil: // to who paid
		m.Original = r.Refund.Reference.String()
	case p.payout:
		m.Payee = who
	default:
		m.Payer = who
	}
	return json.Marshal(m)
}

// mayCallBack reports whether MTN accepts a callback address: it must be on the registered
// host.
func (p *service) mayCallBack(address string) bool {
	return address != "" && p.callbackHost != "" && onHost(address, p.callbackHost)
}

func onHost(address, host string) bool {
	u, err := url.Parse(address)
	return err == nil && strings.EqualFold(u.Hostname(), host)
}

// Check reads a request's status.
func (p *service) Check(ctx context.Context, q provider.Query) (provider.Result, error) {
	p = p.of(q.Refund)
	reply, err := p.access.Call(ctx, tokenRefused, func(token string) (*wire.Reply, error) {
		return p.client.Do(ctx, http.MethodGet, p.base+"/"+p.name+"/v1_0/"+p.resource+"/"+q.Reference.String(), p.header(token), nil)
	})
	if err != nil {
		return provider.Result{}, fmt.Errorf("mtnmomo %s status: %w", p.resource, err)
	}
	result, err := p.readCheck(reply, q)
	if err != nil {
		p.answerLog.Unreadable(p.resource+" status", reply, err)
		return provider.Result{}, fmt.Errorf("mtnmomo %s status: %w", p.resource, err)
	}
	return result, nil
}

// Method is MTN's kind of wallet.
const Method = "mtn_momo"

// environmentMarkets are the documented target environments, each with its country and its
// only currency.
var environmentMarkets = map[string]struct{ country, currency string }{
	"mtnbenin":         {"BJ", "XOF"},
	"mtncameroon":      {"CM", "XAF"},
	"mtncongo":         {"CG", "XAF"},
	"mtnghana":         {"GH", "GHS"},
	"mtnguineabissau":  {"GW", "XOF"},
	"mtnguineaconakry": {"GN", "GNF"},
	"mtnivorycoast":    {"CI", "XOF"},
	"mtnliberia":       {"LR", "LRD"},
	"mtnnigeria":       {"NG", "NGN"},
	"mtnrwanda":        {"RW", "RWF"},
	"mtnsouthafrica":   {"ZA", "ZAR"},
	"mtnsouthsudan":    {"SS", "SSP"},
	"mtnswaziland":     {"SZ", "SZL"},
	"mtnuganda":        {"UG", "UGX"},
	"mtnzambia":        {"ZM", "ZMW"},
}

// Serves implements provider.Selective. An undocumented environment may be in any country;
// MTN's sandbox is in none.
func (p *service) Serves(method, country, currency string) bool {
	home, known := environmentMarkets[p.environment]
	return method == Method && (!known || home.country == country && home.currency == currency)
}
