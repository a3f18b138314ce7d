package pawapay

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"till"
	"till/provider"
	"till/provider/providertest"
)

// readMarkets asks a handler what the account may do.
func readMarkets(t testing.TB, side http.Handler) (provider.Markets, error) {
	t.Helper()
	server := httptest.NewServer(side)
	defer server.Close()
	o := newOperator(t, Config{BaseURL: server.URL, APIToken: testToken, Operations: []string{"payments", "payouts"}}, time.Now)
	all, err := o.Payouts().(provider.MarketReader).Markets(t.Context())
	if err != nil {
		return nil, err
	}
	return provider.NewMarkets(all)
}

func simOf(t testing.TB) *Simulator {
	t.Helper()
	sim, err := NewSimulator(SimConfig{Token: testToken})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sim.Close() })
	return sim
}

// The simulated account says what it may do, and does that.
func TestMarkets(t *testing.T) {
	t.Parallel()
	sim := simOf(t)
	ms, err := readMarkets(t, sim)
	if err != nil {
		t.Fatal(err)
	}
	if len(ms) != len(defaultRoutes) {
		t.Errorf("%d markets of %d", len(ms), len(defaultRoutes))
	}
	congo := ms.Find("mtn_momo", "CG", "XAF")
	if want := (provider.MarketTerms{State: provider.MarketOpen, Min: 1, Max: 2_000_000, Flow: till.FlowPush, Dial: "*105#"}); congo == nil || *congo.Payments != want || congo.Shown != simShown {
		t.Fatalf("%+v, want %+v", congo, want)
	}
	if kenya := ms.Find("mpesa", "KE", "KES"); kenya.Payments.Step != 100 || kenya.Payouts.Step != 0 || kenya.Payments.Max != 200_000_000 {
		t.Errorf("Kenya: %+v, %+v", kenya.Payments, kenya.Payouts)
	}
	err = sim.SetMarkets([]string{"MTN_MOMO_COG DEPOSIT CLOSED", "MTN_MOMO_COG REFUND LACKING", "MTN_MOMO_COG PAYOUT DELAYED", "AIRTEL_COG DEPOSIT DELAYED", "MTN_MOMO_CMR DEPOSIT 500-100000",
		"ORANGE_CMR DEPOSIT LACKING", "ORANGE_CMR PAYOUT LACKING", "ORANGE_CMR REFUND LACKING"})
	if err != nil {
		t.Fatal(err)
	}
	if ms, err = readMarkets(t, sim); err != nil {
		t.Fatal(err)
	}
	congo = ms.Find("mtn_momo", "CG", "XAF")
	cameroon := ms.Find("mtn_momo", "CM", "XAF")
	if congo.Payments.State != provider.MarketClosed || congo.Payouts.State != provider.MarketDelayed || congo.Refunds != nil ||
		ms.Find("airtel_money", "CG", "XAF").Payments.State != provider.MarketDelayed ||
		cameroon.Payments.Min != 500 || cameroon.Payments.Max != 100_000 || cameroon.Payouts.Max != 2_000_000 || ms.Find("orange_money", "CM", "XAF") != nil {
		t.Errorf("%+v, %+v, %+v", congo.Payments, congo.Payouts, cameroon.Payments)
	}
	server := httptest.NewServer(sim)
	defer server.Close()
	o := newOperator(t, Config{BaseURL: server.URL, APIToken: testToken, Operations: []string{"payments", "payouts"}}, time.Now)
	for _, c := range []struct {
		p       provider.Provider
		method  string
		country string
		phone   string
		amount  int64
		want    provider.Outcome
		code    string
	}{
		{o.Payments(), "mtn_momo", "CG", "242061234789", 1000, provider.Rejected, "PROVIDER_TEMPORARILY_UNAVAILABLE"},
		{o.Payments(), "airtel_money", "CG", "242051234789", 1000, provider.Rejected, "PROVIDER_TEMPORARILY_UNAVAILABLE"},
		{o.Payouts(), "mtn_momo", "CG", "242061234789", 1000, provider.Accepted, ""},
		{o.Payments(), "mtn_momo", "CM", "237671234789", 499, provider.Rejected, "AMOUNT_OUT_OF_BOUNDS"},
		{o.Payments(), "mtn_momo", "CM", "237671234789", 100_001, provider.Rejected, "AMOUNT_OUT_OF_BOUNDS"},
		{o.Payments(), "mtn_momo", "CM", "237671234789", 100_000, provider.Accepted, ""},
		{o.Payments(), "orange_money", "CM", "237691234789", 1000, provider.Rejected, "INVALID_PROVIDER"},
	} {
		r, err := c.p.Submit(t.Context(), provider.Request{Client: till.NewID(1), ID: till.NewID(2), Reference: providertest.NewReference(), Method: c.method, Country: c.country,
			Phone: c.phone, Amount: till.Money{Minor: c.amount, Currency: "XAF"}, Description: "Order"})
		if err != nil || r.Outcome != c.want || r.Code != c.code {
			t.Errorf("%d by %s in %s: %+v, %v; want %s %s", c.amount, c.method, c.country, r, err, c.want, c.code)
		}
	}
	for _, wrong := range []string{"", "MTN_MOMO_COG", "MTN_MOMO_COG DEPOSIT SHUT", "MTN_MOMO_XXX DEPOSIT CLOSED", "MTN_MOMO_COG GIFT CLOSED", "MTN_MOMO_COG DEPOSIT 5-", "MTN_MOMO_COG DEPOSIT CLOSED now"} {
		if err := sim.SetMarkets([]string{"MTN_MOMO_COG DEPOSIT OPERATIONAL", wrong}); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
	if m := sim.market("MTN_MOMO_COG", &deposits); m.Status != simClosed {
		t.Error("a wrong text has changed something")
	}
}

// congoConf is an active configuration with one provider of Congo.
func congoConf(currency, deposit string) string {
	return fmt.Sprintf(`{"companyName":"Shop","countries":[{"country":"COG","providers":[{"provider":"MTN_MOMO_COG","nameDisplayedToCustomer":"MAPASSA SARL","currencies":[{"currency":%q,"operationTypes":%s}]}]}]}`, currency, deposit)
}

// Both of pawaPay's forms are read, and what they leave out narrows nothing.
func TestMarketsInEveryForm(t *testing.T) {
	t.Parallel()
	open := provider.MarketTerms{State: provider.MarketOpen}
	with := func(change func(*provider.MarketTerms)) provider.MarketTerms { m := open; change(&m); return m }
	for body, want := range map[string]provider.MarketTerms{
		`{"DEPOSIT":{}}`: open,
		`{"DEPOSIT":{"minAmount":"100","maxAmount":"500000","status":"CLOSED","authType":"PROVIDER_AUTH"}}`: {State: provider.MarketClosed, Min: 100, Max: 500_000, Flow: till.FlowPush},
		`[{"operationType":"DEPOSIT","minTransactionLimit":"100.00","maxTransactionLimit":5000}]`:           with(func(m *provider.MarketTerms) { m.Min, m.Max = 100, 5000 }),
		`{"DEPOSIT":{"authType":"REDIRECT_AUTH"}}`:                                                          with(func(m *provider.MarketTerms) { m.Flow = till.FlowRedirect }),
		`{"DEPOSIT":{"authType":"PREAUTH"}}`:                                                                with(func(m *provider.MarketTerms) { m.Flow = till.FlowCode }),
		`{"DEPOSIT":{"authType":"TELEPATHY"}}`:                                                              {State: provider.MarketClosed},
		`{"DEPOSIT":{"pinPromptInstructions":{"channels":[{"type":"APP"},{"type":"USSD","instructions":{"en":[{"text":"Dial","variables":{"shortCode":"*105#"}}]}}]}}}`: with(func(m *provider.MarketTerms) { m.Dial = "*105#" }),
		`{"DEPOSIT":{"pinPromptInstructions":{"channels":[{"type":"USSD","variables":{"shortCode":"*105*1*061234567*500000#"}}]}}}`:                                     open,
		`{"DEPOSIT":{"pinPromptInstructions":["dial something"]}}`:                                                                                                      open,
		`{"DEPOSIT":{"pinPromptInstructions":null}}`:                                                                                                                    open,
	} {
		ms, err := readMarkets(t, answering(200, congoConf("XAF", body)))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		m := ms.Find("mtn_momo", "CG", "XAF")
		if m == nil || m.Payments == nil || *m.Payments != want || m.Payouts != nil || m.Refunds != nil || m.Shown != "MAPASSA SARL" {
			t.Errorf("%s is read as %+v, want %+v", body, m, want)
		}
	}
	ms, err := readMarkets(t, answering(200, strings.Replace(congoConf("XAF", `{"DEPOSIT":{}}`), `"countries":[`, `"countries":[{"country":"MLI","providers":[{"provider":"NEW_MLI","currencies":[{"currency":"XOF","operationTypes":7}]}]},`, 1)))
	if err != nil || len(ms) != 1 {
		t.Errorf("with a provider that we do not know: %d markets, %v", len(ms), err)
	}
	if ms, err := readMarkets(t, answering(200, strings.Replace(congoConf("XAF", `{"DEPOSIT":{}}`), "MAPASSA SARL", `A\u202eB`, 1))); err != nil || ms.Find("mtn_momo", "CG", "XAF").Shown != "" {
		t.Errorf("a name that cannot be shown: %+v, %v", ms, err)
	}
}

func answering(status int, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		w.Write([]byte(body))
	})
}

