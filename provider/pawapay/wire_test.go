package pawapay

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"till"
	"till/provider"
	"till/provider/providertest"
	"till/provider/simulator"
)

const testID = "9d0b1f4e-6c1a-4f5b-8c3d-2e7a61f0c4b9"

// Every documented code, in the order of pawaPay's pages, with what we call
// it: of a deposit, of a payout, of a refund.
const documented = `
PAYMENT_NOT_APPROVED             not_approved          unspecified              unspecified
INSUFFICIENT_BALANCE             insufficient_funds    unspecified              unspecified
PAYMENT_IN_PROGRESS              payer_busy            unspecified              unspecified
PAYER_NOT_FOUND                  payer_not_found       unspecified              unspecified
PAYER_LIMIT_REACHED              payer_limit_reached   unspecified              unspecified
WALLET_LIMIT_REACHED             payer_limit_reached   recipient_limit_reached  recipient_limit_reached
TRANSACTION_ALREADY_IN_PROCESS   payer_busy            unspecified              unspecified
UNSPECIFIED_FAILURE              unspecified           unspecified              unspecified
UNKNOWN_ERROR                    provider_error        provider_error           provider_error
RECIPIENT_NOT_FOUND              unspecified           recipient_not_found      recipient_not_found
RECIPIENT_LIMIT_REACHED          unspecified           recipient_limit_reached  recipient_limit_reached
MANUALLY_CANCELLED               unspecified           provider_rejected        provider_rejected
PAWAPAY_WALLET_OUT_OF_FUNDS      provider_unavailable  provider_unavailable     provider_unavailable
AMOUNT_OUT_OF_BOUNDS             amount_out_of_bounds  amount_out_of_bounds     amount_out_of_bounds
INVALID_AMOUNT                   amount_out_of_bounds  amount_out_of_bounds     amount_out_of_bounds
AMOUNT_TOO_LARGE                 amount_out_of_bounds  amount_out_of_bounds     provider_rejected
INVALID_PHONE_NUMBER             payer_not_found       recipient_not_found      recipient_not_found
INVALID_CURRENCY                 provider_rejected     provider_rejected        provider_rejected
INVALID_PROVIDER                 provider_rejected     provider_rejected        provider_rejected
PROVIDER_TEMPORARILY_UNAVAILABLE provider_unavailable  provider_unavailable     provider_unavailable
NOT_FOUND                        provider_rejected     provider_rejected        provider_rejected
INVALID_STATE                    provider_rejected     provider_rejected        provider_rejected
DEPOSIT_ALREADY_REFUNDED         unspecified           unspecified              provider_rejected
REFUND_IN_PROGRESS               unspecified           unspecified              provider_rejected
REFUNDS_NOT_ALLOWED              unspecified           unspecified              provider_rejected
INVALID_INPUT                    provider_rejected     provider_rejected        provider_rejected
MISSING_PARAMETER                provider_rejected     provider_rejected        provider_rejected
UNSUPPORTED_PARAMETER            provider_rejected     provider_rejected        provider_rejected
INVALID_PARAMETER                provider_rejected     provider_rejected        provider_rejected
DUPLICATE_METADATA_FIELD         provider_rejected     provider_rejected        provider_rejected
A_WORD_OF_TOMORROW               unspecified           unspecified              unspecified
`

func TestCodes(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for line := range strings.Lines(strings.TrimSpace(documented)) {
		f := strings.Fields(line)
		seen[f[0]] = true
		for i, k := range []*serviceKind{&deposits, &payouts, &refunds} {
			body := fmt.Sprintf(`{"status":"FOUND","data":{"%s":"%s","status":"FAILED","failureReason":{"failureCode":"%s","failureMessage":"m"}}}`, k.id, testID, f[0])
			r, err := readCheck(k, 200, []byte(body), testID)
			if err != nil || r.Outcome != provider.Failed || string(r.Reason) != f[1+i] || r.Code != f[0] || r.Message != "m" {
				t.Errorf("%s of a %s: %+v, %v", f[0], k.id, r, err)
			}
			for _, status := range []int{200, 400} {
				body = fmt.Sprintf(`{"%s":"%s","status":"REJECTED","failureReason":{"failureCode":"%s","failureMessage":"m"}}`, k.id, testID, f[0])
				r, err = readSubmit(k, status, []byte(body), testID)
				if f[0] == "UNKNOWN_ERROR" { // pawaPay does not know itself
					if err == nil {
						t.Errorf("%d %s is the verdict %+v, want an error", status, f[0], r)
					}
				} else if err != nil || r.Outcome != provider.Rejected || string(r.Reason) != f[1+i] || r.Code != f[0] {
					t.Errorf("%d %s of a %s: %+v, %v", status, f[0], k.id, r, err)
				}
			}
		}
	}
	for _, k := range []*serviceKind{&deposits, &payouts, &refunds} {
		for code := range k.codes {
			if !seen[code] {
				t.Errorf("%s is in the table and not in the documents", code)
			}
		}
	}
}

