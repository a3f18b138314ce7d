package pawapay

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"till"
	"till/provider"
	"till/provider/providertest"
	"till/provider/simulator"
)

// desk is an account with a deposit of 1 000 francs, and the operator's portal.
type desk struct {
	t       *testing.T
	clock   *providertest.Clock
	sim     *Simulator
	server  *httptest.Server
	p       provider.Provider
	deposit *provider.Original
}

func newDesk(t *testing.T, c SimConfig) *desk {
	t.Helper()
	d := &desk{t: t, clock: providertest.NewClock()}
	c.Token, c.Now, c.Decide = testToken, d.clock.Now, 10*time.Second
	var err error
	if d.sim, err = NewSimulator(c); err != nil {
		t.Fatal(err)
	}
	d.server = httptest.NewServer(d.sim)
	t.Cleanup(func() { d.server.Close(); d.sim.Close() })
	d.p = newOperator(t, Config{BaseURL: d.server.URL, APIToken: testToken, Operations: []string{"payments", "payouts"}}, d.clock.Now).Payouts()
	d.deposit = paidDeposit(t, d.sim, "242063456789", 1000)
	return d
}

// request asks for a part of the deposit.
func (d *desk) request(francs int64) provider.Request {
	return provider.Request{ID: till.NewID(1), Reference: providertest.NewReference(), Method: "mtn_momo", Country: "CG", Phone: d.deposit.Phone,
		Amount: till.Money{Minor: francs, Currency: "XAF"}, Refund: d.deposit}
}

func (d *desk) submit(r provider.Request) provider.Result {
	d.t.Helper()
	got, err := d.p.Submit(d.t.Context(), r)
	if err != nil {
		d.t.Fatal(err)
	}
	return got
}

// refund refunds a part, and waits until the customer has it.
func (d *desk) refund(francs int64) {
	d.t.Helper()
	r := d.request(francs)
	if got := d.submit(r); got.Outcome != provider.Accepted {
		d.t.Fatalf("%d: %+v", francs, got)
	}
	d.clock.Advance(10 * time.Second)
	d.want(r, provider.Success, "")
}

func (d *desk) want(r provider.Request, outcome provider.Outcome, code string) {
	d.t.Helper()
	got, err := d.p.Check(d.t.Context(), provider.Query{Reference: r.Reference, Refund: r.Refund})
	if err != nil || got.Outcome != outcome || got.Code != code {
		d.t.Errorf("%+v, %v; want %s %s", got, err, outcome, code)
	}
}

// portal makes a call by hand.
func (d *desk) portal(path, body string) string {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), http.MethodPost, d.server.URL+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+testToken)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer got.Body.Close()
	text, _ := io.ReadAll(got.Body)
	return string(text)
}

