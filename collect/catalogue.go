package collect

import (
	"strconv"

	"till"
)

// checkCatalogue applies the rules that can change from one day to the next:
// which methods a client may use, what they serve, what a phone looks like.
// A refusal from here is given only after the idempotency key was looked up.
func checkCatalogue(c *checker, who Client, o *order, r *Request) {
	m, known := till.MethodOf(o.method)
	if o.method != "" && (!known || !who.Enabled(o.method)) {
		c.add("/method", till.FieldUnknownMethod, "is not one of the methods enabled for you; see GET /payment-methods")
		known = false
	}
	var country *till.Country
	if known {
		country = checkCountry(c, m, o)
	} else if k, ok := till.CountryOf(o.country); ok {
		country = k
	}
	if country != nil && known {
		checkMarket(c, m, country, o)
	}
	if r.Customer == nil {
		return
	}
	if r.Customer.Phone == nil {
		c.add("/customer/phone", till.FieldRequired, "is required by the method")
	} else if country != nil {
		if ok, hint := till.CheckPhone(country, o.phone); !ok {
			c.add("/customer/phone", till.FieldInvalidPhone, hint)
		}
	} else if !digits(o.phone) && !c.has("/customer/phone") {
		c.add("/customer/phone", till.FieldInvalidPhone, "must be digits only: the calling code followed by the national number, for example 242061234567")
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

// checkCountry returns the country that the payment is for, nil if that is
// not clear.
func checkCountry(c *checker, m *till.Method, o *order) *till.Country {
	switch {
	case o.country == "" && m.CountryScoped:
		c.add("/country", till.FieldCountryRequired, "is required for this method")
		return nil
	case o.country == "":
		k, ok := till.CountryByCallingCode(o.phone, m.Countries())
		if !ok {
			c.add("/customer/phone", till.FieldInvalidPhone, "must start with the calling code of a country that the method serves")
		}
		return k
	case o.country == badCountry:
		return nil // already refused
	case !m.Serves(o.country):
		c.add("/country", till.FieldCountryNotSupported, "is not a country that the method serves")
		k, _ := till.CountryOf(o.country)
		return k
	}
	k, _ := till.CountryOf(o.country)
	return k
}

func checkMarket(c *checker, m *till.Method, country *till.Country, o *order) {
	if !letters(o.currency, 3) || !m.Serves(country.Code) {
		return
	}
	k, ok := m.Market(country.Code, o.currency)
	switch {
	case !ok:
		c.add("/amount/currency", till.FieldCurrencyNotSupported, "is not a currency that the method serves in this country")
	case o.amount == 0:
	case o.amount < k.Min || o.amount > k.Max:
		c.add("/amount/value", till.FieldAmountOutOfBounds,
			"must be between "+strconv.FormatInt(k.Min, 10)+" and "+strconv.FormatInt(k.Max, 10)+" minor units")
	case o.amount%k.Step != 0:
		c.add("/amount/value", till.FieldNotRepresentable,
			"must be a multiple of "+strconv.FormatInt(k.Step, 10)+" minor units, the smallest step that the operator moves")
	}
}
