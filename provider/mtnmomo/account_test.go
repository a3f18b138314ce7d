package mtnmomo_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"till/provider"
	"till/provider/mtnmomo"
	"till/provider/providertest"
)

func TestValidateNamesEveryMistake(t *testing.T) {
	err := mtnmomo.Config{
		BaseURL: "http://momoapi.momo.africa", TargetEnvironment: "mtn congo", APIUser: "a:b", APIKey: " k",
		DisbursementUser: "x", CallbackHost: "https://pay.example.com", CurrencyOverride: "EUR",
	}.Validate()
	for _, key := range []string{"base_url", "target_environment", "api_user", "api_key", "collection_subscription_key", "disbursement_api_user",
		"callback_host", "currency_override"} {
		if err == nil || !strings.Contains(err.Error(), key+": ") {
			t.Errorf("the mistake of %s is not named in: %v", key, err)
		}
	}
	if err := congo("https://momoapi.momo.africa").Validate(); err != nil {
		t.Errorf("a good configuration is refused: %v", err)
	}
}

// Window, poll and settle are configured within bounds: a settle time that is
// too short would take a slow request for a lost one, a window that is too short
// would leave a lost one no time to be sent again.
func TestTimesAreConfiguredWithinBounds(t *testing.T) {
	for _, c := range []struct {
		window, poll, settle int
		want                 string // the key that is complained about; "": none
	}{
		{0, 0, 0, ""}, {300, 12, 120, ""}, {165, 5, 60, ""}, {86400, 60, 3600, ""},
		{59, 0, 0, "approval_window_seconds"}, {86401, 0, 0, "approval_window_seconds"}, {-1, 0, 0, "approval_window_seconds"},
		{0, 4, 0, "poll_seconds"}, {0, 61, 0, "poll_seconds"}, {0, -1, 0, "poll_seconds"},
		{0, 0, 59, "settle_seconds"}, {0, 0, 1, "settle_seconds"}, {86400, 0, 3601, "settle_seconds"}, {0, 0, -1, "settle_seconds"},
		{164, 5, 60, "approval_window_seconds: with these settle_seconds and poll_seconds at least 165"},
		{300, 12, 180, "approval_window_seconds: with these settle_seconds and poll_seconds at least 412"},
	} {
		m := congo("https://momoapi.momo.africa")
		m.ApprovalWindowSeconds, m.PollSeconds, m.SettleSeconds = c.window, c.poll, c.settle
		err := m.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: it says %v", c, err)
		}
	}
	m := congo("https://momoapi.momo.africa")
	m.ApprovalWindowSeconds, m.PollSeconds, m.SettleSeconds = 600, 20, 90
	o, err := mtnmomo.New(m, provider.Deps{Tokens: providertest.NewTokens(time.Now)})
	if err != nil {
		t.Fatal(err)
	}
	in, out := o.Payments().Traits(), o.Payouts().Traits()
	if in.ApprovalWindow != 10*time.Minute || in.Poll != 20*time.Second || in.NotFoundDelay != 90*time.Second || out.Poll != 20*time.Second || out.NotFoundDelay != 90*time.Second {
		t.Errorf("payments have %+v, payouts %+v", in, out)
	}
	m.SettleSeconds, m.ApprovalWindowSeconds = 600, 86400
	if o, err = mtnmomo.New(m, provider.Deps{Tokens: providertest.NewTokens(time.Now)}); err != nil {
		t.Fatal(err)
	}
	if out := o.Payouts().Traits(); out.ApprovalWindow <= 2*out.NotFoundDelay {
		t.Errorf("payouts settle after %s and may be sent for %s", out.NotFoundDelay, out.ApprovalWindow)
	}
}

func TestOnlyWhatHasAKeyIsServed(t *testing.T) {
	c := congo("https://momoapi.momo.africa")
	c.DisbursementKey = ""
	o, err := mtnmomo.New(c, provider.Deps{Tokens: providertest.NewTokens(time.Now)})
	if err != nil || o.Payments() == nil || o.Payouts() != nil {
		t.Errorf("payments %v, payouts %v, %v", o.Payments(), o.Payouts(), err)
	}
}

