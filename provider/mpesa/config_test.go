package mpesa

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"till/provider"
	"till/provider/providertest"
	"till/provider/simulator"
	"till/provider/wire"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	good := goldenConfig("https://api.safaricom.co.ke")
	if o := goldenOperator(t, good); o.Payments() == nil || o.Payouts() == nil {
		t.Error("one of them is missing")
	}
	half := good
	half.ShortCode, half.Passkey = "", ""
	if o := goldenOperator(t, half); o.Payments() != nil || o.Payouts() == nil {
		t.Error("payments are on without a short code")
	}
	half = good
	half.PayoutShortCode, half.Initiator = "", ""
	if o := goldenOperator(t, half); o.Payments() == nil || o.Payouts() != nil {
		t.Error("payouts are on without a short code")
	}
	bad := Config{BaseURL: "http://example.com", ConsumerKey: "a b", ShortCode: "012", TransactionType: "x", PartyB: "x", AccountReference: "n°1", CallbackURL: "x",
		PayoutShortCode: "x", Command: "x", Certificate: "x", NotFoundCodes: []string{"0", "2040"}, FailedStates: []string{"Completed"}, SubmitRate: -1, CheckRate: 1 << 30}
	err := bad.Validate()
	if err == nil {
		t.Fatal("it passes")
	}
	for _, key := range []string{"base_url", "consumer_key", "consumer_secret", "short_code", "passkey", "transaction_type", "party_b", "account_reference",
		"callback_url", "payout_short_code", "initiator:", "initiator_password", "certificate", "command", "not_found_codes", "failed_states", "submit_rate", "check_rate"} {
		if !strings.Contains(err.Error(), key) {
			t.Errorf("%s is not complained about in %q", key, err)
		}
	}
	if err := (Config{BaseURL: "https://x.example", ConsumerKey: "a", ConsumerSecret: "b"}).Validate(); err == nil {
		t.Error("a connection that does nothing passes")
	}
	till := good
	till.TransactionType = buyGoods
	if err := till.Validate(); err == nil || !strings.Contains(err.Error(), "party_b") {
		t.Errorf("a till without its number: %v", err)
	}
}

// Window, poll and settle are configured within bounds; payouts keep their
// window and their pace.
func TestTimesAreConfiguredWithinBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		window, poll, settle int
		want                 string // the key that is complained about; "": none
	}{
		{0, 0, 0, ""}, {60, 10, 600, ""}, {86400, 120, 1500, ""},
		{59, 0, 0, "approval_window_seconds"}, {86401, 0, 0, "approval_window_seconds"}, {-1, 0, 0, "approval_window_seconds"},
		{0, 9, 0, "poll_seconds"}, {0, 121, 0, "poll_seconds"}, {0, 0, 599, "settle_seconds"}, {0, 0, 1501, "settle_seconds"}, {0, 0, -1, "settle_seconds"},
	} {
		g := goldenConfig("https://api.safaricom.co.ke")
		g.ApprovalWindowSeconds, g.PollSeconds, g.SettleSeconds = c.window, c.poll, c.settle
		if err := g.Validate(); (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: it says %v", c, err)
		}
	}
	g := goldenConfig("https://api.safaricom.co.ke")
	g.ApprovalWindowSeconds, g.PollSeconds, g.SettleSeconds = 120, 30, 1500
	o := goldenOperator(t, g)
	in, out := o.Payments().Traits(), o.Payouts().Traits()
	if in.ApprovalWindow != 2*time.Minute || in.Poll != 30*time.Second || out.NotFoundDelay != 25*time.Minute || out.Poll != payoutPoll || out.ApprovalWindow != payoutWindow {
		t.Errorf("payments have %+v, payouts %+v", in, out)
	}
	if need := wire.TimeToProveLost(out.NotFoundDelay, out.Poll); need >= out.ApprovalWindow {
		t.Errorf("a payout is proven lost after %s, and may be sent for %s", need, out.ApprovalWindow)
	}
}