func TestReadCheck(t *testing.T) {
	t.Parallel()
	found := func(rest string) string {
		return `{"status":"FOUND","data":{"depositId":"` + testID + `",` + rest + `}}`
	}
	for _, c := range []struct {
		status int
		body   string
		want   provider.Outcome // "": we do not know
	}{
		{200, found(`"status":"ACCEPTED"`), provider.Open},
		{200, found(`"status":"ENQUEUED"`), provider.Open},
		{200, found(`"status":"PROCESSING"`), provider.Open},
		{200, found(`"status":"IN_RECONCILIATION"`), provider.Open},
		{200, found(`"status":"COMPLETED","amount":"100.00","currency":"XAF"`), provider.Success},
		{200, found(`"status":"COMPLETED","amount":100,"currency":"XAF"`), provider.Success},
		{200, found(`"status":"FAILED"`), provider.Failed},
		{200, found(`"status":"completed","amount":"100.00","currency":"XAF"`), provider.Unrecognised},
		{200, found(`"status":"REFUNDED"`), provider.Unrecognised},
		{200, found(`"status":7`), provider.Unrecognised},
		{200, `{"status":"NOT_FOUND"}`, provider.NotFound},
		{200, found(`"status":"COMPLETED"`), ""}, // it always says how much
		{200, found(`"status":"COMPLETED","amount":"100.50","currency":"XAF"`), ""},
		{200, found(`"status":"COMPLETED","amount":"1e2","currency":"XAF"`), ""},
		{200, found(`"status":"COMPLETED","amount":"-5","currency":"XAF"`), ""},
		{200, found(`"status":"COMPLETED","amount":"100.00","currency":"ABC"`), ""},
		{200, found(`"status":"COMPLETED","amount":{"value":"1"},"currency":"XAF"`), ""},
		{200, found(`"amount":"1"`), ""},
		{200, found(`"status":null`), ""},
		{200, `{"status":"FOUND"}`, ""},
		{200, `{"status":"FOUND","data":{"status":"COMPLETED","amount":"1","currency":"XAF"}}`, ""},
		{200, `{"status":"FOUND","data":{"payoutId":"` + testID + `","status":"COMPLETED","amount":"1","currency":"XAF"}}`, ""},
		{200, `{"status":"FOUND","data":{"depositId":"00000000-6c1a-4f5b-8c3d-2e7a61f0c4b9","status":"FAILED"}}`, ""},
		{200, `{"status":"NOT_FOUND","data":{"status":"COMPLETED"}}`, ""},
		{200, `{"status":"LOST"}`, ""},
		{200, `[{"status":"NOT_FOUND"}]`, ""},
		{404, `{"status":"NOT_FOUND"}`, ""},
		{500, `{"status":"NOT_FOUND"}`, ""},
		{500, found(`"status":"FAILED"`), ""},
		{202, found(`"status":"FAILED"`), ""},
	} {
		r, err := readCheck(&deposits, c.status, []byte(c.body), testID)
		if r.Outcome != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%d %s\nis %q (%v), want %q", c.status, c.body, r.Outcome, err, c.want)
		}
	}
	for status := 100; status < 600; status++ {
		_, err := readCheck(&deposits, status, []byte(found(`"status":"FAILED"`)), testID)
		if (err == nil) != (status == 200) || errors.Is(err, provider.ErrCredentials) != (status == 401 || status == 403) {
			t.Errorf("HTTP %d: %v", status, err)
		}
	}
}

