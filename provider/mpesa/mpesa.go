package mpesa

import (
	"context"
	"encoding/base64"
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

// The transaction types of an STK push.
const (
	payBill  = "CustomerPayBillOnline"
	buyGoods = "CustomerBuyGoodsOnline"
)

// currency is the only one that Daraja moves. shilling is the least amount, in minor units:
// Daraja moves whole shillings only.
const (
	currency = "KES"
	decimals = 2
	shilling = 100
)

// nairobi is the zone of Daraja's timestamps. That is not documented; Daraja checks a
// password against the timestamp that comes with it.
var nairobi = time.FixedZone("EAT", 3*60*60)

// Operator is one app at Daraja.
type Operator struct {
	c           Config
	base        string
	client      *wire.Client
	access      *wire.Access
	now         func() time.Time
	answerLog   *wire.AnswerLog
	callbackURL string // for requests without an address of their own
	credential  string // of payouts
	payments    *paymentService
	payouts     *payoutService
}

// New returns an operator, or all mistakes in its configuration.
func New(c Config, d provider.Deps) (*Operator, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("mpesa: %w", err)
	}
	if d.Tokens == nil {
		return nil, errors.New("mpesa: no token store is given")
	}
	o := &Operator{c: c, base: strings.TrimRight(c.BaseURL, "/"), client: wire.ClientOf(d), now: d.Now,
		answerLog: wire.NewAnswerLog(d), callbackURL: c.CallbackURL}
	if o.now == nil {
		o.now = time.Now
	}
	if o.callbackURL == "" {
		o.callbackURL = d.CallbackURL
	}
	o.access = &wire.Access{Tokens: d.Tokens, Name: "daraja", Fetch: o.fetchToken}
	if c.hasPayments() {
		o.payments = &paymentService{o}
	}
	if c.hasPayouts() {
		var err error
		if o.credential, err = c.credential(); err != nil {
			return nil, fmt.Errorf("mpesa: initiator_password: %w", err)
		}
		o.payouts = &payoutService{o}
	}
	return o, nil
}

// Payments returns the provider of payments, nil if there is none.
func (o *Operator) Payments() provider.Provider { return provider.OrNil(o.payments) }

// Payouts returns the provider of payouts, nil if there is none.
func (o *Operator) Payouts() provider.Provider { return provider.OrNil(o.payouts) }

// call makes one call with a token.
func (o *Operator) call(ctx context.Context, path string, body any) (*wire.Reply, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", provider.ErrNotSent, err)
	}
	return o.access.Call(ctx, tokenRefused, func(token string) (*wire.Reply, error) {
		return o.client.Do(ctx, http.MethodPost, o.base+path,
			http.Header{"Authorization": {"Bearer " + token}, "Content-Type": contentType, "Accept": contentType}, text)
	})
}

var contentType = []string{"application/json"}

// signTimestamp returns the time of a request and the password that belongs to it.
func (o *Operator) signTimestamp() (timestamp, password string) {
	timestamp = o.now().In(nairobi).Format("20060102150405")
	return timestamp, base64.StdEncoding.EncodeToString([]byte(o.c.ShortCode + o.c.Passkey + timestamp))
}

// wholeShillings formats an amount in whole shillings. It reports false for an amount that
// M-Pesa cannot express; nothing is ever rounded.
func wholeShillings(m till.Money) (string, bool) {
	if m.Minor <= 0 || m.Minor%shilling != 0 {
		return "", false
	}
	return wire.FormatMinor(m.Minor, decimals), true
}

// rejectAmount is the result for an amount that cannot be sent. Routes reject it before a
// payment is created.
func rejectAmount() provider.Result {
	return provider.Result{Outcome: provider.Rejected, Reason: till.AmountOutOfBounds, Code: "amount_not_representable",
		Message: "M-Pesa moves whole shillings only"}
}

// checkSendable returns why a request cannot be sent at all, nil if it can.
func checkSendable(m till.Money, callback string) error {
	switch {
	case m.Currency != currency:
		return fmt.Errorf("%w: M-Pesa moves %s, not %s", provider.ErrNotSent, currency, m.Currency)
	case callback == "":
		return fmt.Errorf("%w: Daraja requires a callback URL; configure callback_url or the public address of this service", provider.ErrNotSent)
	}
	return nil
}

// lateReads says when a failure is read again.
var lateReads = []time.Duration{5 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 72 * time.Hour}

// Daraja has M-Pesa wallets of Kenya, in shillings.
const (
	Method  = "mpesa"
	country = "KE"
)

// Serves implements provider.Selective.
func (*paymentService) Serves(method, where, money string) bool { return serves(method, where, money) }

// Serves implements provider.Selective.
func (*payoutService) Serves(method, where, money string) bool { return serves(method, where, money) }

func serves(method, where, money string) bool {
	return method == Method && where == country && money == currency
}
