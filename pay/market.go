package pay

import (
	"slices"
	"strings"

	"till"
	"till/checkout"
	"till/console/look"
	"till/engine"
)

// market is a method in a country that a page offers.
type market struct {
	Key     string // method.country, as the form names it
	Name    string
	Shut    bool // its operator takes no requests just now
	Checked bool

	method  *till.Method
	country *till.Country
	limits  *till.Market
}

// fits reports whether the market can take the amount.
func (m *market) fits(minor int64) bool {
	return minor >= m.limits.Min && minor <= m.limits.Max && (m.limits.Step <= 1 || minor%m.limits.Step == 0)
}

// takes reports whether a market can take what is paid here: the amount, or some amount of a link
// whose payer has typed none yet.
func (v *visit) takes(m *market) bool {
	l, minor := v.view.Link, v.view.Checkout.Amount.Minor
	if l != nil && minor == 0 {
		return l.Min <= m.limits.Max && (l.Max == 0 || l.Max >= m.limits.Min)
	}
	return m.fits(minor)
}

// markets returns what the checkout offers: what the merchant has for the currency and the
// checkout allows. Of several countries that of the merchant comes first.
func (v *visit) markets() (out []*market) {
	c := v.view.Checkout
	for _, m := range till.Methods() {
		if !v.who.Enabled(m.Code) || len(c.Methods) > 0 && !slices.Contains(c.Methods, m.Code) {
			continue
		}
		offer := v.p.c.Offer(v.who.Client, m)
		for i := range m.Markets {
			k := &offer.Markets[i].Market
			country, ok := till.CountryOf(k.Country)
			one := &market{Key: m.Code + "." + k.Country, Name: m.NameIn(k.Country), Shut: offer.Markets[i].Status == engine.Closed, method: m, country: country, limits: k}
			if ok && offer.Served[i] && checkout.OnPage(k) && k.Currency == c.Amount.Currency && (c.Country == "" || c.Country == k.Country) && v.takes(one) {
				out = append(out, one)
			}
		}
	}
	if slices.ContainsFunc(out, func(m *market) bool { return m.country != out[0].country }) {
		for _, m := range out {
			m.Name += " · " + v.countryName(m.country.Code)
		}
		slices.SortStableFunc(out, func(a, b *market) int {
			if a.country == b.country {
				return 0
			}
			if home := v.profile.Country; a.country.Code == home || b.country.Code == home {
				return map[bool]int{true: -1, false: 1}[a.country.Code == home]
			}
			return strings.Compare(a.country.Code, b.country.Code)
		})
	}
	return out
}

// countryName returns a country as people call it, its code where pages have no name for it.
func (v *visit) countryName(code string) string {
	if v.words.Has("country." + code) {
		return v.words.T("country." + code)
	}
	return code
}

// anyOpen reports whether a method takes requests.
func anyOpen(markets []*market) bool {
	return slices.ContainsFunc(markets, func(m *market) bool { return !m.Shut })
}

// marketOf returns the market of a key, nil if there is none.
func marketOf(markets []*market, key string) *market {
	i := slices.IndexFunc(markets, func(m *market) bool { return m.Key == key })
	if i < 0 {
		return nil
	}
	return markets[i]
}

// predict returns the market that a number as it was typed belongs to, nil if that is not
// known. What could be a number of several countries is one of home. It may be wrong where
// numbers move, so the payer sees it whole before anything is asked.
func predict(markets []*market, text, home string) *market {
	var found []*market
	for _, m := range markets {
		phone, ok := m.country.ReadInternational(text)
		if !ok && !international(text) {
			phone, ok = m.country.ReadPhone(text)
		}
		if !ok {
			continue
		}
		if likely, _ := m.country.PredictMethod(phone); likely != nil && likely.Code == m.method.Code {
			found = append(found, m)
		}
	}
	switch at := slices.IndexFunc(found, func(m *market) bool { return m.country.Code == home }); {
	case at >= 0:
		return found[at]
	case len(found) == 1:
		return found[0]
	}
	return nil
}

// international reports whether a number was typed with its country.
func international(text string) bool {
	return strings.HasPrefix(text, "+") || strings.HasPrefix(text, "00")
}

// examplePhone returns a number of a market as people write it there, or in full where the
// page offers several countries.
func examplePhone(m *market, markets []*market) string {
	phone := look.Phone(m.method.PhoneExample(m.country))
	if slices.ContainsFunc(markets, func(o *market) bool { return o.country != m.country }) {
		return phone
	}
	return strings.TrimLeft(strings.TrimPrefix(phone, "+"+m.country.CallingCode), " \u00a0")
}

// methodName returns a method of an ask as people call it.
func methodName(code, country string) string {
	if m, ok := till.MethodOf(code); ok {
		return m.NameIn(country)
	}
	return code
}
