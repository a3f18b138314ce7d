package pawapay

import (
	"fmt"
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

// defaultRoutes is pawaPay's list of providers as of 2026-10 (docs.pawapay.io,
// v2/docs/providers). Test compares it with active-conf. The methods are those of our table
// of methods. Providers that need more than a phone are left out: ORANGE_BFA needs a code
// from the customer first, WAVE_CIV and WAVE_SEN redirect to a page.
var defaultRoutes = []Route{
	{"mtn_momo", "CG", "XAF", "MTN_MOMO_COG", 0, 0},
	{"airtel_money", "CG", "XAF", "AIRTEL_COG", 0, 0},
	{"mtn_momo", "CM", "XAF", "MTN_MOMO_CMR", 0, 0},
	{"orange_money", "CM", "XAF", "ORANGE_CMR", 0, 0},
	{"airtel_money", "GA", "XAF", "AIRTEL_GAB", 2, 2},
	{"mpesa", "CD", "CDF", "VODACOM_MPESA_COD", 0, 0},
	{"mpesa", "CD", "USD", "VODACOM_MPESA_COD", 2, 2},
	{"airtel_money", "CD", "CDF", "AIRTEL_COD", 2, 2},
	{"airtel_money", "CD", "USD", "AIRTEL_COD", 2, 2},
	{"orange_money", "CD", "CDF", "ORANGE_COD", 2, 2},
	{"orange_money", "CD", "USD", "ORANGE_COD", 2, 2},
	{"mtn_momo", "BJ", "XOF", "MTN_MOMO_BEN", 0, 0},
	{"moov_money", "BJ", "XOF", "MOOV_BEN", 0, 0},
	{"moov_money", "BF", "XOF", "MOOV_BFA", 0, 0},
	{"mtn_momo", "CI", "XOF", "MTN_MOMO_CIV", 0, 0},
	{"orange_money", "CI", "XOF", "ORANGE_CIV", 0, 0},
	{"free_money", "SN", "XOF", "FREE_SEN", 0, 0},
	{"orange_money", "SN", "XOF", "ORANGE_SEN", 0, 0},
	{"mpesa", "ET", "ETB", "MPESA_ETH", 2, 2},
	{"mtn_momo", "GH", "GHS", "MTN_MOMO_GHA", 2, 2},
	{"airtel_money", "GH", "GHS", "AIRTELTIGO_GHA", 2, 2},
	{"vodafone_cash", "GH", "GHS", "VODAFONE_GHA", 2, 2},
	{"mpesa", "KE", "KES", "MPESA_KEN", 0, 2},
	{"mpesa", "LS", "LSL", "MPESA_LSO", 2, 2},
	{"airtel_money", "MW", "MWK", "AIRTEL_MWI", 2, 2},
	{"tnm_mpamba", "MW", "MWK", "TNM_MWI", 2, 2},
	{"emola", "MZ", "MZN", "MOVITEL_MOZ", 0, 2},
	{"mpesa", "MZ", "MZN", "VODACOM_MOZ", 2, 2},
	{"airtel_money", "NG", "NGN", "AIRTEL_NGA", 0, 0},
	{"mtn_momo", "NG", "NGN", "MTN_MOMO_NGA", 2, 2},
	{"airtel_money", "RW", "RWF", "AIRTEL_RWA", 0, 0},
	{"mtn_momo", "RW", "RWF", "MTN_MOMO_RWA", 0, 0},
	{"orange_money", "SL", "SLE", "ORANGE_SLE", 2, 2},
	{"airtel_money", "TZ", "TZS", "AIRTEL_TZA", 2, 2},
	{"mpesa", "TZ", "TZS", "VODACOM_TZA", 0, 0},
	{"tigo_pesa", "TZ", "TZS", "TIGO_TZA", 0, 0},
	{"halopesa", "TZ", "TZS", "HALOTEL_TZA", 0, 0},
	{"airtel_money", "UG", "UGX", "AIRTEL_OAPI_UGA", 0, 0},
	{"mtn_momo", "UG", "UGX", "MTN_MOMO_UGA", 2, 2},
	{"airtel_money", "ZM", "ZMW", "AIRTEL_OAPI_ZMB", 2, 2},
	{"mtn_momo", "ZM", "ZMW", "MTN_MOMO_ZMB", 2, 2},
	{"zamtel_money", "ZM", "ZMW", "ZAMTEL_ZMB", 2, 2},
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
