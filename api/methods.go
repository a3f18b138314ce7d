package api

import (
	"net/http"
	"strconv"
	"time"

	"till"
	"till/internal/jsonx"
)

// listMethods is GET /payment-methods: those enabled for the client.
func (c *call) listMethods() error {
	var methods []*till.Method
	for _, m := range till.Methods {
		if c.session.Enabled(m.Code) {
			methods = append(methods, m)
		}
	}
	b := appendItems(c.buf(), methods, func(b []byte, m *till.Method) []byte {
		status, window := c.s.Collector.MethodStatus(c.session.Client, m)
		return appendMethod(b, m, status, window, c.s.Payouts.Serves(c.session.Client, m))
	})
	return c.json(http.StatusOK, append(b, '}'))
}

func appendMethod(b []byte, m *till.Method, status string, window time.Duration, payouts bool) []byte {
	b = append(b, `{"code":`...)
	b = jsonx.AppendString(b, m.Code)
	b = append(b, `,"name":`...)
	b = jsonx.AppendString(b, m.Name)
	b = append(b, `,"type":"mobile_money","country_scoped":`...)
	b = strconv.AppendBool(b, m.CountryScoped)
	b = append(b, `,"countries":[`...)
	for i := range m.Markets {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendMarket(b, &m.Markets[i])
	}
	b = append(b, `],"required_customer_fields":[`...)
	for i, f := range m.RequiredCustomerFields {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonx.AppendString(b, f)
	}
	b = append(b, `],"status":`...)
	b = jsonx.AppendString(b, status)
	b = append(b, `,"approval_window_seconds":`...)
	b = strconv.AppendInt(b, int64(window/time.Second), 10)
	b = append(b, `,"supports":{"payments":true,"payouts":`...)
	b = strconv.AppendBool(b, payouts)
	return append(b, '}', '}')
}

func appendMarket(b []byte, k *till.Market) []byte {
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
		b = jsonx.AppendString(b, country.Example)
		b = append(b, '}')
	}
	b = append(b, `,"min_amount":`...)
	b = appendMinor(b, k.Min)
	b = append(b, `,"max_amount":`...)
	b = appendMinor(b, k.Max)
	b = append(b, `,"amount_step":`...)
	b = appendMinor(b, k.Step)
	return append(b, '}')
}
