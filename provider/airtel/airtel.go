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

// New returns the operator of a configuration. It calls nobody.
func New(c Config, d provider.Deps) (*Operator, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if d.Tokens == nil {
		return nil, errors.New("airtel: there is nothing to keep tokens in")
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
		// Validate has read it before.
		o.payouts.pinKey, _ = publicKey(c.PINPublicKey)
	}
	return o, nil
}

// Payments collects; nil if that is not configured.
func (o *Operator) Payments() provider.Provider { return provider.OrNil(o.payments) }

// Payouts pays out; nil if that is not configured.
func (o *Operator) Payouts() provider.Provider { return provider.OrNil(o.payouts) }

// product is collections or disbursements of one application: a
// provider.Provider.
type service struct {
	*application
	payout                 bool
	currency               string
	country                *till.Country
	pin, padding           string
	pinKey                 *rsa.PublicKey
	callbackKey            string
	submitPath, statusPath string // where money is asked for, and where it is asked about
	statusSuffix           string
	payoutType             string
	traits                 provider.Traits
	fingerprint            string
}

func newService(s *application, c Config, payout bool) *service {
	p := &service{application: s, payout: payout, currency: c.Currency, pin: c.PIN, padding: c.PINPadding, callbackKey: c.CallbackKey,
		submitPath: "/merchant/v1/payments/", statusPath: "/standard/v1/payments/", traits: traitsOf(c, payout)}
	p.country, _ = till.CountryOf(c.Country) // Validate has found it before
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

// traitsOf returns Airtel's times, each with its reason.
func traitsOf(c Config, payout bool) provider.Traits {
	t := provider.Traits{
		ClientReference: true, // transaction.id: ESB000041 on a second use, and the key of the enquiry
		ApprovalWindow:  c.window().Duration(),
		// Under the lease of 20 s.
		SubmitTimeout: 15 * time.Second,
		CheckTimeout:  10 * time.Second,
		// Airtel asks for three minutes before the first enquiry: until then "not
		// found" proves nothing. Absence is proven by a read after that time and a
		// second one three minutes later, so within seven minutes of a send that was
		// lost (wire.TimeToProveLost). The window must be longer, or it would be over by then
		// and nothing lost would ever be sent again; eight minutes leave one to send in.
		NotFoundDelay: 3 * time.Minute,
		// Light polling from 20 s on finds most earlier, and callbacks are known to
		// be missed.
		Poll:    20 * time.Second,
		PollMax: 15 * time.Minute,
		Grace:   3 * time.Minute,
		// Ambiguous ones are settled by hand, within days.
		LateReads: []time.Duration{5 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 72 * time.Hour},
		// Airtel publishes no limit. A question every 50 ms is polite.
		CheckRate: provider.Rate{PerSecond: 20, Burst: 20},
	}
	if payout {
		// Mostly decided before the answer to the request itself.
		t.Poll = 10 * time.Second
	}
	return t
}

// Traits says how Airtel behaves.
func (p *service) Traits() provider.Traits { return p.traits }

// Fingerprint names the host, the country, the product and the application.
func (p *service) Fingerprint() string { return p.fingerprint }

// Submit asks Airtel to move money.
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

// requestBody writes what Airtel is asked for.
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

// Check makes an enquiry.
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

// Method is the wallet that Airtel keeps.
const Method = "airtel_money"

// Serves implements provider.Selective: one connection is one country.
func (p *service) Serves(method, country, currency string) bool {
	return method == Method && country == p.country.Code && currency == p.currency
}
