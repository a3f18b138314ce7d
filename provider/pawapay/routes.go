package pawapay

import (
	_ "embed" // providers.csv is a part of the program
	"encoding/csv"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"till"
	"till/provider/wire"
)

// Route maps a method, country and currency to one of pawaPay's providers, and says which
// amounts it can express.
type Route struct {
	Method   string `toml:"method"`
	Country  string `toml:"country"` // ISO 3166-1 alpha-2
	Currency string `toml:"currency"`
	Code     string `toml:"code"` // pawaPay's name
	// PaymentDecimals and PayoutDecimals are how many decimals an amount may
	// have: decimalsInAmount of active-conf, NONE or TWO_PLACES.
	PaymentDecimals int `toml:"payment_decimals"`
	PayoutDecimals  int `toml:"payout_decimals"`
}

// providersCSV is pawaPay's list of providers as of 2026-10 (docs.pawapay.io,
// v2/docs/providers), a row per provider and currency. Test compares it with active-conf. The
// methods are those of our table of methods (methods.csv), which says the same of the flow: how
// customers approve, push where empty. ORANGE_BFA needs a code from the customer first, WAVE_CIV
// and WAVE_SEN send the customer to an address.
//
//go:embed providers.csv
var providersCSV string

var defaultRoutes = readProviders(providersCSV)

// providerColumns is the first line of the table.
const providerColumns = "code,method,country,currency,payment_decimals,payout_decimals,flow"

// readProviders reads the table, in its order. The table is a part of the program, so a mistake
// in it is one of the program.
func readProviders(table string) (out []Route) {
	records, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil || strings.Join(records[0], ",") != providerColumns {
		panic(fmt.Sprintf("providers.csv: %v, or its first line is not %s", err, providerColumns))
	}
	for _, row := range records[1:] {
		r := Route{Code: row[0], Method: row[1], Country: row[2], Currency: row[3]}
		in, err := strconv.Atoi(row[4])
		if err == nil {
			r.PaymentDecimals = in
			r.PayoutDecimals, err = strconv.Atoi(row[5])
		}
		if err = errors.Join(err, r.validate()); err != nil {
			panic("providers.csv: " + r.Code + ": " + err.Error())
		}
		out = append(out, r)
	}
	return out
}

// Serves implements provider.Selective.
func (s *service) Serves(method, country, currency string) bool {
	return s.routes[routeKey{method, country, currency}] != nil
}

type routeKey struct{ method, country, currency string }

// mergeRoutes returns defaultRoutes, with a configuration's rows replacing them.
func mergeRoutes(more []Route) map[routeKey]*Route {
	m := make(map[routeKey]*Route, len(defaultRoutes)+len(more))
	for i := range defaultRoutes {
		r := &defaultRoutes[i]
		m[routeKey{r.Method, r.Country, r.Currency}] = r
	}
	for _, r := range more {
		m[routeKey{r.Method, r.Country, r.Currency}] = &r
	}
	return m
}

func (r *Route) validate() error {
	switch {
	case r.Method == "":
		return fmt.Errorf("method is missing")
	case len(r.Country) != 2 || strings.ToUpper(r.Country) != r.Country:
		return fmt.Errorf("country: two capital letters")
	case !isProviderCode(r.Code):
		return fmt.Errorf("code: capital letters, digits and _")
	case r.PaymentDecimals < 0 || r.PaymentDecimals > 4 || r.PayoutDecimals < 0 || r.PayoutDecimals > 4:
		return fmt.Errorf("payment_decimals, payout_decimals: from 0 to 4")
	}
	if _, ok := till.CurrencyDecimals(r.Currency); !ok {
		return fmt.Errorf("currency: %q is not known", wire.Truncate(r.Currency, 10))
	}
	return nil
}

func isProviderCode(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(c rune) bool {
		return c != '_' && (c < 'A' || c > 'Z') && (c < '0' || c > '9')
	})
}

// flow returns how the provider's customers approve.
func (r *Route) flow() till.Flow { return till.FlowOf(r.Method, r.Country, r.Currency) }

// decimals returns how many decimals an amount may have.
func (r *Route) decimals(k *serviceKind) int {
	if k == &deposits {
		return r.PaymentDecimals
	}
	return r.PayoutDecimals
}

// amount formats an amount in the shortest form: both versions of pawaPay's rules accept
// "1000" and "10.5", one of them rejects "1000.00". It reports false if the provider cannot
// express the amount; nothing is ever rounded.
func (r *Route) amount(m till.Money, k *serviceKind) (string, bool) {
	iso, ok := till.CurrencyDecimals(m.Currency)
	if !ok || m.Minor <= 0 {
		return "", false
	}
	for step, n := int64(1), r.decimals(k); n < iso; n++ {
		if step *= 10; m.Minor%step != 0 {
			return "", false
		}
	}
	return wire.FormatMinor(m.Minor, iso), true
}
