package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"till"
)

// routedWorld has a live client with three methods: mtn_momo pays in Congo and
// Uganda and is paid out in Congo, airtel_money is paid out in Congo alone, and
// mpesa leads nowhere.
func routedWorld(t *testing.T) (w *world, payer string) {
	t.Helper()
	w = newWorld(t, options{
		payments: []string{"mtn_momo CG XAF", "mtn_momo UG UGX"},
		payouts:  []string{"mtn_momo CG XAF", "airtel_money CG XAF"},
	})
	t.Cleanup(w.stop)
	live := w.clients["live"].ID
	for _, code := range []string{"mtn_momo", "airtel_money"} {
		if err := w.accounts.EnableMethod(t.Context(), live, code, true, "a test"); err != nil {
			t.Fatal(err)
		}
	}
	w.addKey("live", "payer", till.Scopes...)
	return w, w.keys["payer"]
}

// offered is what GET /payment-methods says: for each method its countries and
// what it supports.
func offered(t *testing.T, w *world, key string) map[string]string {
	t.Helper()
	var list struct {
		Items []struct {
			Code      string
			Countries []struct {
				Code  string
				Phone struct{ Example string }
			}
			Supports struct{ Payments, Payouts bool }
		}
	}
	a := w.do(http.MethodGet, "/v1/payment-methods", key, "")
	if err := json.Unmarshal(a.Body.Bytes(), &list); err != nil || a.Code != http.StatusOK {
		t.Fatal(a.Code, err)
	}
	out := map[string]string{}
	for _, m := range list.Items {
		var codes []string
		for _, k := range m.Countries {
			codes = append(codes, k.Code)
		}
		out[m.Code] = fmt.Sprintf("%s payments %v payouts %v", strings.Join(codes, " "), m.Supports.Payments, m.Supports.Payouts)
	}
	return out
}

// A live client is shown a country only where a route leads somewhere, and a
// method only where a country is left. A test client sees the sandbox's.
func TestALiveClientIsOfferedOnlyWhatHasARoute(t *testing.T) {
	t.Parallel()
	w, key := routedWorld(t)
	got := offered(t, w, key)
	want := map[string]string{
		"mtn_momo":     "CG UG payments true payouts true",
		"airtel_money": "CG payments false payouts true",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("a live client is offered\n%v, want\n%v", got, want)
	}
	got = offered(t, w, w.keys["test"])
	want = map[string]string{
		"mtn_momo":     "CG CM UG GH RW ZM CI BJ payments true payouts true",
		"airtel_money": "CG UG KE ZM MG GA payments true payouts true",
		"mpesa":        "KE payments true payouts true",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("a test client is offered\n%v, want\n%v", got, want)
	}
}

// What no route leads to is refused for good, naming what is wrong: nothing
// changes by waiting, so nobody is asked to try again.
func TestWhatHasNoRouteIsAMistakeOfTheBody(t *testing.T) {
	t.Parallel()
	w, key := routedWorld(t)
	for i, c := range []struct{ path, who, method, country, currency, phone, want string }{
		{"/payments", "customer", "mtn_momo", "CM", "XAF", "237671234567", "/country country_not_supported"},
		{"/payments", "customer", "mpesa", "KE", "KES", "254712123456", "/method unknown_method"},
		{"/payments", "customer", "airtel_money", "CG", "XAF", "242051234567", "/method unknown_method"},
		{"/payments", "customer", "mtn_momo", "UG", "XAF", "256712345678", "/amount/currency currency_not_supported"},
		{"/payments", "customer", "mtn_momo", "CM", "XAF", "06", "/country country_not_supported, /customer/phone invalid_phone"},
		{"/payments", "customer", "orange_money", "CM", "XAF", "237691234567", "/method unknown_method"},
		{"/payouts", "recipient", "mtn_momo", "UG", "UGX", "256712345678", "/country country_not_supported"},
		{"/payouts", "recipient", "mpesa", "KE", "KES", "254712123456", "/method unknown_method"},
		{"/payouts", "recipient", "airtel_money", "KE", "KES", "254712123456", "/country country_not_supported"},
	} {
		a := w.do(http.MethodPost, "/v1"+c.path, key, fmt.Sprintf(`{"method":%q,"country":%q,"amount":{"value":"5000","currency":%q},
			"idempotency_key":"00000000-0000-4000-8000-%012d",%q:{"phone":%q}}`, c.method, c.country, c.currency, i, c.who, c.phone))
		if got := mistakes(t, a); a.Code != http.StatusUnprocessableEntity || got != c.want || a.Header().Get("Retry-After") != "" {
			t.Errorf("%s by %s in %s %s: %d %s, Retry-After %q, want 422 %s", c.path, c.method, c.country, c.currency,
				a.Code, got, a.Header().Get("Retry-After"), c.want)
		}
	}
}

// mistakes are the errors of a problem, in one line.
func mistakes(t *testing.T, a *httptest.ResponseRecorder) string {
	t.Helper()
	var p struct {
		Code   string
		Errors []struct{ Pointer, Code string }
	}
	if err := json.Unmarshal(a.Body.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range p.Errors {
		out = append(out, e.Pointer+" "+e.Code)
	}
	if len(out) == 0 {
		return p.Code
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
