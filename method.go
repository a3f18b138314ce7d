package till

import (
	"slices"
	"sync/atomic"
)

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

	// Flow is how customers approve.
	Flow Flow
	// Sandbox says that the sandbox serves it, to test clients.
	Sandbox bool
	// Local is what people of the country call the method; "" where that is its name.
	Local string
	// Prefixes are what national numbers of this wallet's operator begin with;
	// none if that is not known, or if numbers keep their prefix when they move to
	// another operator.
	Prefixes []string
	// Likely are prefixes that were given to the operator. A number that begins so may
	// have moved to another one, so nothing is refused for it.
	Likely []string
}

// catalogue is what the program knows and what the configuration has added.
var catalogue atomic.Pointer[[]*Method]

func init() { catalogue.Store(&methodTable) }

// Methods is the catalogue: what the program comes with (methods.csv) and
// what the configuration added. Which of them a client may use is the client's
// own list, and which of their markets is a matter of routes; a test client has
// what the sandbox serves. It must not be changed.
func Methods() []*Method { return *catalogue.Load() }

// MethodOf returns the method with the code.
func MethodOf(code string) (*Method, bool) {
	for _, m := range Methods() {
		if m.Code == code {
			return m, true
		}
	}
	return nil, false
}

// ExtendMethods puts methods of a configuration into the catalogue, as
// MergeMethods does. It is for the start of a program, before orders are taken.
func ExtendMethods(more []*Method) {
	if len(more) > 0 {
		all := MergeMethods(Methods(), more)
		catalogue.Store(&all)
	}
}

// MergeMethods returns a catalogue with further methods in it. A method that it
// has already gets the further one's name, and its markets: one of the same
// country and currency is replaced, any other is added.
func MergeMethods(all, more []*Method) []*Method {
	out := slices.Clone(all)
	for _, m := range more {
		i := slices.IndexFunc(out, func(k *Method) bool { return k.Code == m.Code })
		if i < 0 {
			out = append(out, m)
			continue
		}
		merged := *out[i]
		merged.Markets = slices.Clone(merged.Markets)
		if m.Name != "" {
			merged.Name = m.Name
		}
		for _, k := range m.Markets {
			if old, ok := merged.Market(k.Country, k.Currency); ok {
				k.Flow = old.Flow // the operator's, whatever its bounds are
				*old = k
			} else {
				merged.Markets = append(merged.Markets, k)
			}
		}
		out[i] = &merged
	}
	return out
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

// NameIn returns what people of a country call the method.
func (m *Method) NameIn(country string) string {
	for i := range m.Markets {
		if k := &m.Markets[i]; k.Country == country && k.Local != "" {
			return k.Local
		}
	}
	return m.Name
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

// InSandbox reports whether the sandbox serves the method: whether test clients
// have it.
func (m *Method) InSandbox() bool {
	return slices.ContainsFunc(m.Markets, func(k Market) bool { return k.Sandbox })
}

// NewMarket returns the market of a country and currency with the bounds that
// hold where nobody has said otherwise: without decimals an amount is 100 to
// 2 000 000, with two 1.00 to 2 000 000.00. It reports false for a currency that
// is not known.
func NewMarket(country, currency string) (Market, bool) {
	n, ok := CurrencyDecimals(currency)
	return Market{Country: country, Currency: currency, Min: 100, Max: 2_000_000 * pow10(n), Step: 1, Flow: FlowPush}, ok
}

func pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}
