package console

import (
	"net/url"
	"strings"

	"till"
)

// market is one method in one country and currency.
type market struct {
	method   *till.Method
	country  *till.Country
	currency string
}

func (m market) key() string { return m.method.Code + "." + m.country.Code + "." + m.currency }

// minor returns an amount in units of the currency as money.
func (m market) minor(units int64) till.Money {
	decimals, _ := till.CurrencyDecimals(m.currency) // the catalogue's are known
	for range decimals {
		units *= 10
	}
	return till.Money{Minor: units, Currency: m.currency}
}

// phoneIn returns the number that a text means in a country.
func phoneIn(c *till.Country, text string) string {
	digits := digitsOf(text)
	for _, phone := range []string{digits, strings.TrimPrefix(digits, "00"), c.CallingCode + digits, c.CallingCode + strings.TrimPrefix(digits, "0")} {
		if good, _ := till.CheckPhone(c, phone); good {
			return phone
		}
	}
	return digits
}

func digitsOf(text string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, text)
}

// curl returns a request that can be pasted.
func (v *visit) curl(method, country, phone string, amount till.Money) string {
	return "curl " + v.Console.BaseURL + "/payments -H \"X-Api-Key: $KEY\" -H 'Content-Type: application/json' -d '{\n" +
		"  \"method\": \"" + method + "\", \"country\": \"" + country + "\", \"amount\": {\"value\": \"" + amount.Value() + "\", \"currency\": \"" + amount.Currency + "\"},\n" +
		"  \"customer\": {\"phone\": \"" + phone + "\"}, \"idempotency_key\": \"'$(uuidgen)'\"}'"
}

func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Host
	}
	return ""
}
