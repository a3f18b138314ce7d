package airtel_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"till/provider"
	"till/provider/airtel"
	"till/provider/providertest"
)

func TestValidateNamesEveryMistake(t *testing.T) {
	err := airtel.Config{
		BaseURL: "openapi.airtel.cg", Country: "Congo", Currency: "franc", Operations: []string{"payouts", "lending"}, CallbackKey: "a\nb",
		PIN: "12", PINPublicKey: "nonsense", PINPadding: "none", DisbursementVersion: "v9", ApprovalWindowSeconds: -1,
	}.Validate()
	for _, key := range []string{"base_url", "country", "currency", "operations", "client_id", "client_secret", "callback_key", "pin", "pin_public_key", "pin_padding",
		"disbursement_version", "approval_window_seconds"} {
		if err == nil || !strings.Contains(err.Error(), key+": ") {
			t.Errorf("the mistake of %s is not named in: %v", key, err)
		}
	}
}

func TestOnlyWhatIsNamedIsServed(t *testing.T) {
	w := newWorld(t, airtel.SimConfig{}, func(c *airtel.Config) { c.Operations, c.PIN, c.PINPublicKey = nil, "", "" })
	if w.Payments() == nil || w.Payouts() != nil {
		t.Errorf("payments %v, payouts %v", w.Payments(), w.Payouts())
	}
	w = newWorld(t, airtel.SimConfig{}, func(c *airtel.Config) { c.Operations = []string{"payouts"} })
	if w.Payments() != nil || w.Payouts() == nil {
		t.Errorf("payments %v, payouts %v", w.Payments(), w.Payouts())
	}
}

func TestATestSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*airtel.Config)
		want   string
	}{
		{"all is well", nil, ""},
		{"a wrong secret", func(c *airtel.Config) { c.ClientSecret = "wrong" }, "gives no token"},
		{"another country", func(c *airtel.Config) { c.Country, c.Currency = "UG", "UGX" }, "country and currency"},
		{"another path", func(c *airtel.Config) { c.BaseURL += "/api" }, "base_url"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, airtel.SimConfig{}, c.change)
			err := w.Payments().(provider.Tester).Test(t.Context())
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("it says %v, want %q", err, c.want)
			}
		})
	}
	w := newWorld(t, airtel.SimConfig{}, nil)
	if err := w.Payments().(provider.Tester).Test(t.Context()); err != nil { // there is a token
		t.Fatal(err)
	}
	w.line.Always(providertest.Token, providertest.Forge(providertest.Answer{Status: 401, Body: `{"error":"invalid_client"}`}))
	w.sim.ForgetTokens()
	if err := w.Payments().(provider.Tester).Test(t.Context()); err == nil || !strings.Contains(err.Error(), "gives no token") {
		t.Errorf("once the operator has replaced the secret it says %v, want that it gives no token", err)
	}
}

// A request may be taken although its answer says nothing: the enquiry finds
// it, and a second send is a duplicate.
func TestAmbiguousAnswersAreAskedAbout(t *testing.T) {
	for _, ending := range []string{"0022", "0023", "0024"} {
		w := newWorld(t, airtel.SimConfig{}, nil)
		for _, p := range []provider.Provider{w.Payments(), w.Payouts()} {
			r := newRequest(w.clock, "24205123"+ending)
			if got, err := p.Submit(t.Context(), r); err == nil {
				t.Errorf("%s: the answer is %q", ending, got.Outcome)
			}
			if got, err := p.Submit(t.Context(), r); err != nil || got.Outcome != provider.Duplicate {
				t.Errorf("%s: a second send is %q, %v", ending, got.Outcome, err)
			}
			w.clock.Advance(time.Minute)
			if got, err := p.Check(t.Context(), provider.Query{Reference: r.Reference}); err != nil || got.Outcome != provider.Success {
				t.Errorf("%s: the enquiry is %q, %v", ending, got.Outcome, err)
			}
		}
	}
}

// A disbursement that is answered with its end is still no more than accepted.
func TestASynchronousPayoutIsAccepted(t *testing.T) {
	w := newWorld(t, airtel.SimConfig{SyncPayouts: true}, nil)
	r := newRequest(w.clock, "242051234567")
	got, err := w.Payouts().Submit(t.Context(), r)
	if err != nil || got.Outcome != provider.Accepted {
		t.Errorf("the answer is %q, %v", got.Outcome, err)
	}
	got, err = w.Payouts().Check(t.Context(), provider.Query{Reference: r.Reference})
	if err != nil || got.Outcome != provider.Success || got.Receipt == "" {
		t.Errorf("the enquiry is %+v, %v", got, err)
	}
}

// Each padding is one that the other side can undo; a wrong one is our own
// mistake, never the recipient's.
func TestAWrongPINIsOurs(t *testing.T) {
	for name, change := range map[string]func(*airtel.Config){
		"another PIN":     func(c *airtel.Config) { c.PIN = "9999" },
		"another padding": func(c *airtel.Config) { c.PINPadding = "oaep-sha1" },
	} {
		w := newWorld(t, airtel.SimConfig{}, change)
		got, err := w.Payouts().Submit(t.Context(), newRequest(w.clock, "242051234567"))
		if err != nil || got.Outcome != provider.Rejected || got.Reason != "provider_unavailable" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if len(w.sim.Book().Entries()) != 0 {
			t.Errorf("%s: it is in the book", name)
		}
	}
}

