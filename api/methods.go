package api

import (
	"net/http"
	"strconv"
	"time"

	"till"
	"till/engine"
	"till/internal/jsonx"
)

// methodOffer is a method as it is available to a client.
type methodOffer struct {
	*till.Method
	payments, payouts engine.Offer
}

// listMethods is GET /payment-methods: those enabled for the client, in the countries that
// have a route.
func (c *exchange) listMethods() error {
	b := appendItems(c.buffer(), c.offers(), appendMethod)
	return c.json(http.StatusOK, append(b, '}'))
}

// offers returns the client's methods that have a route.
func (c *exchange) offers() (out []methodOffer) {
	for _, m := range till.Methods() {
		if !c.session.Enabled(m.Code) {
			continue
		}
		o := methodOffer{m, c.s.Collector.Offer(c.session.Client, m), c.s.Payouts.Offer(c.session.Client, m)}
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

func appendMethod(b []byte, m methodOffer) []byte {
	b = append(b, `{"code":`...)
	b = jsonx.AppendString(b, m.Code)
	b = append(b, `,"name":`...)
	b = jsonx.AppendString(b, m.Name)
	b = append(b, `,"type":"mobile_money","country_scoped":`...)
	b = strconv.AppendBool(b, m.CountryScoped)
	b = append(b, `,"countries":[`...)
	for i := range m.Markets {
		if !m.serves(i) {
			continue
		}
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		b = appendMarket(b, m.Method, &m.Markets[i])
		b = append(appendSupports(b, m.payments.Served[i], m.payouts.Served[i]), '}')
	}
	b = append(b, `],"required_customer_fields":[`...)
	for i, f := range m.RequiredCustomerFields {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonx.AppendString(b, f)
	}
	stands := &m.payments
	if !m.payments.Any() {
		stands = &m.payouts
	}
	b = append(b, `],"status":`...)
	b = jsonx.AppendString(b, string(stands.Status))
	b = append(b, `,"approval_window_seconds":`...)
	b = strconv.AppendInt(b, int64(m.payments.Window/time.Second), 10)
	return append(appendSupports(b, m.payments.Any(), m.payouts.Any()), '}')
}

func appendSupports(b []byte, payments, payouts bool) []byte {
	b = append(b, `,"supports":{"payments":`...)
	b = strconv.AppendBool(b, payments)
	b = append(b, `,"payouts":`...)
	b = strconv.AppendBool(b, payouts)
	return append(b, '}')
}

// appendMarket begins an entry of the countries.
func appendMarket(b []byte, m *till.Method, k *till.Market) []byte {
	b = append(b, `{"code":`...)
	b = jsonx.AppendString(b, k.Country)
	b = append(b, `,"currency":`...)
	b = jsonx.AppendString(b, k.Currency)
	if country, ok := till.CountryOf(k.Country); ok {
		b = append(b, `,"phone":{"calling_code":`...)
		b = jsonx.AppendString(b, country.CallingCode)
		b = append(b, `,"length":`...)
		b = strconv.AppendInt(b, int64(country.Lengths[len(country.Lengths)-1]), 10)
		b = append(b, `,"example":`...)
		b = jsonx.AppendString(b, m.PhoneExample(country))
		b = append(b, '}')
	}
	b = append(b, `,"min_amount":`...)
	b = appendMinor(b, k.Min)
	b = append(b, `,"max_amount":`...)
	b = appendMinor(b, k.Max)
	b = append(b, `,"amount_step":`...)
	return appendMinor(b, k.Step)
}
