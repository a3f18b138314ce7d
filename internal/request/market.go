package request

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"till"
	"till/internal/nearest"
)

// Party is who pays or is paid, as far as the catalogue judges them.
type Party struct {
	At     string  // where it is in the body: /customer, /recipient
	Absent bool    // it was not sent, and is refused already
	Phone  *string // nil if it was not sent
}

// Market is what a client can have just now.
type Market struct {
	// Enabled reports whether the client may use a method.
	Enabled func(method string) bool
	// Routed says that a route leads somewhere for the order's method, country
	// and currency. Leads says the same of another method, country and currency.
	Routed bool
	Leads  func(method, country, currency string) bool
	// Flow checks what the market's flow needs besides the number; nil: it needs nothing.
	Flow func(c *Validator, k *till.Market)
}

// leads reports whether a route leads somewhere for a method in a country, in
// whatever currency; "" means anywhere.
func (cat *Market) leads(m *till.Method, country string) bool {
	return cat.Routed || cat.somewhere(m, country)
}

// somewhere is leads, read from the routes.
func (cat *Market) somewhere(m *till.Method, country string) bool {
	return slices.ContainsFunc(m.Markets, func(k till.Market) bool {
		return (country == "" || country == k.Country) && cat.Leads(m.Code, k.Country, k.Currency)
	})
}

// unknown says that a method is not one of those that the client can have, which are,
// and which was probably meant.
func (cat *Market) unknown(word string) string {
	var codes []string
	for _, m := range till.Methods() {
		if cat.Enabled(m.Code) && cat.somewhere(m, "") {
			codes = append(codes, m.Code)
		}
	}
	if len(codes) == 0 {
		return "is not one of the methods enabled for you, and none is; see GET /payment-methods"
	}
	return "is not one of the methods enabled for you: " + strings.Join(codes, ", ") + cmp.Or(nearest.Hint(word, codes), "; see GET /payment-methods")
}

// notServed says that a country is not one of those that a method serves, and which are.
func (cat *Market) notServed(m *till.Method) string {
	var served []string
	for _, code := range m.Countries() {
		if cat.somewhere(m, code) {
			served = append(served, code)
		}
	}
	return "is not a country that the method serves: " + strings.Join(served, ", ")
}

// CheckMarket applies the rules that can change from one day to the next:
// which methods a client may use, what they serve and where that leads, what a
// phone looks like. A refusal from here is given only after the idempotency key
// was looked up. What no route leads to is refused as if it did not exist:
// nothing would change by waiting.
func (o *Parsed) CheckMarket(c *Validator, cat Market, who Party) {
	defer func() { c.Fields = append(c.Fields, o.unknown...) }()
	m, known := till.MethodOf(o.Method)
	if o.Method != "" && (!known || !cat.Enabled(o.Method) || !cat.leads(m, "")) {
		c.Add("/method", till.FieldUnknownMethod, cat.unknown(o.Method))
		known = false
	}
	at := who.At + "/phone"
	var country *till.Country
	if known {
		country = o.checkCountry(c, m, &cat, at)
	} else if k, ok := till.CountryOf(o.Country); ok {
		country = k
	}
	if country != nil && known {
		o.checkCurrencyAndAmount(c, m, &cat, country)
	}
	if who.Absent {
		return
	}
	if who.Phone == nil {
		c.Add(at, till.FieldRequired, "is required by the method")
	} else if country != nil {
		ok, hint := false, ""
		if known {
			ok, hint = m.CheckPhone(country, o.Phone)
		} else {
			ok, hint = till.CheckPhone(country, o.Phone)
		}
		if !ok {
			c.Add(at, till.FieldInvalidPhone, hint)
		}
	} else if !digits(o.Phone) && !c.has(at) {
		c.Add(at, till.FieldInvalidPhone, "must be digits only: the calling code followed by the national number, for example 242061234567")
	}
}

// digits reports whether s is a phone number in any country at all.
func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return len(s) >= 7 && len(s) <= 15
}

// checkCountry returns the country that the order is for, nil if that is not
// clear.
func (o *Parsed) checkCountry(c *Validator, m *till.Method, cat *Market, phone string) *till.Country {
	switch {
	case o.Country == "" && m.CountryScoped:
		c.Add("/country", till.FieldCountryRequired, "is required for this method")
		return nil
	case o.Country == "":
		k, ok := till.CountryByCallingCode(o.Phone, m.Countries())
		if !ok {
			c.Add(phone, till.FieldInvalidPhone, "must start with the calling code of a country that the method serves")
		}
		return k
	case o.Country == badCountry:
		return nil // already refused
	case !m.Serves(o.Country) || !cat.leads(m, o.Country):
		c.Add("/country", till.FieldCountryNotSupported, cat.notServed(m))
		k, _ := till.CountryOf(o.Country)
		return k
	}
	k, _ := till.CountryOf(o.Country)
	return k
}

func (o *Parsed) checkCurrencyAndAmount(c *Validator, m *till.Method, cat *Market, country *till.Country) {
	if !letters(o.Currency, 3) || c.has("/country") {
		return
	}
	k, ok := m.Market(country.Code, o.Currency)
	ok = ok && (cat.Routed || cat.Leads(m.Code, k.Country, k.Currency))
	if !ok {
		c.Add("/amount/currency", till.FieldCurrencyNotSupported, "is not a currency that the method serves in this country")
		return
	}
	CheckBounds(c, k, o.Amount)
	if o.Flow = k.Flow; cat.Flow != nil {
		cat.Flow(c, k)
	}
}

// CheckBounds applies the bounds of a market to an amount. Zero was refused before.
func CheckBounds(c *Validator, k *till.Market, amount int64) {
	switch {
	case amount == 0:
	case amount < k.Min || amount > k.Max:
		c.Add("/amount/value", till.FieldAmountOutOfBounds,
			"must be between "+strconv.FormatInt(k.Min, 10)+" and "+strconv.FormatInt(k.Max, 10)+" minor units")
	case amount%k.Step != 0:
		c.Add("/amount/value", till.FieldNotRepresentable,
			"must be a multiple of "+strconv.FormatInt(k.Step, 10)+" minor units, the smallest step that the operator moves")
	}
}
