package mtnmomo_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"till"
	"till/provider"
	"till/provider/mtnmomo"
	"till/provider/providertest"
	"till/provider/simulator"
)

// operation says what a request of the adapter's is for.
func operation(r *http.Request) providertest.Operation {
	switch {
	case strings.HasSuffix(r.URL.Path, "/token/"):
		return providertest.Token
	case r.Method == http.MethodPost:
		return providertest.Submit
	case strings.Contains(r.URL.Path, "/requesttopay/"), strings.Contains(r.URL.Path, "/transfer/"), strings.Contains(r.URL.Path, "/refund/"):
		return providertest.Check
	}
	return providertest.Other
}

// congo is a simulator of MTN Congo and a configuration for it.
func congo(url string) mtnmomo.Config {
	return mtnmomo.Config{
		BaseURL: url, TargetEnvironment: "mtncongo",
		APIUser: mtnmomo.SimUser, APIKey: mtnmomo.SimKey,
		CollectionKey: mtnmomo.SimCollectionKey, DisbursementKey: mtnmomo.SimDisbursementKey,
	}
}

// world is an adapter, a line and a simulated MTN Congo.
type world struct {
	clock *providertest.Clock
	sim   *mtnmomo.Simulator
	line  *providertest.Line
	deps  provider.Deps
	*mtnmomo.Operator
}

func newWorld(t testing.TB, sim mtnmomo.SimConfig, change func(*mtnmomo.Config)) *world {
	t.Helper()
	w := &world{clock: providertest.NewClock()}
	sim.Now = w.clock.Now
	if sim.TargetEnvironment == "" {
		sim.TargetEnvironment = "mtncongo"
	}
	var err error
	if w.sim, err = mtnmomo.NewSimulator(sim); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.sim.Close() })
	w.line = providertest.NewLine(t, w.sim, operation)
	c := congo(w.line.URL())
	if change != nil {
		change(&c)
	}
	w.deps = provider.Deps{Connection: "mtn-congo", Tokens: providertest.NewTokens(w.clock.Now), Now: w.clock.Now}
	if w.Operator, err = mtnmomo.New(c, w.deps); err != nil {
		t.Fatal(err)
	}
	return w
}

func newRequest(clock *providertest.Clock, phone string) provider.Request {
	now := till.TimeOf(clock.Now())
	return provider.Request{
		Client: till.NewID(now), ID: till.NewID(now), Reference: providertest.NewReference(),
		Method: "mtn_momo", Country: "CG", Phone: phone,
		Amount: till.Money{Minor: 2500, Currency: "XAF"}, Description: "Order 123", ExpiresAt: now.Add(5 * time.Minute),
	}
}

// statusOutcome is the table of HTTP statuses, stated once more: 202 accepts, 409 is
// a duplicate, 400 rejects; nothing else is MTN's word without a body.
func statusOutcome(op providertest.Operation, status int, _ string) provider.Outcome {
	if op == providertest.Submit {
		switch status {
		case 202:
			return provider.Accepted
		case 409:
			return provider.Duplicate
		case 400:
			return provider.Rejected
		}
	}
	return ""
}

func alter(member, value string) func([]byte) []byte {
	return func(body []byte) []byte {
		var m map[string]any
		if json.Unmarshal(body, &m) != nil || m["status"] != "SUCCESSFUL" {
			return body
		}
		m[member] = value
		b, _ := json.Marshal(m)
		return bytes.TrimSpace(b)
	}
}

func TestProvider(t *testing.T) {
	for name, sim := range map[string]mtnmomo.SimConfig{
		"old platform": {},
		"new platform": {NewPlatform: true, ReasonObject: true, APIUser: "bmV3IHBsYXRmb3Jt=", APIKey: "p%n/c:t+u!"},
	} {
		user := func(c *mtnmomo.Config) {
			if sim.APIUser != "" {
				c.APIUser, c.APIKey = sim.APIUser, sim.APIKey
			}
		}
		t.Run(name, func(t *testing.T) {
			t.Run("payments", func(t *testing.T) {
				providertest.Run(t, harness(sim, user, false, map[providertest.Story]string{
					providertest.Approve: "242061234567", providertest.Decline: "242063123451", providertest.NeverAnswer: "242063123452",
					providertest.NoFunds: "242063123470", providertest.UnknownPayer: "242063123455", providertest.LimitReached: "242063123471",
					providertest.Stuck: "242063123453",
				}))
			})
			t.Run("payouts", func(t *testing.T) {
				providertest.Run(t, harness(sim, user, true, map[providertest.Story]string{
					providertest.Approve: "242061234567", providertest.NoFunds: "242063123455", providertest.UnknownPayer: "242063123457",
					providertest.LimitReached: "242063123470", providertest.Stuck: "242063123454",
				}))
			})
			t.Run("refunds", func(t *testing.T) {
				providertest.Run(t, refundHarness(sim, user, map[providertest.Story]string{
					providertest.Approve: "242061234567", providertest.NoFunds: "242063123455", providertest.UnknownPayer: "242063123457",
					providertest.LimitReached: "242063123470", providertest.Stuck: "242063123454",
				}))
			})
		})
	}
}

func harness(sim mtnmomo.SimConfig, change func(*mtnmomo.Config), payout bool, phones map[providertest.Story]string) func(*testing.T) providertest.Harness {
	return func(t *testing.T) providertest.Harness {
		return harnessOf(t, newWorld(t, sim, change), change, payout, phones)
	}
}

