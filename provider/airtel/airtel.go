package airtel

import (
	"context"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"till"
	"till/provider"
	"till/provider/wire"
)

// Operator is one application at Airtel: collections, disbursements or both.
type Operator struct {
	payments, payouts *service
}

// New returns the operator of a configuration. It makes no call.
func New(c Config, d provider.Deps) (*Operator, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if d.Tokens == nil {
		return nil, errors.New("airtel: no token store is given")
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	s := newApplication(c, d)
	o := &Operator{}
	if c.serves("payments") {
		o.payments = newService(s, c, false)
	}
	if c.serves("payouts") {
		o.payouts = newService(s, c, true)
		// Validate has parsed it before.
		o.payouts.pinKey, _ = publicKey(c.PINPublicKey)
	}
	return o, nil
}

// Payments returns the provider of payments, nil if it is not configured.
func (o *Operator) Payments() provider.Provider { return provider.OrNil(o.payments) }

// Payouts returns the provider of payouts, nil if it is not configured.
func (o *Operator) Payouts() provider.Provider { return provider.OrNil(o.payouts) }

// service is an application's collections or its disbursements: a provider.Provider.
type service struct {
	*application
	payout                 bool
	currency               string
	country                *till.Country
	pin, padding           string
	pinKey                 *rsa.PublicKey
	callbackKey            string
	submitPath, statusPath string // of a submit and of an enquiry
	statusSuffix           string
	payoutType             string
	traits                 provider.Traits
	fingerprint            string
}

func newService(s *application, c Config, payout bool) *service {
	p := &service{application: s, payout: payout, currency: c.Currency, pin: c.PIN, padding: c.PINPadding, callbackKey: c.CallbackKey,
		submitPath: "/merchant/v1/payments/", statusPath: "/standard/v1/payments/", traits: traitsOf(c, payout)}
	p.country, _ = till.CountryOf(c.Country) // Validate has checked it before
	kind := "collection"
	switch {
	case payout && c.DisbursementVersion == "v2":
		p.submitPath, p.statusPath, p.statusSuffix, p.payoutType = "/standard/v2/disbursements/", "/standard/v2/disbursements/", "?transactionType=B2C", "B2C"
		kind = "disbursement"
	case payout:
		p.submitPath, p.statusPath = "/standard/v1/disbursements/", "/standard/v1/disbursements/"
		kind = "disbursement"
	case c.SignMessages:
		p.submitPath = "/merchant/v2/payments/"
	}
	sum := sha256.Sum256([]byte(c.ClientID))
	p.fingerprint = strings.Join([]string{"airtel", kind, s.base, c.Country, c.Currency, hex.EncodeToString(sum[:6])}, " ")
	return p
}

// traitsOf returns Airtel's traits, each with its reason.
func traitsOf(c Config, payout bool) provider.Traits {
	t := provider.Traits{
		ClientReference: true, // transaction.id: ESB000041 on a second use, and the key of the enquiry
		ApprovalWindow:  c.window().Duration(),
		// Shorter than the lease of 20 s.
		SubmitTimeout: 15 * time.Second,
		CheckTimeout:  10 * time.Second,
		// Airtel asks for three minutes before the first enquiry: until then "not found"
		// proves nothing. Absence is proven by a read after that time and a second one
		// three minutes later: within seven minutes of a lost send (wire.TimeToProveLost).
		// The window must be longer, or nothing lost would ever be sent again. Eight
		// minutes leave one minute to send in.
		NotFoundDelay: 3 * time.Minute,
		// Polling from 20 s on finds most results earlier, and callbacks are known to get
		// lost.
		Poll:    20 * time.Second,
		PollMax: 15 * time.Minute,
		Grace:   3 * time.Minute,
		// Airtel settles ambiguous transactions by hand, within days.
		LateReads: []time.Duration{5 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 72 * time.Hour},
		// Airtel publishes no limit. A check every 50 ms is polite.
		CheckRate: provider.Rate{PerSecond: 20, Burst: 20},
	}
	if payout {
		// Most payouts are decided before the request itself is answered.
		t.Poll = 10 * time.Second
	}
	return t
}

// Traits returns how Airtel behaves.
func (p *service) Traits() provider.Traits { return p.traits }

// Fingerprint names the host, the country, the product and the application.
func (p *service) Fingerprint() string { return p.fingerprint }

// Submit requests money from a customer, or sends it.
func (p *service) Submit(ctx context.Context, r provider.Request) (provider.Result, error) {
	body, err := p.requestBody(r)
	if err != nil {
		return provider.Result{}, fmt.Errorf("%w: airtel: %w", provider.ErrNotSent, err)
	}
	reply, err := p.call(ctx, http.MethodPost, p.submitPath, body)
	if err != nil {
		return provider.Result{}, fmt.Errorf("airtel %s: %w", p.submitPath, err)
	}
	result, err := p.readSubmit(reply)
	if err != nil {
		p.answerLog.Unreadable("POST "+p.submitPath, reply, err)
		return provider.Result{}, fmt.Errorf("airtel %s: %w", p.submitPath, err)
	}
	return result, nil
}

// requestBody returns the body of a submit.
func (p *service) requestBody(r provider.Request) ([]byte, error) {
	decimals, ok := till.CurrencyDecimals(r.Amount.Currency)
	national, ours := strings.CutPrefix(r.Phone, p.country.CallingCode)
	switch {
	case !ok || r.Amount.Minor <= 0 || r.Amount.Currency != p.currency:
		return nil, fmt.Errorf("the amount is not in %s", p.currency)
	case !ours:
		return nil, fmt.Errorf("the number is not of %s", p.country.Code)
	}
	t := transaction{Amount: json.Number(wire.FormatMinor(r.Amount.Minor, decimals)), ID: transactionID(r.Reference)}
	if !p.payout {
		t.Country, t.Currency = p.country.Code, p.currency
		return json.Marshal(push{transactionID(r.ID), subscriber{p.country.Code, p.currency, national}, t})
	}
	pin, err := encryptPIN(p.pinKey, p.padding, p.pin)
	if err != nil {
		return nil, err
	}
	t.Type = p.payoutType
	return json.Marshal(disbursement{payee{p.currency, national}, transactionID(r.ID), pin, t})
}

// Check reads a transaction's status by an enquiry.
func (p *service) Check(ctx context.Context, q provider.Query) (provider.Result, error) {
	reply, err := p.call(ctx, http.MethodGet, p.statusPath+transactionID(q.Reference)+p.statusSuffix, nil)
	if err != nil {
		return provider.Result{}, fmt.Errorf("airtel enquiry: %w", err)
	}
	result, err := p.readCheck(reply, q)
	if err != nil {
		p.answerLog.Unreadable("GET "+p.statusPath, reply, err)
		return provider.Result{}, fmt.Errorf("airtel enquiry: %w", err)
	}
	return result, nil
}

// Method is Airtel's kind of wallet.
const Method = "airtel_money"

// Serves implements provider.Selective: one connection is one country.
func (p *service) Serves(method, country, currency string) bool {
	return method == Method && country == p.country.Code && currency == p.currency
}