// What pawaPay refuses about a deposit, and what that shows of it.
func TestRefundsOfADeposit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		before func(d *desk)
		amount int64
		code   string // "": taken
		shows  provider.OriginalState
	}{
		{"all of it", nil, 1000, "", ""},
		{"a part", nil, 1, "", ""},
		{"all that is left", func(d *desk) { d.refund(600) }, 400, "", ""},
		{"more than is left", func(d *desk) { d.refund(600) }, 401, "AMOUNT_TOO_LARGE", provider.RefundedElsewhere},
		{"more than was paid", nil, 1001, "AMOUNT_TOO_LARGE", provider.RefundedElsewhere},
		{"one that was refunded", func(d *desk) { d.refund(1000) }, 1, "DEPOSIT_ALREADY_REFUNDED", provider.RefundedElsewhere},
		{"one that somebody refunded in the portal", func(d *desk) {
			d.portal("/v2/refunds", fmt.Sprintf(`{"refundId":%q,"depositId":%q}`, providertest.NewReference(), d.deposit.Reference))
			d.clock.Advance(10 * time.Second)
		}, 1, "DEPOSIT_ALREADY_REFUNDED", provider.RefundedElsewhere},
		{"while another is under way", func(d *desk) { d.submit(d.request(1)) }, 1, "REFUND_IN_PROGRESS", provider.RefundedElsewhere},
		{"after another has failed", func(d *desk) {
			d.deposit = paidDeposit(d.t, d.sim, "242063456099", 1000)
			r := d.request(1000)
			d.submit(r)
			d.clock.Advance(10 * time.Second)
			d.want(r, provider.Failed, "WALLET_LIMIT_REACHED")
		}, 1000, "", ""},
		{"one that is not known", func(d *desk) { d.deposit.Reference = providertest.NewReference() }, 1, "NOT_FOUND", provider.NotPaidThere},
		{"one that has failed", func(d *desk) {
			d.deposit.Reference = providertest.NewReference()
			d.sim.Book().Add(simulator.Entry{Kind: simKind(&deposits), Reference: d.deposit.Reference.String(), Phone: d.deposit.Phone, Amount: "1000", Currency: "XAF",
				Plan: simulator.Plan{State: simulator.Failed}})
		}, 1, "INVALID_STATE", provider.NotPaidThere},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, SimConfig{})
			if c.before != nil {
				c.before(d)
			}
			r := d.request(c.amount)
			got := d.submit(r)
			if c.code == "" {
				if got.Outcome != provider.Accepted {
					t.Errorf("%+v", got)
				}
				return
			}
			if got.Outcome != provider.Rejected || got.Code != c.code || got.Reason != till.ProviderRejected || got.Original != c.shows || got.Retryable {
				t.Errorf("%+v", got)
			}
			d.want(r, provider.NotFound, "")
		})
	}
}

// What happens to a refund that was taken, and why.
func TestTakenRefunds(t *testing.T) {
	t.Parallel()
	d := newDesk(t, SimConfig{OutOfFunds: true})
	r := d.request(1000)
	d.submit(r)
	d.clock.Advance(10 * time.Second)
	got, err := d.p.Check(t.Context(), provider.Query{Reference: r.Reference, Refund: r.Refund})
	if err != nil || got.Outcome != provider.Failed || got.Reason != till.ProviderUnavailable || got.OurFault == "" {
		t.Errorf("without money in the wallet: %+v, %v", got, err)
	}

	d = newDesk(t, SimConfig{Delayed: true})
	r = d.request(1000)
	d.submit(r)
	d.clock.Advance(72 * time.Hour)
	d.want(r, provider.Open, "")
	if text := d.portal("/v2/refunds/fail-enqueued/"+r.Reference.String(), ""); !strings.Contains(text, "ACCEPTED") {
		t.Errorf("by hand: %s", text)
	}
	d.want(r, provider.Failed, "MANUALLY_CANCELLED")
	if text := d.portal("/v2/refunds/fail-enqueued/"+r.Reference.String(), ""); !strings.Contains(text, "INVALID_STATE") {
		t.Errorf("by hand, twice: %s", text)
	}
	if again := d.submit(d.request(1000)); again.Outcome != provider.Accepted {
		t.Errorf("after one that was failed by hand: %+v", again)
	}
}