func TestTester(t *testing.T) {
	t.Parallel()
	const unseen = "Daraja takes our token; whether payout_short_code, initiator and its password are right shows with the first payout only"
	for _, c := range []struct {
		name            string
		change          func(*SimConfig, *Config)
		payment, payout string // what it says; "": all is well
	}{
		{"well", nil, "", unseen},
		{"another app", func(s *SimConfig, _ *Config) { s.ConsumerSecret = "other" }, "consumer_key", "consumer_key"},
		{"another passkey", func(s *SimConfig, _ *Config) { s.Passkey = "other" }, "refuses short_code and passkey", unseen},
		{"another number", func(s *SimConfig, _ *Config) { s.ShortCode = "174380" }, "refuses short_code and passkey", unseen},
	} {
		w := open(t, c.change)
		for _, x := range []struct {
			p    provider.Provider
			says string
		}{{w.o.Payments(), c.payment}, {w.o.Payouts(), c.payout}} {
			err := x.p.(provider.Tester).Test(t.Context())
			if _, unproven := errors.AsType[provider.Unproven](err); unproven != (x.says == unseen) {
				t.Errorf("%s: it says %#v", c.name, err)
			}
			if (err == nil) != (x.says == "") || err != nil && !strings.Contains(err.Error(), x.says) {
				t.Errorf("%s: it says %v, want %q", c.name, err, x.says)
			}
		}
		if n := w.line.Count(providertest.Submit); n != 0 {
			t.Errorf("%s: money was asked for", c.name)
		}
	}
	w := open(t, nil)
	w.line.Down()
	if err := w.o.Payments().(provider.Tester).Test(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("nobody there: %v", err)
	}
}

// TestATestSaysOnlyWhatItKnows: what Daraja does not say in words of its own is
// no sign that it lets us in, and an error of its own that is about neither us nor
// the push proves nothing.
func TestATestSaysOnlyWhatItKnows(t *testing.T) {
	t.Parallel()
	const page = "<html><body>200 OK</body></html>"
	for _, c := range []struct {
		name   string
		answer providertest.Answer
		says   string // "": all is well
		proof  bool   // that something is wrong
	}{
		{"the push is open", providertest.Answer{Status: 500, Body: errorReply("500.001.1001", "The transaction is being processed")}, "", false},
		{"there is no such push", providertest.Answer{Status: 400, Body: errorReply("400.002.02", "Bad Request - Invalid CheckoutRequestID")}, "", false},
		{"it answers", providertest.Answer{Status: 200, Body: `{"ResponseCode":"0","ResultCode":"1032"}`}, "", false},
		{"a page", providertest.Answer{Status: 200, Type: "text/html", Body: page}, "HTTP 200 and no body of its own (text/html)", true},
		{"an error's page", providertest.Answer{Status: 500, Type: "text/html", Body: page}, "HTTP 500 and no body of its own (text/html)", true},
		{"an empty error", providertest.Answer{Status: 500}, "HTTP 500 and no body of its own", true},
		{"an error of somebody else's", providertest.Answer{Status: 502, Body: `{"message":"bad gateway"}`}, "HTTP 502 and no body of its own", true},
		{"it is busy", providertest.Answer{Status: 500, Body: errorReply("500.003.02", "System is busy")}, "whether short_code and passkey are right is not known", false},
		{"another bad request", providertest.Answer{Status: 400, Body: errorReply("400.002.02", "Bad Request - Invalid Timestamp")}, "whether short_code and passkey are right is not known", false},
		{"too many calls", providertest.Answer{Status: 429, Body: `{}`}, "does not take our call now", false},
		{"wrong credentials", providertest.Answer{Status: 500, Body: errorReply("500.001.1001", "Wrong credentials")}, "refuses short_code and passkey", true},
	} {
		w := open(t, nil)
		w.line.Always(providertest.Check, providertest.Forge(c.answer))
		err := w.o.Payments().(provider.Tester).Test(t.Context())
		_, unproven := errors.AsType[provider.Unproven](err)
		if (err == nil) != (c.says == "") || err != nil && (!strings.Contains(err.Error(), c.says) || unproven == c.proof) {
			t.Errorf("%s: it says %v (unproven: %v), want %q", c.name, err, unproven, c.says)
		}
		if out := w.o.Payouts().(provider.Tester).Test(t.Context()); out == nil || c.answer.Type != "" && !strings.Contains(out.Error(), c.says) {
			t.Errorf("%s: of payouts it says %v", c.name, out)
		}
	}
}

