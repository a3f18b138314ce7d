package pawapay

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"till"
	"till/provider"
	"till/provider/providertest"
	"till/provider/simulator"
)

const testToken = "token-of-a-test"

// open wires the adapter of a kind to a simulated pawaPay over a line.
func open(t *testing.T, k *serviceKind, faults simulator.Faults) providertest.Harness {
	t.Helper()
	clock := providertest.NewClock()
	sim, err := NewSimulator(SimConfig{Token: testToken, Now: clock.Now, Decide: 40 * time.Second, Faults: faults})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sim.Close() })
	line := providertest.NewLine(t, sim, func(r *http.Request) providertest.Operation {
		switch {
		case r.Method == http.MethodPost && r.URL.Path == k.path:
			return providertest.Submit
		case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, k.path+"/"):
			return providertest.Check
		}
		return providertest.Other
	})
	config := Config{BaseURL: line.URL(), APIToken: testToken, Operations: []string{"payments", "payouts"}}
	side := func(c Config, other bool) provider.Provider {
		o := newOperator(t, c, clock.Now)
		if (k != &deposits) != other {
			return o.Payouts()
		}
		return o.Payments()
	}
	elsewhere, another := config, config
	elsewhere.BaseURL, another.Account = "https://api.pawapay.io", "shop 2"
	p := side(config, false)
	var number atomic.Int64
	return providertest.Harness{
		Provider: p, Line: line, Advance: clock.Advance, Payout: k != &deposits,
		Request: func(s providertest.Story) (provider.Request, bool) {
			ending, ok := endings(k)[s]
			r := provider.Request{
				Client: till.NewID(1), ID: till.NewID(till.TimeOf(clock.Now())), Reference: providertest.NewReference(),
				Method: "mtn_momo", Country: "CG", Phone: fmt.Sprintf("24206%04d%s", number.Add(1), ending),
				Amount: till.Money{Minor: 1500, Currency: "XAF"}, Description: "Order 12345",
			}
			if k == &refunds {
				r.Refund = paidDeposit(t, sim, r.Phone, 2000)
			}
			return r, ok
		},
		Debits:        func(ref till.ID) int { return sim.Book().Moved(simKind(k), ref.String()) },
		StatusOutcome: func(providertest.Operation, int, string) provider.Outcome { return "" }, // an empty answer never says anything
		Rejection: providertest.Answer{Status: 200,
			Body: `{"status":"REJECTED","failureReason":{"failureCode":"INVALID_AMOUNT","failureMessage":"no"}}`},
		Refused: providertest.Answer{Status: 403, Body: `{"failureReason":{"failureCode":"AUTHENTICATION_ERROR","failureMessage":"no"}}`},
		Alter: map[providertest.Story]func([]byte) []byte{
			providertest.WrongAmount:   replace(`"amount":"1500.00"`, `"amount":"150.00"`),
			providertest.WrongCurrency: replace(`"currency":"XAF"`, `"currency":"XOF"`),
		},
		Others: []provider.Provider{side(elsewhere, false), side(another, false), side(config, true)},
	}
}

// paidDeposit puts a deposit that is completed into the book.
func paidDeposit(t testing.TB, sim *Simulator, phone string, francs int64) *provider.Original {
	t.Helper()
	o := &provider.Original{Reference: providertest.NewReference(), Method: "mtn_momo", Country: "CG", Phone: phone, Amount: till.Money{Minor: francs, Currency: "XAF"}}
	_, _, err := sim.Book().Add(simulator.Entry{Kind: simKind(&deposits), Reference: o.Reference.String(), Phone: phone, Amount: strconv.FormatInt(francs, 10),
		Currency: "XAF", Data: `{"provider":"MTN_MOMO_COG"}`, Plan: simulator.Plan{State: simulator.Success}})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func replace(old, with string) func([]byte) []byte {
	return func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(old), []byte(with)) }
}

// endings are the last three digits that tell a story to pawaPay's sandbox.
func endings(k *serviceKind) map[providertest.Story]string {
	if k != &deposits {
		return map[providertest.Story]string{
			providertest.Approve: "789", providertest.UnknownPayer: "089", providertest.LimitReached: "109", providertest.Stuck: "129",
		}
	}
	return map[providertest.Story]string{
		providertest.Approve: "789", providertest.Decline: "039", providertest.NeverAnswer: "039", providertest.NoFunds: "049",
		providertest.UnknownPayer: "029", providertest.LimitReached: "019", providertest.Stuck: "129",
	}
}

func newOperator(t testing.TB, c Config, now func() time.Time) *Operator {
	t.Helper()
	o, err := New(c, provider.Deps{Connection: "pawapay", Now: now, CallbackURL: "https://till.example/callbacks/x"})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestPayments(t *testing.T) {
	t.Parallel()
	providertest.Run(t, func(t *testing.T) providertest.Harness { return open(t, &deposits, simulator.Faults{}) })
}

func TestPayouts(t *testing.T) {
	t.Parallel()
	providertest.Run(t, func(t *testing.T) providertest.Harness { return open(t, &payouts, simulator.Faults{}) })
}

func TestRefunds(t *testing.T) {
	t.Parallel()
	providertest.Run(t, func(t *testing.T) providertest.Harness { return open(t, &refunds, simulator.Faults{}) })
}

// TestStorm: with a tenth of everything going wrong, nobody pays twice.
func TestStorm(t *testing.T) {
	t.Parallel()
	for _, k := range []*serviceKind{&deposits, &payouts, &refunds} {
		providertest.Storm(t, open(t, k, simulator.Faults{LostRequest: 0.1, LostResponse: 0.1, ServerError: 0.1, Slow: 0.05, SlowBy: time.Millisecond, Seed: 6}), 150)
	}
}
