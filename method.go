package till

import "slices"

// Method is a customer's kind of wallet, named by its code. It is not the
// road to the operator: whether MTN is reached directly or through an
// aggregator is routing, invisible to clients.
type Method struct {
	Code          string
	Name          string
	CountryScoped bool // the client must say which country
	Markets       []Market
	// RequiredCustomerFields are the members of customer that must be sent.
	RequiredCustomerFields []string
}

// Market is one country and currency that a method serves.
type Market struct {
	Country  string // ISO 3166-1 alpha-2
	Currency string // ISO 4217
	Min, Max int64  // bounds of an amount, in minor units
	Step     int64  // amounts must be a multiple of it: what the operator can express
}

// Methods is the catalogue. Which of them a client may use is the client's
// own list; a test client has all.
var Methods = []*Method{
	{
		Code: "mtn_momo", Name: "MTN MoMo", CountryScoped: true,
		Markets:                markets("CG XAF", "CM XAF", "UG UGX", "GH GHS", "RW RWF", "ZM ZMW", "CI XOF", "BJ XOF"),
		RequiredCustomerFields: []string{"phone"},
	},
	{
		Code: "airtel_money", Name: "Airtel Money", CountryScoped: true,
		Markets:                markets("CG XAF", "UG UGX", "KE KES", "ZM ZMW", "MG MGA", "GA XAF"),
		RequiredCustomerFields: []string{"phone"},
	},
	{
		// M-Pesa moves whole shillings only.
		Code: "mpesa", Name: "M-Pesa", CountryScoped: true,
		Markets:                wholeUnits(markets("KE KES")),
		RequiredCustomerFields: []string{"phone"},
	},
}

// MethodOf returns the method with the code.
func MethodOf(code string) (*Method, bool) {
	for _, m := range Methods {
		if m.Code == code {
			return m, true
		}
	}
	return nil, false
}

// Countries lists the countries that the method serves, each once.
func (m *Method) Countries() []string {
	var out []string
	for _, k := range m.Markets {
		if !slices.Contains(out, k.Country) {
			out = append(out, k.Country)
		}
	}
	return out
}

// Market returns the market of a country and currency.
func (m *Method) Market(country, currency string) (*Market, bool) {
	for i := range m.Markets {
		if k := &m.Markets[i]; k.Country == country && k.Currency == currency {
			return k, true
		}
	}
	return nil, false
}

// Serves reports whether the method serves the country in any currency.
func (m *Method) Serves(country string) bool {
	return slices.ContainsFunc(m.Markets, func(k Market) bool { return k.Country == country })
}

// markets reads "CG XAF" pairs. Without decimals an amount is 100 to
// 2 000 000; with two, 1.00 to 2 000 000.00.
func markets(pairs ...string) []Market {
	out := make([]Market, 0, len(pairs))
	for _, p := range pairs {
		k := Market{Country: p[:2], Currency: p[3:], Min: 100, Max: 2_000_000, Step: 1}
		if n, ok := CurrencyDecimals(k.Currency); !ok {
			panic("method table: no such currency: " + k.Currency)
		} else if n > 0 {
			k.Max *= pow10(n)
		}
		out = append(out, k)
	}
	return out
}

func wholeUnits(ms []Market) []Market {
	for i := range ms {
		n, _ := CurrencyDecimals(ms[i].Currency)
		ms[i].Step = pow10(n)
	}
	return ms
}

func pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}
