package api

import (
	"net/http"
	"slices"
	"time"

	"till"
	"till/engine"
)

// methodOffer is a method as it is available to a client.
type methodOffer struct {
	*till.Method
	payments, payouts engine.Offer
	refunds           []bool // for each of the method's markets
}

// listMethods is GET /payment-methods: those enabled for the client, in the countries that
// have a route.
func (c *exchange) listMethods() error {
	return c.answer(http.StatusOK, listOf(c.offers(), methodOf))
}

// offers returns the client's methods that have a route.
func (c *exchange) offers() (out []methodOffer) {
	for _, m := range till.Methods() {
		if !c.session.Enabled(m.Code) {
			continue
		}
		o := methodOffer{m, c.s.Collector.Offer(c.session.Client, m), c.s.Payouts.Offer(c.session.Client, m), make([]bool, len(m.Markets))}
		for i, k := range m.Markets {
			ways := c.s.Collector.Routed(c.session.Client, m.Code, k.Country, k.Currency)
			o.refunds[i] = c.s.Payouts.Refundable(c.session.Client, ways, m.Code, k.Country, k.Currency)
		}
		if o.payments.Any() || o.payouts.Any() {
			out = append(out, o)
		}
	}
	return out
}

// serves reports whether a market of the method has a route, for payments or for payouts.
func (m *methodOffer) serves(market int) bool {
	return m.payments.Served[market] || m.payouts.Served[market]
}

// servesIn is serves for a country, in any currency.
func (m *methodOffer) servesIn(country string) bool {
	for i := range m.Markets {
		if m.Markets[i].Country == country && m.serves(i) {
			return true
		}
	}
	return false
}

type method struct {
	Code           string   `json:"code"`
	Name           string   `json:"name"`
	Type           string   `json:"type"`
	CountryScoped  bool     `json:"country_scoped"`
	Countries      []market `json:"countries"`
	Required       []string `json:"required_customer_fields"`
	Status         string   `json:"status"`
	ApprovalWindow int64    `json:"approval_window_seconds"`
	Supports       supports `json:"supports"`
}

type supports struct {
	Payments bool `json:"payments"`
	Payouts  bool `json:"payouts"`
	Refunds  bool `json:"refunds"`
}

type market struct {
	Code     string     `json:"code"`
	Name     string     `json:"name"`
	Currency string     `json:"currency"`
	Flow     till.Flow  `json:"flow"`
	Dial     *string    `json:"dial"`
	Status   string     `json:"status"`
	Phone    *phoneRule `json:"phone,omitzero"`
	Min      int64      `json:"min_amount,string"`
	Max      int64      `json:"max_amount,string"`
	Step     int64      `json:"amount_step,string"`
	Supports supports   `json:"supports"`
}

type phoneRule struct {
	CallingCode string `json:"calling_code"`
	Length      int    `json:"length"`
	Example     string `json:"example"`
}

func methodOf(m methodOffer) method {
	stands := &m.payments
	if !m.payments.Any() {
		stands = &m.payouts
	}
	out := method{m.Code, m.Name, "mobile_money", m.CountryScoped, nil, m.RequiredCustomerFields, string(stands.Status),
		int64(m.payments.Window / time.Second), supports{m.payments.Any(), m.payouts.Any(), slices.Contains(m.refunds, true)}}
	for i := range m.Markets {
		if m.serves(i) {
			here := &m.payments.Markets[i] // where both are there, the bounds are those of payments
			if !m.payments.Served[i] {
				here = &m.payouts.Markets[i]
			}
			out.Countries = append(out.Countries, marketOf(m.Method, here, supports{m.payments.Served[i], m.payouts.Served[i], m.refunds[i]}))
		}
	}
	return out
}

func marketOf(m *till.Method, k *engine.MarketOffer, s supports) market {
	out := market{k.Country, m.NameIn(k.Country), k.Currency, k.Flow, nil, string(k.Status), nil, k.Min, k.Max, k.Step, s}
	if k.Dial != "" {
		out.Dial = &k.Dial
	}
	if country, ok := till.CountryOf(k.Country); ok {
		out.Phone = &phoneRule{country.CallingCode, country.Lengths[len(country.Lengths)-1], m.PhoneExample(country)}
	}
	return out
}