// Without an amount, the portal refunds all that is left; the book keeps it over a restart.
func TestTheBookKeepsRefunds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "book")
	d := newDesk(t, SimConfig{Path: path})
	d.refund(600)
	if text := d.portal("/v2/refunds", fmt.Sprintf(`{"refundId":%q,"depositId":%q}`, providertest.NewReference(), d.deposit.Reference)); !strings.Contains(text, "ACCEPTED") {
		t.Fatal(text)
	}
	d.clock.Advance(10 * time.Second)
	d.sim.Close()
	again, err := NewSimulator(SimConfig{Token: testToken, Path: path, Now: d.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	paid, _ := again.Book().Find(simKind(&deposits), d.deposit.Reference.String())
	if left, open := again.leftOf(&paid); left != 0 || open {
		t.Errorf("%d are left, open %v", left, open)
	}
}

// Two hundred refunds of one deposit at once, each with a reference of its own: the operator
// gives back at most what was paid, too.
func TestTheOperatorRefundsOneAtATime(t *testing.T) {
	t.Parallel()
	d := newDesk(t, SimConfig{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[provider.Outcome]int{}
	for range 200 {
		wg.Go(func() {
			got, err := d.p.Submit(context.Background(), d.request(600))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			outcomes[got.Outcome]++
		})
	}
	wg.Wait()
	if outcomes[provider.Accepted] != 1 || outcomes[provider.Rejected] != 199 {
		t.Errorf("%v", outcomes)
	}
}

func TestCanRefund(t *testing.T) {
	t.Parallel()
	o := newOperator(t, Config{BaseURL: "https://api.pawapay.io", APIToken: testToken, Operations: []string{"payments", "payouts"}}, time.Now)
	in := func(method, country string, minor int64, currency string) provider.Original {
		return provider.Original{Method: method, Country: country, Amount: till.Money{Minor: minor, Currency: currency}}
	}
	for _, c := range []struct {
		of     provider.Original
		amount till.Money
		want   bool
	}{
		{in("mtn_momo", "CG", 1000, "XAF"), till.Money{Minor: 1000, Currency: "XAF"}, true},
		{in("mtn_momo", "CG", 1000, "XAF"), till.Money{Minor: 1, Currency: "XAF"}, true},
		{in("mtn_momo", "CG", 1000, "XAF"), till.Money{Minor: 1001, Currency: "XAF"}, false},
		{in("mtn_momo", "CG", 1000, "XAF"), till.Money{Minor: 0, Currency: "XAF"}, false},
		{in("mtn_momo", "CG", 1000, "XAF"), till.Money{Minor: 10, Currency: "XOF"}, false},
		{in("mtn_momo", "TD", 1000, "XAF"), till.Money{Minor: 10, Currency: "XAF"}, false},
		{in("halopesa", "TZ", 10_000, "TZS"), till.Money{Minor: 150, Currency: "TZS"}, false}, // no cents there
		{in("halopesa", "TZ", 10_000, "TZS"), till.Money{Minor: 100, Currency: "TZS"}, true},
	} {
		if got := o.Payouts().(provider.Refunder).CanRefund(c.of, c.amount); got != c.want {
			t.Errorf("%v of %v: %v", c.amount, c.of, got)
		}
		if o.Payments().(provider.Refunder).CanRefund(c.of, c.amount) {
			t.Error("the side that collects refunds")
		}
	}
}

// A callback about a refund wakes the refund, and never the deposit that it names.
func TestCallbacksOfRefunds(t *testing.T) {
	t.Parallel()
	bodies := make(chan []byte, 4)
	here := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- body
	}))
	defer here.Close()
	sim, err := NewSimulator(SimConfig{Token: testToken, Decide: time.Millisecond, RefundCallback: here.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()
	server := httptest.NewServer(sim)
	defer server.Close()
	o := newOperator(t, Config{BaseURL: server.URL, APIToken: testToken, Operations: []string{"payments", "payouts"}}, time.Now)
	deposit := paidDeposit(t, sim, "242063456789", 1000)
	r := (&desk{deposit: deposit}).request(1000)
	if got, err := o.Payouts().Submit(t.Context(), r); err != nil || got.Outcome != provider.Accepted {
		t.Fatal(got, err)
	}
	body := <-bodies
	named := bytes.Replace(body, []byte(`{"refundId"`), fmt.Appendf(nil, `{"depositId":%q,"refundId"`, deposit.Reference), 1)
	for _, body := range [][]byte{body, named} {
		call := provider.CallbackRequest{Method: http.MethodPost, Body: body}
		if got, err := o.Payouts().(provider.CallbackReader).ReadCallback(call); err != nil || got.Reference != r.Reference {
			t.Errorf("%s is read as %+v, %v", body, got, err)
		}
		if got, err := o.Payments().(provider.CallbackReader).ReadCallback(call); err == nil {
			t.Errorf("the deposits read it as %+v", got)
		}
		claim, ok := o.Payouts().(provider.ClaimReader).ReadClaim(body)
		if !ok || claim.Outcome != provider.Success || claim.Reference != r.Reference || claim.Amount != r.Amount {
			t.Errorf("it claims %+v, %v", claim, ok)
		}
	}
}
