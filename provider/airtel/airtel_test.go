package airtel_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"till"
	"till/provider"
	"till/provider/airtel"
	"till/provider/providertest"
	"till/provider/simulator"
)

// operation says what a request of the adapter's is for.
func operation(r *http.Request) providertest.Operation {
	money := strings.Contains(r.URL.Path, "/payments/") || strings.Contains(r.URL.Path, "/disbursements/")
	switch {
	case strings.HasSuffix(r.URL.Path, "/oauth2/token"):
		return providertest.Token
	case money && r.Method == http.MethodPost:
		return providertest.Submit
	case money:
		return providertest.Check
	}
	return providertest.Other
}

// world is an adapter, a line and a simulated Airtel Congo.
type world struct {
	clock *providertest.Clock
	sim   *airtel.Simulator
	line  *providertest.Line
	deps  provider.Deps
	c     airtel.Config
	*airtel.Operator
}

func newWorld(t testing.TB, sim airtel.SimConfig, change func(*airtel.Config)) *world {
	t.Helper()
	w := &world{clock: providertest.NewClock()}
	sim.Now = w.clock.Now
	var err error
	if w.sim, err = airtel.NewSimulator(sim); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.sim.Close() })
	w.line = providertest.NewLine(t, w.sim, operation)
	w.c = airtel.Config{
		BaseURL: w.line.URL(), Country: "CG", Currency: "XAF", Operations: []string{"payments", "payouts"},
		ClientID: airtel.SimClientID, ClientSecret: airtel.SimClientSecret, PIN: airtel.SimPIN, PINPublicKey: airtel.SimPublicKey,
	}
	if change != nil {
		change(&w.c)
	}
	w.deps = provider.Deps{Connection: "airtel-congo", Tokens: providertest.NewTokens(w.clock.Now), Now: w.clock.Now}
	if w.Operator, err = airtel.New(w.c, w.deps); err != nil {
		t.Fatal(err)
	}
	return w
}

func newRequest(clock *providertest.Clock, phone string) provider.Request {
	now := till.TimeOf(clock.Now())
	return provider.Request{
		Client: till.NewID(now), ID: till.NewID(now), Reference: providertest.NewReference(),
		Method: "airtel_money", Country: "CG", Phone: phone,
		Amount: till.Money{Minor: 1000, Currency: "XAF"}, Description: "Order 123", ExpiresAt: now.Add(5 * time.Minute),
	}
}

// statusOutcome is the table of HTTP statuses, stated once more: Airtel says nothing
// by a status alone.
func statusOutcome(providertest.Operation, int, string) provider.Outcome { return "" }

func TestProvider(t *testing.T) {
	for name, x := range map[string]struct {
		sim    airtel.SimConfig
		change func(*airtel.Config)
	}{
		"version 1":         {},
		"signed, version 2": {airtel.SimConfig{SignedOnly: true}, func(c *airtel.Config) { c.SignMessages, c.DisbursementVersion = true, "v2" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Run("payments", func(t *testing.T) {
				providertest.Run(t, harness(x.sim, x.change, false, map[providertest.Story]string{
					providertest.Approve: "242051234567", providertest.Decline: "242051230002", providertest.NeverAnswer: "242051230003",
					providertest.NoFunds: "242051230004", providertest.UnknownPayer: "242051230005", providertest.LimitReached: "242051230006",
					providertest.WrongPIN: "242051230007", providertest.Stuck: "242051230014",
				}))
			})
			t.Run("payouts", func(t *testing.T) {
				providertest.Run(t, harness(x.sim, x.change, true, map[providertest.Story]string{
					providertest.Approve: "242051234567", providertest.NoFunds: "242051230004", providertest.UnknownPayer: "242051230005",
					providertest.LimitReached: "242051230006", providertest.Stuck: "242051230021",
				}))
			})
		})
	}
}

func harness(sim airtel.SimConfig, change func(*airtel.Config), payout bool, phones map[providertest.Story]string) func(*testing.T) providertest.Harness {
	return func(t *testing.T) providertest.Harness {
		w := newWorld(t, sim, change)
		name, rejection := "payment", "DP00800001004"
		pick := func(o *airtel.Operator) provider.Provider { return o.Payments() }
		if payout {
			name, rejection = "payout", "DP00900001004"
			pick = func(o *airtel.Operator) provider.Provider { return o.Payouts() }
		}
		h := providertest.Harness{
			Provider: pick(w.Operator),
			Request: func(s providertest.Story) (provider.Request, bool) {
				phone, ok := phones[s]
				return newRequest(w.clock, phone), ok
			},
			Advance: w.clock.Advance,
			Debits: func(ref till.ID) int {
				return w.sim.Book().Moved(name, strings.ReplaceAll(ref.String(), "-", ""))
			},
			Payout:        payout,
			Line:          w.line,
			StatusOutcome: statusOutcome,
			Rejection: providertest.Answer{Status: 200,
				Body: `{"status":{"code":"400","message":"Invalid amount","result_code":"ESB000008","response_code":"` + rejection + `","success":false}}`},
			Refused: providertest.Answer{Status: 403,
				Body: `{"error_description":"The access token is invalid or has expired","error":"invalid_token"}`},
			ForgetTokens: w.sim.ForgetTokens,
		}
		for _, other := range []func(*airtel.Config){
			func(c *airtel.Config) { c.BaseURL = "https://openapi.airtel.cg" },
			func(c *airtel.Config) { c.Country, c.Currency = "UG", "UGX" },
			func(c *airtel.Config) { c.ClientID = "another" },
		} {
			c := w.c
			other(&c)
			o, err := airtel.New(c, w.deps)
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
}

// With a tenth of everything going wrong, nobody pays twice.
func TestStorm(t *testing.T) {
	sim := airtel.SimConfig{Faults: simulator.Faults{LostRequest: 0.1, LostResponse: 0.1, ServerError: 0.1, Slow: 0.05, SlowBy: time.Millisecond, Tokens: true, Seed: 6}}
	phones := map[providertest.Story]string{providertest.Approve: "242051234567", providertest.Decline: "242051230002", providertest.NoFunds: "242051230004", providertest.UnknownPayer: "242051230005"}
	for _, payout := range []bool{false, true} {
		providertest.Storm(t, harness(sim, nil, payout, phones)(t), 300)
	}
}