// Who sets a connection up reads what is wrong in plain words.
func TestATestSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name   string
		sim    mtnmomo.SimConfig
		change func(*mtnmomo.Config)
		want   string
	}{
		{"all is well", mtnmomo.SimConfig{}, nil, ""},
		{"all is well, new platform", mtnmomo.SimConfig{NewPlatform: true}, nil, ""},
		{"a wrong key", mtnmomo.SimConfig{}, func(c *mtnmomo.Config) { c.APIKey = "wrong" }, "gives no token"},
		{"a wrong key, new platform", mtnmomo.SimConfig{NewPlatform: true}, func(c *mtnmomo.Config) { c.APIKey = "wrong" }, "gives no token"},
		{"the key of the other product", mtnmomo.SimConfig{}, func(c *mtnmomo.Config) { c.CollectionKey = mtnmomo.SimDisbursementKey }, "gives no token"},
		{"another country", mtnmomo.SimConfig{}, func(c *mtnmomo.Config) { c.TargetEnvironment = "mtnuganda" }, `target_environment = "mtnuganda"`},
		{"another path", mtnmomo.SimConfig{}, func(c *mtnmomo.Config) { c.BaseURL += "/api" }, "base_url"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.sim, c.change)
			err := w.Payments().(provider.Tester).Test(t.Context())
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("it says %v, want %q", err, c.want)
			}
			for _, secret := range []string{mtnmomo.SimUser, mtnmomo.SimKey, mtnmomo.SimCollectionKey, mtnmomo.SimDisbursementKey} {
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("it tells %q: %v", secret, err)
				}
			}
		})
	}
	w := newWorld(t, mtnmomo.SimConfig{}, nil)
	if err := w.Payments().(provider.Tester).Test(t.Context()); err != nil { // there is a token
		t.Fatal(err)
	}
	w.line.Always(providertest.Token, providertest.Forge(providertest.Answer{Status: 500, Body: `{"error":"login_failed"}`}))
	w.sim.ForgetTokens()
	if err := w.Payments().(provider.Tester).Test(t.Context()); err == nil || !strings.Contains(err.Error(), "gives no token") {
		t.Errorf("once the operator has replaced the key it says %v, want that it gives no token", err)
	}
	w = newWorld(t, mtnmomo.SimConfig{}, nil)
	w.line.Always(providertest.Other, providertest.Forge(providertest.Answer{Status: 403, Body: `{"code":"FORBIDDEN IP"}`}))
	if err := w.Payouts().(provider.Tester).Test(t.Context()); err == nil || !strings.Contains(err.Error(), "IP address") {
		t.Errorf("it says %v, want the IP address", err)
	}
}

// A callback host that is not the one of our address, or not the one that MTN
// has registered, is shown to the person who sets it up.
func TestACallbackHostThatDoesNotMatchIsTold(t *testing.T) {
	const ours = "https://pay.example.com/v1/callbacks/mtn-congo/x"
	for _, c := range []struct{ name, host, address, want string }{
		{"none: nothing is told to MTN", "", ours, ""},
		{"the same", "pay.example.com", ours, ""},
		{"the same in other letters", "PAY.example.com", ours, ""},
		{"another", "shop.example.com", ours, `callback_host = "shop.example.com", but the service's address is on "pay.example.com"`},
		{"our address is not known", "pay.example.com", "", "--base-url"},
	} {
		w := newWorld(t, mtnmomo.SimConfig{}, func(m *mtnmomo.Config) { m.CallbackHost = c.host })
		for _, p := range []provider.Provider{w.Payments(), w.Payouts()} {
			err := p.(provider.CallbackChecker).CheckCallback(c.address)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: it says %v, want %q", c.name, err, c.want)
			}
		}
	}
	// The sandbox tells what is registered.
	for host, want := range map[string]string{"pay.example.com": "", "shop.example.com": `MTN has "pay.example.com" registered`} {
		w := newWorld(t, mtnmomo.SimConfig{TargetEnvironment: "sandbox", CallbackHost: "pay.example.com"}, func(m *mtnmomo.Config) {
			m.TargetEnvironment, m.CurrencyOverride, m.CallbackHost = "sandbox", "EUR", host
		})
		err := w.Payments().(provider.Tester).Test(t.Context())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("registered, and %s configured: it says %v, want %q", host, err, want)
		}
	}
}