// An answer that cannot be is refused as a whole.
func TestMarketsThatCannotBe(t *testing.T) {
	t.Parallel()
	row := `{"provider":"MTN_MOMO_COG","currencies":[{"currency":"XAF","operationTypes":{"DEPOSIT":{"status":"OPERATIONAL"}}}]}`
	twice := `{"countries":[{"country":"COG","providers":[` + row + "," + row + `]}]}`
	for name, side := range map[string]http.Handler{
		"HTML":                  answering(200, "<html><body>Welcome</body></html>"),
		"nothing":               answering(200, ""),
		"an empty object":       answering(200, "{}"),
		"no country":            answering(200, `{"countries":[]}`),
		"a list":                answering(200, `[1,2,3]`),
		"cut off":               answering(200, congoConf("XAF", `{"DEPOSIT":{}}`)[:80]),
		"an error":              answering(503, congoConf("XAF", `{"DEPOSIT":{}}`)),
		"a wrong token":         answering(401, `{}`),
		"100 000 rows":          answering(200, `{"countries":[{"country":"COG","providers":[`+strings.Repeat(row+",", 100_000)+row+`]}]}`),
		"the same twice":        answering(200, twice),
		"another currency":      answering(200, congoConf("KES", `{"DEPOSIT":{}}`)),
		"one in another":        answering(200, strings.Replace(congoConf("KES", `{"DEPOSIT":{}}`), `"providers":[`, `"providers":[{"provider":"AIRTEL_COG","currencies":[{"currency":"XAF","operationTypes":{}}]},`, 1)),
		"no currency":           answering(200, congoConf("", `{"DEPOSIT":{}}`)),
		"operations of numbers": answering(200, congoConf("XAF", `7`)),
		"negative bounds":       answering(200, congoConf("XAF", `{"DEPOSIT":{"minAmount":"-100","maxAmount":"100"}}`)),
		"a negative maximum":    answering(200, congoConf("XAF", `{"DEPOSIT":{"maxAmount":-1}}`)),
		"min above max":         answering(200, congoConf("XAF", `{"DEPOSIT":{"minAmount":"200","maxAmount":"100"}}`)),
		"at most nothing":       answering(200, congoConf("XAF", `{"DEPOSIT":{"maxAmount":"0"}}`)),
		"half a franc":          answering(200, congoConf("XAF", `{"DEPOSIT":{"minAmount":"0.5"}}`)),
		"an endless amount":     answering(200, congoConf("XAF", `{"DEPOSIT":{"maxAmount":"99999999999999999999"}}`)),
		"no amount":             answering(200, congoConf("XAF", `{"DEPOSIT":{"maxAmount":"a lot"}}`)),
		"a status":              answering(200, congoConf("XAF", `{"DEPOSIT":{"status":"MAYBE"}}`)),
		"decimals":              answering(200, congoConf("XAF", `{"DEPOSIT":{"decimalsInAmount":"PI"}}`)),
		"wrong for refunds":     answering(200, congoConf("XAF", `{"DEPOSIT":{},"REFUND":{"status":"MAYBE"}}`)),
	} {
		if ms, err := readMarkets(t, side); err == nil || ms != nil {
			t.Errorf("%s is read as %v", name, ms)
		}
	}
}