func TestAnUnsignedRequestIsRefusedWhereSigningIsDue(t *testing.T) {
	w := newWorld(t, airtel.SimConfig{SignedOnly: true}, nil)
	got, err := w.Payments().Submit(t.Context(), newRequest(w.clock, "242051234567"))
	if err != nil || got.Outcome != provider.Rejected || got.Code != "DP00800001026" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestTheSimulatorIsStrict(t *testing.T) {
	w := newWorld(t, airtel.SimConfig{}, nil)
	token := func() string {
		var out map[string]string
		res, err := http.Post(w.line.URL()+"/auth/oauth2/token", "application/json",
			strings.NewReader(`{"client_id":"`+airtel.SimClientID+`","client_secret":"`+airtel.SimClientSecret+`","grant_type":"client_credentials"}`))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(&out); err != nil || out["expires_in"] != "180" {
			t.Fatalf("the token is %v, %v", out, err)
		}
		return out["access_token"]
	}()
	good := `{"reference":"ORDER123","subscriber":{"country":"CG","currency":"XAF","msisdn":"051234567"},"transaction":{"amount":1000,"country":"CG","currency":"XAF","id":"PAY0001ABC"}}`
	for _, c := range []struct {
		name, country, currency, body string
		status                        int
		want                          string
	}{
		{"no country", "", "XAF", good, 400, "ROUTER110"},
		{"another country", "UG", "XAF", good, 400, "ROUTER006"},
		{"no currency", "CG", "", good, 200, "ESB000008"},
		{"a calling code", "CG", "XAF", strings.Replace(good, "051234567", "242051234567", 1), 200, "ESB000033"},
		{"no zero", "CG", "XAF", strings.Replace(good, "051234567", "512345678", 1), 200, "should start with 0"},
		{"no amount", "CG", "XAF", strings.Replace(good, "1000", "0", 1), 200, "DP00800001004"},
		{"good", "CG", "XAF", good, 200, "DP00800001006"},
		{"again", "CG", "XAF", good, 200, "ESB000041"},
	} {
		r, err := http.NewRequest(http.MethodPost, w.line.URL()+"/merchant/v1/payments/", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("X-Country", c.country)
		r.Header.Set("X-Currency", c.currency)
		rec := httptest.NewRecorder()
		w.sim.ServeHTTP(rec, r)
		if rec.Code != c.status || !strings.Contains(rec.Body.String(), c.want) {
			t.Errorf("%s: it is answered %d %s, want %d %s", c.name, rec.Code, rec.Body, c.status, c.want)
		}
	}
	if n := len(w.sim.Book().Entries()); n != 1 {
		t.Errorf("%d requests are in the book, want one", n)
	}
}

// Airtel calls one address for all, with a hash if that is on: in either form
// the adapter knows it, and knows it for nobody else's.
func TestTheSimulatorCallsBack(t *testing.T) {
	for _, inner := range []bool{false, true} {
		calls := make(chan provider.CallbackRequest, 10)
		listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b := make([]byte, 4096)
			n, _ := r.Body.Read(b)
			calls <- provider.CallbackRequest{Method: r.Method, Body: b[:n]}
		}))
		w := newWorld(t, airtel.SimConfig{CallbackURL: listener.URL, CallbackKey: "portal-key", HashInner: inner, Decide: time.Millisecond},
			func(c *airtel.Config) { c.CallbackKey = "portal-key" })
		r := newRequest(w.clock, "242051234567")
		if _, err := w.Payments().Submit(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		call := <-calls
		got, err := w.Payments().(provider.CallbackReader).ReadCallback(call)
		if err != nil || got.Reference != r.Reference {
			t.Errorf("the callback %s is %v, %v", call.Body, got, err)
		}
		call.Body = []byte(strings.Replace(string(call.Body), `"status_code":"T`, `"status_code":"X`, 1))
		if _, err := w.Payments().(provider.CallbackReader).ReadCallback(call); err == nil {
			t.Errorf("a forged callback is taken: %s", call.Body)
		}
		listener.Close()
	}
}

func TestFingerprintsTellNoSecret(t *testing.T) {
	w := newWorld(t, airtel.SimConfig{}, nil)
	for _, p := range []provider.Provider{w.Payments(), w.Payouts()} {
		for _, secret := range []string{airtel.SimClientID, airtel.SimClientSecret} {
			if strings.Contains(p.Fingerprint(), secret) {
				t.Errorf("the fingerprint %q tells %q", p.Fingerprint(), secret)
			}
		}
	}
}

func TestTheGuideIsRight(t *testing.T) {
	providertest.Guide(t, "../../docs/guide/operators-airtel.md", "airtel", airtel.Config{})
}