// Too many calls say nothing about who we are.
func TestATestThatWasTurnedAwayProvesNothing(t *testing.T) {
	w := newWorld(t, mtnmomo.SimConfig{}, nil)
	w.line.Always(providertest.Other, providertest.Limit("9"))
	err := w.Payments().(provider.Tester).Test(t.Context())
	if _, unproven := errors.AsType[provider.Unproven](err); !unproven {
		t.Errorf("it says %v, want that it could not find out", err)
	}
}

func TestAnUnreadableAnswerIsLoggedOnceAMinute(t *testing.T) {
	w := newWorld(t, mtnmomo.SimConfig{}, nil)
	var log bytes.Buffer
	deps := w.deps
	deps.Log = slog.New(slog.NewJSONHandler(&log, nil))
	o, err := mtnmomo.New(congo(w.line.URL()), deps)
	if err != nil {
		t.Fatal(err)
	}
	r := newRequest(w.clock, "242061234567")
	w.line.Always(providertest.Check, providertest.Forge(providertest.Answer{Status: 200,
		Body: `{"state":"SUCCESSFUL","payer":{"partyId":"242061234567"},"payerName":"Jeanne Moke","access_token":"secret-token-text"}`}))
	check := func() {
		if _, err := o.Payments().Check(t.Context(), provider.Query{Reference: r.Reference}); err == nil {
			t.Fatal("it was read")
		}
	}
	for range 5 {
		check()
	}
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines were logged, want one:\n%s", n, log.String())
	}
	for _, secret := range []string{"242061234567", "Jeanne", "Moke", "secret-token"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log holds %q:\n%s", secret, log.String())
		}
	}
	w.clock.Advance(time.Minute)
	check()
	if n := strings.Count(log.String(), "\n"); n != 2 {
		t.Errorf("%d lines were logged after a minute, want two", n)
	}
}

// call makes a call of an integrator's own to the simulator.
func call(t *testing.T, url, method, path, body string, header map[string]string) (int, map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if len(b) > 0 {
		if err := json.Unmarshal(b, &out); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
	}
	return res.StatusCode, out
}