func TestReadSubmit(t *testing.T) {
	t.Parallel()
	ours := `"depositId":"` + testID + `"`
	for _, c := range []struct {
		status int
		body   string
		want   provider.Outcome
	}{
		{200, `{` + ours + `,"status":"ACCEPTED"}`, provider.Accepted},
		{200, `{"status":"ACCEPTED"}`, provider.Accepted},
		{200, `{` + ours + `,"status":"DUPLICATE_IGNORED"}`, provider.Duplicate},
		{200, `{` + ours + `,"status":"REJECTED","failureReason":{"failureCode":"INVALID_AMOUNT"}}`, provider.Rejected},
		{400, `{"failureReason":{"failureCode":"INVALID_INPUT"}}`, provider.Rejected},
		{200, `{` + ours + `,"status":"REJECTED"}`, ""},
		{200, `{` + ours + `,"status":"REJECTED","failureReason":{}}`, ""},
		{200, `{` + ours + `,"status":"COMPLETED"}`, ""},
		{200, `{"depositId":"00000000-6c1a-4f5b-8c3d-2e7a61f0c4b9","status":"REJECTED","failureReason":{"failureCode":"INVALID_AMOUNT"}}`, ""},
		{400, `{"failureReason":{"failureCode":"A_WORD_OF_TOMORROW"}}`, ""},
		{400, ``, ""},
		{400, `{}`, ""},
		{500, `{"failureReason":{"failureCode":"UNKNOWN_ERROR"}}`, ""},
		{500, `{` + ours + `,"status":"REJECTED","failureReason":{"failureCode":"INVALID_AMOUNT"}}`, ""},
		{404, `{` + ours + `,"status":"REJECTED","failureReason":{"failureCode":"INVALID_AMOUNT"}}`, ""},
		{200, `{"status":["ACCEPTED"]}`, ""},
		{200, `<html>ACCEPTED</html>`, ""},
	} {
		r, err := readSubmit(&deposits, c.status, []byte(c.body), testID)
		if r.Outcome != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%d %s\nis %q (%v), want %q", c.status, c.body, r.Outcome, err, c.want)
		}
	}
	for status := 100; status < 600; status++ {
		_, err := readSubmit(&deposits, status, []byte(`{"status":"ACCEPTED"}`), testID)
		if (err == nil) != (status == 200) || errors.Is(err, provider.ErrCredentials) != (status == 401 || status == 403) {
			t.Errorf("HTTP %d: %v", status, err)
		}
	}
}

func TestAmounts(t *testing.T) {
	t.Parallel()
	routes := mergeRoutes(nil)
	for _, c := range []struct {
		method, country, currency string
		minor                     int64
		payment, payout           string // "": it cannot be expressed
	}{
		{"mtn_momo", "CG", "XAF", 1000, "1000", "1000"},
		{"airtel_money", "GA", "XAF", 1000, "1000", "1000"}, // two places, but a franc has none
		{"mpesa", "KE", "KES", 100, "1", "1"},
		{"mpesa", "KE", "KES", 1050, "", "10.5"},
		{"mpesa", "KE", "KES", 1005, "", "10.05"},
		{"mtn_momo", "GH", "GHS", 5, "0.05", "0.05"},
		{"mtn_momo", "GH", "GHS", 50, "0.5", "0.5"},
		{"mtn_momo", "UG", "UGX", 999_999_999_999_999, "999999999999999", "999999999999999"},
		{"mtn_momo", "CG", "XAF", 0, "", ""},
		{"mtn_momo", "CG", "XAF", -5, "", ""},
	} {
		r := routes[routeKey{c.method, c.country, c.currency}]
		for i, k := range []*serviceKind{&deposits, &payouts, &refunds} {
			want := []string{c.payment, c.payout, c.payout}[i]
			got, ok := r.amount(till.Money{Minor: c.minor, Currency: c.currency}, k)
			if got != want || ok != (want != "") {
				t.Errorf("%d %s of %s: %q %v, want %q", c.minor, c.currency, k.id, got, ok, want)
			}
			if ok && !simAmount.MatchString(got) {
				t.Errorf("%q is against pawaPay's pattern", got)
			}
		}
	}
	for i, r := range defaultRoutes {
		if err := r.validate(); err != nil {
			t.Errorf("row %d, %s: %v", i, r.Code, err)
		}
	}
	if n := len(mergeRoutes(nil)); n != len(defaultRoutes) {
		t.Errorf("%d routes of %d rows: one hides another", n, len(defaultRoutes))
	}
}

