package subject

import (
	"net/url"
	"strings"

	"till"
	"till/console/shell"
)

// Market is one method in one country and currency.
type Market struct {
	Method   *till.Method
	Country  *till.Country
	Currency string
}

func (m Market) Key() string { return m.Method.Code + "." + m.Country.Code + "." + m.Currency }

// Minor returns an amount in units of the currency as money.
func (m Market) Minor(units int64) till.Money {
	decimals, _ := till.CurrencyDecimals(m.Currency) // the catalogue's are known
	for range decimals {
		units *= 10
	}
	return till.Money{Minor: units, Currency: m.Currency}
}

// PhoneIn returns the number that a text means in a country, or its digits.
func PhoneIn(c *till.Country, text string) string {
	phone, _ := c.ReadPhone(DigitsOf(text))
	return phone
}

func DigitsOf(text string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, text)
}

// Curl returns a request that can be pasted.
func Curl(v *shell.Visit, method, country, phone string, amount till.Money) string {
	return "curl " + v.Console.BaseURL + "/payments -H \"X-Api-Key: $KEY\" -H 'Content-Type: application/json' -d '{\n" +
		"  \"method\": \"" + method + "\", \"country\": \"" + country + "\", \"amount\": {\"value\": \"" + amount.Value() + "\", \"currency\": \"" + amount.Currency + "\"},\n" +
		"  \"customer\": {\"phone\": \"" + phone + "\"}, \"idempotency_key\": \"'$(uuidgen)'\"}'"
}

func HostOf(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Host
	}
	return ""
}