// The checklist of MTN's side, as software other than ours meets it.
func TestTheSimulatorIsStrict(t *testing.T) {
	sim, err := mtnmomo.NewSimulator(mtnmomo.SimConfig{CallbackHost: "pay.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()
	server := httptest.NewServer(sim)
	defer server.Close()

	// A user of the sandbox's own making.
	user := providertest.NewReference().String()
	key := map[string]string{"Ocp-Apim-Subscription-Key": mtnmomo.SimCollectionKey, "X-Reference-Id": user}
	if status, _ := call(t, server.URL, "POST", "/v1_0/apiuser", `{"providerCallbackHost":"pay.example.com"}`, key); status != 201 {
		t.Fatalf("a user is answered %d", status)
	}
	status, made := call(t, server.URL, "POST", "/v1_0/apiuser/"+user+"/apikey", "", key)
	if status != 201 || made["apiKey"] == "" {
		t.Fatalf("a key is answered %d %v", status, made)
	}
	basic := base64.StdEncoding.EncodeToString([]byte(user + ":" + made["apiKey"].(string)))
	status, token := call(t, server.URL, "POST", "/collection/token/", "", map[string]string{"Ocp-Apim-Subscription-Key": mtnmomo.SimCollectionKey, "Authorization": "Basic " + basic})
	if status != 200 || token["expires_in"] != 3600.0 || token["token_type"] != "access_token" {
		t.Fatalf("a token is answered %d %v", status, token)
	}

	good := map[string]string{
		"Authorization": "Bearer " + token["access_token"].(string), "Ocp-Apim-Subscription-Key": mtnmomo.SimCollectionKey,
		"X-Reference-Id": providertest.NewReference().String(), "X-Target-Environment": "sandbox", "Content-Type": "application/json",
	}
	body := `{"amount":"100","currency":"EUR","externalId":"1","payer":{"partyIdType":"MSISDN","partyId":"46733123499"},"payerMessage":"a","payeeNote":"b"}`
	for _, c := range []struct {
		name, header, value, body string
		status                    int
		code                      string
	}{
		{"no subscription key", "Ocp-Apim-Subscription-Key", "", body, 401, ""},
		{"the key of another product", "Ocp-Apim-Subscription-Key", mtnmomo.SimDisbursementKey, body, 401, ""},
		{"no token", "Authorization", "", body, 401, ""},
		{"another environment", "X-Target-Environment", "mtnatlantis", body, 500, "NOT_ALLOWED_TARGET_ENVIRONMENT"},
		{"a UUID of version 7", "X-Reference-Id", "019a7c3e-52d4-7a10-9b5e-0f1e2d3c4b5a", body, 400, ""},
		{"another callback host", "X-Callback-Url", "https://other.example.com/x", body, 500, "INVALID_CALLBACK_URL_HOST"},
		{"the currency of another environment", "X-Target-Environment", "mtncongo", body, 500, "INVALID_CURRENCY"},
		{"another currency", "", "", strings.Replace(body, "EUR", "XAF", 1), 500, "INVALID_CURRENCY"},
		{"a plus before the number", "", "", strings.Replace(body, "46733", "+46733", 1), 400, ""},
		{"an apostrophe", "", "", strings.Replace(body, `"a"`, `"l'eau"`, 1), 400, ""},
		{"161 characters", "", "", strings.Replace(body, `"a"`, `"`+strings.Repeat("a", 161)+`"`, 1), 400, ""},
		{"no JSON", "", "", "{", 400, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := map[string]string{}
			for k, v := range good {
				header[k] = v
			}
			if c.header != "" {
				header[c.header] = c.value
			}
			status, answer := call(t, server.URL, "POST", "/collection/v1_0/requesttopay", c.body, header)
			if status != c.status || c.code != "" && answer["code"] != c.code {
				t.Errorf("it is answered %d %v, want %d %s", status, answer, c.status, c.code)
			}
		})
	}
	if n := len(sim.Book().Entries()); n != 0 {
		t.Fatalf("%d refused requests are in the book", n)
	}
	if status, _ := call(t, server.URL, "POST", "/collection/v1_0/requesttopay", body, good); status != 202 {
		t.Errorf("a good request is answered %d", status)
	}
	if status, answer := call(t, server.URL, "POST", "/collection/v1_0/requesttopay", body, good); status != 409 || answer["code"] != "RESOURCE_ALREADY_EXIST" {
		t.Errorf("a second use of a reference is answered %d %v", status, answer)
	}
}

// MTN calls once, when it is decided, in the words of a status read.
func TestTheSimulatorCallsBack(t *testing.T) {
	for _, method := range []string{http.MethodPut, http.MethodPost} {
		type received struct {
			method string
			body   map[string]any
		}
		calls := make(chan received, 10)
		listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var b map[string]any
			json.NewDecoder(r.Body).Decode(&b)
			calls <- received{r.Method, b}
		}))
		sim, err := mtnmomo.NewSimulator(mtnmomo.SimConfig{TargetEnvironment: "mtncongo", CallbackMethod: method, Decide: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(sim)
		c := congo(server.URL)
		c.CallbackHost = "127.0.0.1"
		o, err := mtnmomo.New(c, provider.Deps{Tokens: providertest.NewTokens(time.Now)})
		if err != nil {
			t.Fatal(err)
		}
		r := newRequest(providertest.NewClock(), "242061234567")
		r.CallbackURL = listener.URL + "/callbacks/x"
		if _, err := o.Payments().Submit(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		got := <-calls
		if got.method != method || got.body["status"] != "SUCCESSFUL" || got.body["externalId"] != r.Reference.String() || got.body["amount"] != "2500" {
			t.Errorf("the callback is %+v", got)
		}
		sim.Close()
		server.Close()
		listener.Close()
	}
}

func TestASlowTokenIsNotWaitedForAfterTheCallsTime(t *testing.T) {
	w := newWorld(t, mtnmomo.SimConfig{}, nil)
	w.line.Always(providertest.Token, providertest.Swallow)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := w.Payments().Submit(ctx, newRequest(w.clock, "242061234567"))
	if !errors.Is(err, provider.ErrNotSent) || w.line.Count(providertest.Submit) != 0 {
		t.Errorf("the error is %v, and %d requests were sent", err, w.line.Count(providertest.Submit))
	}
}

func TestTheGuideIsRight(t *testing.T) {
	providertest.Guide(t, "../../docs/guide/operators-mtn.md", "mtnmomo", mtnmomo.Config{})
}