func TestCustomerMessage(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Order 12345": "Order 12345",
		"L'été à l'école de Brazzaville 2026": "L ete a l ecole de Bra",
		"ok":                      "Mobile payment",
		"":                        "Mobile payment",
		"🎉🎉🎉🎉🎉":                   "Mobile payment",
		"  a   b  c ":             "a b c",
		"123456789012345678901 3": "123456789012345678901",
	} {
		if got := customerMessage(text, defaultMessage); got != want || !simMessage.MatchString(got) {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestNothingIsSent(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a call was made") }))
	defer server.Close()
	p := newOperator(t, Config{BaseURL: server.URL, APIToken: testToken}, time.Now).Payments()
	r := goldenRequest(t)
	r.Method, r.Country, r.Amount = "mpesa", "KE", till.Money{Minor: 150, Currency: "KES"}
	if got, err := p.Submit(t.Context(), r); err != nil || got.Outcome != provider.Rejected || got.Code != codeNotRepresentable {
		t.Errorf("half a shilling: %+v, %v", got, err)
	}
	r.Country = "FR"
	if _, err := p.Submit(t.Context(), r); !errors.Is(err, provider.ErrNotSent) {
		t.Errorf("a country without a provider: %v", err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	good := Config{BaseURL: "https://api.pawapay.io", APIToken: "x"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	if o := newOperator(t, good, nil); o.Payments() == nil || o.Payouts() != nil {
		t.Error("payouts are on without being asked for")
	}
	if o := newOperator(t, Config{BaseURL: "https://api.pawapay.io", APIToken: "x", Operations: []string{"payouts"}}, nil); o.Payments() != nil || o.Payouts() == nil {
		t.Error("payments are on without being asked for")
	}
	bad := Config{BaseURL: "http://api.pawapay.io", Operations: []string{"refunds"}, CustomerMessage: "Ça", SigningKey: "x", SignatureEncoding: "hex",
		CallbackAuthorities: []string{"https://x/"}, ApprovalWindowSeconds: -1, SubmitRate: -1, CheckRate: 1 << 30,
		Providers: []Route{{Method: "mtn_momo", Country: "cg", Code: "x", Currency: "XAF"}}}
	err := bad.Validate()
	if err == nil {
		t.Fatal("it passes")
	}
	for _, key := range []string{"base_url", "api_token", "operations", "provider", "customer_message", "signing_key:", "signing_key_id",
		"signature_encoding", "callback_authorities", "approval_window_seconds", "submit_rate", "check_rate"} {
		if !strings.Contains(err.Error(), key) {
			t.Errorf("%s is not complained about in %q", key, err)
		}
	}
	own := good
	own.Providers = []Route{{Method: "mtn_momo", Country: "CG", Code: "MTN_NEW_COG", Currency: "XAF"}}
	if r := newOperator(t, own, nil).routes[routeKey{"mtn_momo", "CG", "XAF"}]; r.Code != "MTN_NEW_COG" {
		t.Errorf("the configuration does not win: %+v", r)
	}
	for authority, fits := range map[string]bool{"pay.example.com": true, "PAY.example.com": false, "pay.example.com:8443": false, "shop.example.com": false} {
		o, err := New(Config{BaseURL: "https://api.pawapay.io", APIToken: "x", VerifyCallbacks: true, CallbackAuthorities: []string{authority}}, provider.Deps{})
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Payments().(provider.CallbackChecker).CheckCallback("https://pay.example.com:443/v1/x"); (err == nil) != fits {
			t.Errorf("callback_authorities %q: %v", authority, err)
		}
	}
	o, err := New(Config{BaseURL: "https://api.pawapay.io", APIToken: "x", VerifyCallbacks: true}, provider.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Payments().(provider.CallbackReader).ReadCallback(provider.CallbackRequest{}); !errors.Is(err, errNoAuthority) {
		t.Errorf("callbacks are verified for no host: %v", err)
	}
}

func TestTester(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*SimConfig, *Config)
		says   string // "": all is well
	}{
		{"well", nil, ""},
		{"another token", func(s *SimConfig, _ *Config) { s.Token = "another" }, "API token"},
		{"signatures wanted", func(s *SimConfig, _ *Config) { s.ClientKey, s.ClientKeyID = rfcKey, "k" }, "signing_key"},
		{"signatures expected", func(_ *SimConfig, c *Config) { c.VerifyCallbacks = true }, "signed callbacks"},
		{"decimals that differ", func(_ *SimConfig, c *Config) {
			c.Providers = []Route{{"mpesa", "KE", "KES", "MPESA_KEN", 2, 0}}
		}, "MPESA_KEN"},
		{"a provider that is not there", func(_ *SimConfig, c *Config) {
			c.Providers = []Route{{"mtn_momo", "CG", "XAF", "MTN_MOMO_XXX", 0, 0}}
		}, "MTN_MOMO_XXX"},
		{"nobody there", func(_ *SimConfig, c *Config) { c.BaseURL = "http://127.0.0.1:1" }, "cannot be reached"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sc, config := SimConfig{Token: testToken}, Config{APIToken: testToken, Operations: []string{"payments", "payouts"}}
			if c.change != nil {
				c.change(&sc, &config)
			}
			sim, err := NewSimulator(sc)
			if err != nil {
				t.Fatal(err)
			}
			defer sim.Close()
			server := httptest.NewServer(sim)
			defer server.Close()
			if config.BaseURL == "" {
				config.BaseURL = server.URL
			}
			o := newOperator(t, config, time.Now)
			if err := o.Payouts().(provider.RefundTester).TestRefunds(t.Context()); (err == nil) != (c.says != "API token" && c.says != "cannot be reached") {
				t.Errorf("of refunds it says %v", err)
			}
			for _, p := range []provider.Provider{o.Payments(), o.Payouts()} {
				err := p.(provider.Tester).Test(t.Context())
				if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
					t.Errorf("it says %v, want %q", err, c.says)
				}
			}
		})
	}
}

// TestSimulatorIsStrict shows that the simulator refuses what pawaPay refuses.
func TestSimulatorIsStrict(t *testing.T) {
	t.Parallel()
	sim, err := NewSimulator(SimConfig{Token: testToken})
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()
	x := providertest.ReadExchange(t, "testdata/deposit_accepted.txt")
	_, body, _ := strings.Cut(x.Requests[0], "\n\n")
	for _, c := range []struct {
		old, with string
		status    int
		code      string
	}{
		{`"amount":"1000"`, `"amount":"1000.00"`, 400, "INVALID_PARAMETER"},
		{`"amount":"1000"`, `"amount":"1000.5"`, 200, "INVALID_AMOUNT"},
		{`"amount":"1000"`, `"amount":1000`, 400, "INVALID_INPUT"},
		{`"amount":"1000"`, `"amount":"0"`, 200, "AMOUNT_OUT_OF_BOUNDS"},
		{`"amount":"1000",`, ``, 400, "MISSING_PARAMETER"},
		{`"currency":"XAF"`, `"currency":"XOF"`, 200, "INVALID_CURRENCY"},
		{`MTN_MOMO_COG`, `MTN_MOMO_XXX`, 200, "INVALID_PROVIDER"},
		{`242063456789`, `237653456789`, 200, "INVALID_PHONE_NUMBER"},
		{`Order 12345`, `Commande n°5`, 400, "INVALID_PARAMETER"},
		{`4f5b-8c3d`, `7f5b-8c3d`, 400, "INVALID_PARAMETER"}, // not a UUID of version 4
		{`"payer"`, `"recipient"`, 400, "MISSING_PARAMETER"},
		{`"currency"`, `"surprise":1,"currency"`, 400, "UNSUPPORTED_PARAMETER"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/v2/deposits", strings.NewReader(strings.Replace(body, c.old, c.with, 1)))
		r.Header.Set("Authorization", "Bearer "+testToken)
		rec := httptest.NewRecorder()
		sim.ServeHTTP(rec, r)
		var a answer
		if err := json.Unmarshal(rec.Body.Bytes(), &a); err != nil || a.FailureReason == nil || string(a.FailureReason.Code) != c.code || rec.Code != c.status {
			t.Errorf("%s: %d %s, want %d %s", c.with, rec.Code, rec.Body, c.status, c.code)
		}
	}
	if n := len(sim.Book().Entries()); n != 0 {
		t.Errorf("%d requests were written down", n)
	}
}

// TestSimulatorFaults shows that a fault loses what it says, and that a book
// outlives its simulator.
func TestSimulatorFaults(t *testing.T) {
	t.Parallel()
	book := t.TempDir() + "/book"
	for _, c := range []struct {
		faults  simulator.Faults
		entries int
	}{{simulator.Faults{LostRequest: 1}, 0}, {simulator.Faults{LostResponse: 1}, 1}, {simulator.Faults{}, 2}} {
		sim, err := NewSimulator(SimConfig{Token: testToken, Path: book, Faults: c.faults})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(sim)
		r := goldenRequest(t)
		r.Reference = providertest.NewReference()
		_, err = newOperator(t, Config{BaseURL: server.URL, APIToken: testToken}, time.Now).Payments().Submit(t.Context(), r)
		if n := len(sim.Book().Entries()); n != c.entries || (err != nil) != (c.faults != simulator.Faults{}) || errors.Is(err, provider.ErrNotSent) {
			t.Errorf("%+v: %d requests in the book, %v", c.faults, n, err)
		}
		server.Close()
		sim.Close()
	}
}