func harnessOf(t *testing.T, w *world, change func(*mtnmomo.Config), payout bool, phones map[providertest.Story]string) providertest.Harness {
	name := "payment"
	pick := func(o *mtnmomo.Operator) provider.Provider { return o.Payments() }
	if payout {
		name = "payout"
		pick = func(o *mtnmomo.Operator) provider.Provider { return o.Payouts() }
	}
	h := providertest.Harness{
		Provider: pick(w.Operator),
		Request: func(s providertest.Story) (provider.Request, bool) {
			phone, ok := phones[s]
			return newRequest(w.clock, phone), ok
		},
		Advance:       w.clock.Advance,
		Debits:        func(ref till.ID) int { return w.sim.Book().Moved(name, ref.String()) },
		Payout:        payout,
		Line:          w.line,
		StatusOutcome: statusOutcome,
		Rejection: providertest.Answer{Status: 500,
			Body: `{"code":"INVALID_CURRENCY","message":"Currency not supported."}`},
		Refused:      providertest.Answer{Status: 401, Body: `{"statusCode":401,"message":"Unauthorized. Access token has expired."}`},
		ForgetTokens: w.sim.ForgetTokens,
		Alter: map[providertest.Story]func([]byte) []byte{
			providertest.WrongAmount: alter("amount", "2400"), providertest.WrongCurrency: alter("currency", "XOF"),
		},
	}
	for _, other := range []func(*mtnmomo.Config){
		func(c *mtnmomo.Config) { c.BaseURL = "https://momoapi.momo.africa" },
		func(c *mtnmomo.Config) { c.TargetEnvironment = "mtnuganda" },
		func(c *mtnmomo.Config) {
			c.APIUser, c.DisbursementUser, c.DisbursementSecret = "another", "another", "x"
		},
	} {
		c := congo(w.line.URL())
		if change != nil {
			change(&c)
		}
		other(&c)
		o, err := mtnmomo.New(c, w.deps)
		if err != nil {
			t.Fatal(err)
		}
		h.Others = append(h.Others, pick(o))
	}
	if payout {
		h.Others = append(h.Others, w.Payments())
	} else {
		h.Others = append(h.Others, w.Payouts())
	}
	return h
}

// refundHarness is that of payouts for refunds that name a payment.
func refundHarness(sim mtnmomo.SimConfig, change func(*mtnmomo.Config), phones map[providertest.Story]string) func(*testing.T) providertest.Harness {
	return func(t *testing.T) providertest.Harness {
		w := newWorld(t, sim, change)
		h := harnessOf(t, w, change, true, phones)
		request := h.Request
		h.Request = func(s providertest.Story) (provider.Request, bool) {
			r, ok := request(s)
			r.Refund = paid(t, w.sim, r.Phone, r.Amount)
			return r, ok
		}
		h.Debits = func(ref till.ID) int { return w.sim.Book().Moved("refund", ref.String()) }
		return h
	}
}

// paid puts a payment that succeeded into MTN's book.
func paid(t testing.TB, sim *mtnmomo.Simulator, phone string, amount till.Money) *provider.Original {
	t.Helper()
	o := &provider.Original{Reference: providertest.NewReference(), Method: "mtn_momo", Country: "CG", Phone: phone, Amount: amount}
	_, _, err := sim.Book().Add(simulator.Entry{Kind: "payment", Reference: o.Reference.String(), Phone: phone, Amount: amount.Value(), Currency: amount.Currency,
		Plan: simulator.Plan{State: simulator.Success}})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// With a tenth of everything going wrong, nobody pays twice.
func TestStorm(t *testing.T) {
	sim := mtnmomo.SimConfig{Faults: simulator.Faults{LostRequest: 0.1, LostResponse: 0.1, ServerError: 0.1, Slow: 0.05, SlowBy: time.Millisecond, Tokens: true, Seed: 6}}
	phones := map[providertest.Story]string{providertest.Approve: "242061234567", providertest.Decline: "242063123451", providertest.NoFunds: "242063123470", providertest.UnknownPayer: "242063123455"}
	for _, payout := range []bool{false, true} {
		providertest.Storm(t, harness(sim, nil, payout, phones)(t), 300)
	}
	providertest.Storm(t, refundHarness(sim, nil, phones)(t), 300)
}

// BenchmarkSubmits is how many submits one instance makes over the adapter's 64
// connections to an operator that answers in 50 ms.
func BenchmarkSubmits(b *testing.B) {
	sim, err := mtnmomo.NewSimulator(mtnmomo.SimConfig{Faults: simulator.Faults{Slow: 1, SlowBy: 50 * time.Millisecond}})
	if err != nil {
		b.Fatal(err)
	}
	defer sim.Close()
	server := httptest.NewServer(sim)
	defer server.Close()
	o, err := mtnmomo.New(congo(server.URL), provider.Deps{Tokens: providertest.NewTokens(time.Now)})
	if err != nil {
		b.Fatal(err)
	}
	clock := providertest.NewClock()
	b.SetParallelism(256)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if got, err := o.Payments().Submit(b.Context(), newRequest(clock, "242061234567")); err != nil || got.Outcome != provider.Accepted {
				b.Errorf("%q, %v", got.Outcome, err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "submits/s")
}
