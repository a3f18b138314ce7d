package pawapay

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"till"
	"till/provider"
	"till/provider/providertest"
)

// Customers are sent to https addresses of pawaPay's and Wave's hosts, and of those that the
// configuration names, and nowhere else.
func TestOnlyTheOperatorsHostsAreShown(t *testing.T) {
	t.Parallel()
	o := newOperator(t, Config{BaseURL: "https://api.pawapay.io", APIToken: testToken, AuthorizationHosts: []string{"pay.partner.example"}}, time.Now)
	for want, all := range map[bool][]string{
		true: {"https://pay.wave.com/c/cos-1?a=99&c=XOF&m=Shop", "https://PAY.WAVE.COM/c/1", "https://wave.com/c/1", "https://sandbox.pawapay.io/a/1",
			"https://pay.partner.example/1", "https://pay.wave.com:443/c/1"},
		false: {"http://pay.wave.com/c/1", "https://pay.wave.com.evil.example/", "https://evilwave.com/", "https://pay.wave.com@evil.example/", "https://evil.example/#pay.wave.com",
			"https://evil.example/?https://pay.wave.com/", "javascript:alert(1)//pay.wave.com", "data:text/html,pay.wave.com", "//pay.wave.com/c/1", "/c/1", "pay.wave.com/c/1",
			"https://pay.wave.com\\@evil.example/", "https://pay.wave.com/\n", "https://pay.wave.com/\"><script>", "https://pay.wave.com:8443/c/1", "https://partner.example/1",
			"wave://capture/https://pay.wave.com/c/1", "https://pay.wаve.com/c/1", "https://pay.wave.com/" + strings.Repeat("a", provider.MaxNextURL), "http://127.0.0.1:1/authorize/1"},
	} {
		for _, text := range all {
			if got := o.mayShow(text); got != want {
				t.Errorf("%q may be shown: %v", text, got)
			}
			if got := o.vetted(provider.Result{Outcome: provider.Open, NextURL: text}); (got.NextURL != "") != want || got.Outcome != provider.Open {
				t.Errorf("%q became %+v", text, got)
			}
		}
	}
	for _, host := range []string{"https://pay.example.com", "pay", ".example.com", "PAY.example.com", "pay.example.com/x", ""} {
		if err := (Config{BaseURL: "https://api.pawapay.io", APIToken: testToken, AuthorizationHosts: []string{host}}).Validate(); err == nil {
			t.Errorf("%q is a host", host)
		}
	}
}

func flowRequest(method, country, phone string) provider.Request {
	return provider.Request{Client: till.NewID(1), ID: till.NewID(2), Reference: providertest.NewReference(), Method: method, Country: country, Phone: phone,
		Amount: till.Money{Minor: 1500, Currency: "XOF"}}
}

// The simulator asks of each provider what pawaPay asks, and gives the address of a redirect
// once the provider has one. A request that is repeated is the same deposit, with the same
// address.
func TestFlowsAtTheSimulator(t *testing.T) {
	t.Parallel()
	clock := providertest.NewClock()
	sim, err := NewSimulator(SimConfig{Token: testToken, Now: clock.Now, Decide: 40 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()
	server := httptest.NewServer(sim)
	defer server.Close()
	o := newOperator(t, Config{BaseURL: server.URL, APIToken: testToken, Operations: []string{"payments", "payouts"}}, clock.Now)
	submit := func(r provider.Request) provider.Result {
		t.Helper()
		got, err := o.Payments().Submit(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	check := func(r provider.Request) provider.Result {
		t.Helper()
		got, err := o.Payments().Check(t.Context(), provider.Query{Reference: r.Reference, Method: r.Method, Country: r.Country, Phone: r.Phone, Amount: r.Amount})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}

	wave, orange, push := flowRequest("wave", "SN", "221773456789"), flowRequest("orange_money", "BF", "22607345678"), flowRequest("orange_money", "SN", "221773456789")
	for _, wrong := range []provider.Request{wave, orange, with(push, "https://shop.example/", ""), with(push, "", "367025"), with(wave, "https://shop.example/", "367025")} {
		if got := submit(wrong); got.Outcome != provider.Rejected {
			t.Errorf("a deposit by %s with %q and a code %v: %+v", wrong.Method, wrong.ReturnURL, wrong.Code != "", got)
		}
	}
	wave, orange = with(wave, "https://shop.example/", ""), with(orange, "", "367025")
	if got := submit(wave); got.Outcome != provider.Accepted || got.NextURL != "" {
		t.Fatalf("%+v", got)
	}
	if got := check(wave); got.Outcome != provider.Open || got.NextURL != "" {
		t.Errorf("before the address: %+v", got)
	}
	clock.Advance(3 * time.Second)
	first := check(wave)
	if first.Outcome != provider.Open || !strings.HasPrefix(first.NextURL, server.URL+simPages) {
		t.Fatalf("the address: %+v", first)
	}
	if got := submit(wave); got.Outcome != provider.Duplicate {
		t.Errorf("a repeated send: %+v", got)
	}
	if again := check(wave); again.NextURL != first.NextURL {
		t.Errorf("another address: %q, %q", first.NextURL, again.NextURL)
	}
	if got := submit(orange); got.Outcome != provider.Accepted {
		t.Errorf("with a code: %+v", got)
	}
	clock.Advance(time.Minute)
	if got := check(wave); got.Outcome != provider.Success || got.NextURL != "" {
		t.Errorf("after it was paid: %+v", got)
	}
	if got := check(orange); got.Outcome != provider.Success {
		t.Errorf("with a code: %+v", got)
	}
	mistyped := with(flowRequest("orange_money", "BF", "22607345678"), "", simWrongCode)
	submit(mistyped)
	clock.Advance(time.Minute)
	if got := check(mistyped); got.Outcome != provider.Failed || got.Reason != till.NotApproved {
		t.Errorf("with a wrong code: %+v", got)
	}
	for _, e := range sim.Book().Entries() {
		if strings.Contains(e.Data, "367025") {
			t.Error("the simulator keeps a code")
		}
	}
}

func with(r provider.Request, back string, code provider.OneTimeCode) provider.Request {
	r.ReturnURL, r.Code = back, code
	return r
}