// FuzzMarkets: no answer panics, and what is read is within what can be.
func FuzzMarkets(f *testing.F) {
	f.Add([]byte(congoConf("XAF", `{"DEPOSIT":{"minAmount":"100","maxAmount":"500000","status":"CLOSED"}}`)))
	f.Add([]byte(congoConf("XAF", `[{"operationType":"PAYOUT","status":"DELAYED","decimalsInAmount":"NONE"}]`)))
	f.Add([]byte(`{"countries":[{"providers":[{"provider":"MPESA_KEN","currencies":[{"currency":"KES","operationTypes":{"DEPOSIT":{"maxAmount":"0"}}}]}]}]}`))
	s := &service{Operator: &Operator{routes: mergeRoutes(nil)}, kind: &deposits}
	f.Fuzz(func(t *testing.T, body []byte) {
		conf, err := decodeConf(body)
		if err != nil {
			return
		}
		all, err := s.markets(conf)
		if err != nil {
			if len(all) > 0 {
				t.Fatal("markets beside the error")
			}
			return
		}
		if len(all) == 0 {
			t.Fatal("no market and no error")
		}
		for _, m := range all {
			if !s.Serves(m.Method, m.Country, m.Currency) {
				t.Fatalf("a market that is not ours: %+v", m)
			}
			for _, terms := range []*provider.MarketTerms{m.Payments, m.Payouts, m.Refunds} {
				if terms != nil && (terms.Min < 0 || terms.Max < 0 || terms.Max > 0 && terms.Min > terms.Max || terms.Dial != "" && !provider.IsDial(terms.Dial)) {
					t.Fatalf("%+v", terms)
				}
			}
		}
	})
}