// TestCheckCallback: addresses that Safaricom would not call.
func TestCheckCallback(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	live := w.o.c
	live.BaseURL = "https://api.safaricom.co.ke"
	payments := live
	payments.PayoutShortCode, payments.Initiator = "", ""
	for _, c := range []struct {
		name    string
		o       *Operator
		address string
		says    string
	}{
		{"a good one", w.operator(t, live), "https://pay.example.com/v1/callbacks/kenya/x", ""},
		{"not HTTPS", w.operator(t, live), "http://pay.example.com/v1/callbacks/kenya/x", "HTTPS only"},
		{"a word that is refused", w.operator(t, live), "https://pay.example.com/v1/callbacks/MPesa/x", "another name"},
		{"none, and payouts", w.operator(t, live), "", "--base-url"},
		{"none, and payments alone", w.operator(t, payments), "", ""},
		{"a simulator calls any", w.o, "http://127.0.0.1:8080/v1/callbacks/mpesa/x", ""},
	} {
		err := c.o.CheckCallback(c.address)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: it says %v, want %q", c.name, err, c.says)
		}
	}
}

// TestOneToken: each new token ends the one before, and two who share Tokens do
// not throw each other out.
func TestOneToken(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	tokens := providertest.NewTokens(w.clock.Now)
	var both []*Operator
	for range 2 {
		o, err := New(w.o.c, provider.Deps{Tokens: tokens, Now: w.clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, o)
	}
	for range 3 {
		for _, o := range both {
			if got, err := o.Payments().Submit(t.Context(), w.request("4149")); err != nil || got.Outcome != provider.Accepted {
				t.Fatalf("%+v, %v", got, err)
			}
		}
	}
	if n := w.line.Count(providertest.Token); n != 1 {
		t.Errorf("%d tokens were fetched, want one", n)
	}
	// Somebody else with the same app: ours is refused once, and renewed.
	if _, err := w.o.Payments().Submit(t.Context(), w.request("4149")); err != nil {
		t.Fatal(err)
	}
	if got, err := both[0].Payments().Submit(t.Context(), w.request("4149")); err != nil || got.Outcome != provider.Accepted {
		t.Errorf("%+v, %v", got, err)
	}
	w.clock.Advance(time.Hour)
	before := w.line.Count(providertest.Submit)
	if _, err := both[1].Payments().Submit(t.Context(), w.request("4149")); err != nil {
		t.Error(err)
	}
	if n := w.line.Count(providertest.Submit) - before; n != 1 {
		t.Errorf("a token that ran out was tried: %d calls", n)
	}
}

// TestSimulatorRules: what the simulated Daraja refuses, and what it forgets.
func TestSimulatorRules(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.o.Payments()
	r := w.request("4149")
	first, err := p.Submit(t.Context(), r)
	if err != nil || first.Outcome != provider.Accepted {
		t.Fatalf("%+v, %v", first, err)
	}
	if got, err := p.Submit(t.Context(), r); err != nil || got.Outcome != provider.Rejected || got.Reason != "payer_busy" {
		t.Errorf("while a prompt is open: %+v, %v", got, err)
	}
	w.advance(time.Minute)
	again, err := p.Submit(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	w.advance(time.Minute)
	if got, err := p.Check(t.Context(), provider.Query{Handle: again.Handle}); err != nil || got.Code != "17" {
		t.Errorf("the same amount within two minutes: %+v, %v", got, err)
	}

	book := t.TempDir() + "/book"
	for _, c := range []struct {
		faults  simulator.Faults
		entries int
	}{{simulator.Faults{LostRequest: 1}, 0}, {simulator.Faults{LostResponse: 1}, 1}, {simulator.Faults{}, 2}} {
		w := open(t, func(s *SimConfig, _ *Config) { s.Path, s.Faults = book, c.faults })
		_, err := w.o.Payouts().Submit(t.Context(), w.request("4149"))
		if n := len(w.sim.Book().Entries()); n != c.entries || (err != nil) != (c.faults != simulator.Faults{}) {
			t.Errorf("%+v: %d requests in the book, %v", c.faults, n, err)
		}
		w.sim.Close()
	}
	rec := httptest.NewRecorder()
	w.sim.ServeHTTP(rec, httptest.NewRequest("GET", "/nowhere", nil))
	if rec.Code != 404 || !strings.Contains(rec.Body.String(), "404.001.01") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}
