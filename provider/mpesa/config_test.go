package mpesa

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"till/provider"
	"till/provider/providertest"
	"till/provider/simulator"
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

func TestTester(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		change          func(*SimConfig, *Config)
		payment, payout string // what it says; "": all is well
	}{
		{"well", nil, "", ""},
		{"another app", func(s *SimConfig, _ *Config) { s.ConsumerSecret = "other" }, "consumer_key", "consumer_key"},
		{"another passkey", func(s *SimConfig, _ *Config) { s.Passkey = "other" }, "passkey", ""},
		{"another number", func(s *SimConfig, _ *Config) { s.ShortCode = "174380" }, "short_code", ""},
	} {
		w := open(t, c.change)
		for _, x := range []struct {
			p    provider.Provider
			says string
		}{{w.o.Payments(), c.payment}, {w.o.Payouts(), c.payout}} {
			err := x.p.(provider.Tester).Test(t.Context())
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
