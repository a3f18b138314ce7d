package pawapay

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// What a simulated account may do with a provider: pawaPay's words, and one for an operation
// that the account does not have.
const (
	simOpen    = "OPERATIONAL"
	simDelayed = "DELAYED"
	simClosed  = "CLOSED"
	simLacking = "LACKING"
)

// simShown is the name that customers' phones show.
const simShown = "PAWAPAY SIM"

// simInstructions bring back a prompt.
var simInstructions = map[string]any{"channels": []any{map[string]any{
	"type": "USSD", "displayName": map[string]string{"en": "Did not get a PIN prompt?", "fr": "Vous n’avez pas reçu la demande ?"},
	"variables": map[string]string{"shortCode": "*105#"},
	"instructions": map[string]any{
		"en": []any{map[string]any{"text": "Dial *105#", "template": "Dial {{shortCode}}", "variables": map[string]string{"shortCode": "*105#"}}},
		"fr": []any{map[string]any{"text": "Composez *105#", "template": "Composez {{shortCode}}", "variables": map[string]string{"shortCode": "*105#"}}},
	},
}}}

// simMarket is what the account may do with a provider, for one operation.
type simMarket struct {
	Provider, Operation string
	Status              string
	Min, Max            string // of an amount, as pawaPay writes it
}

// simMarkets are what differs from an account that may do everything.
type simMarkets struct {
	sync.Mutex
	all []simMarket
}

// SetMarkets says what the account may do from now on. Each text names a provider, an operation
// and a status, or its bounds: "MTN_MOMO_COG DEPOSIT CLOSED", "MTN_MOMO_COG PAYOUT 500-100000". The status is
// OPERATIONAL, DELAYED, CLOSED, or LACKING for what the account does not have. What no text
// names is operational. It changes nothing if one is wrong.
func (s *Simulator) SetMarkets(texts []string) error {
	var all []simMarket
	for _, text := range texts {
		m, err := parseSimMarket(text)
		if err != nil {
			return err
		}
		all = append(all, m)
	}
	s.markets.Lock()
	defer s.markets.Unlock()
	s.markets.all = all
	return nil
}

func parseSimMarket(text string) (m simMarket, err error) {
	words := strings.Fields(text)
	if len(words) != 3 {
		return m, fmt.Errorf("%q is not PROVIDER OPERATION STATUS, as in: MTN_MOMO_COG DEPOSIT CLOSED", text)
	}
	m = simMarket{Provider: words[0], Operation: words[1], Status: simOpen}
	if !slices.ContainsFunc(defaultRoutes, func(r Route) bool { return r.Code == m.Provider }) {
		return m, fmt.Errorf("%q: there is no provider %s", text, m.Provider)
	}
	if m.Operation != deposits.operation && m.Operation != payouts.operation && m.Operation != refunds.operation {
		return m, fmt.Errorf("%q: an operation is DEPOSIT, PAYOUT or REFUND", text)
	}
	low, high, bounds := strings.Cut(words[2], "-")
	switch {
	case bounds && simAmount.MatchString(low) && simAmount.MatchString(high):
		m.Min, m.Max = low, high
	case slices.Contains([]string{simOpen, simDelayed, simClosed, simLacking}, words[2]):
		m.Status = words[2]
	default:
		return m, fmt.Errorf("%q: %s is neither bounds (500-100000) nor OPERATIONAL, DELAYED, CLOSED or LACKING", text, words[2])
	}
	return m, nil
}

// market returns what the account may do with a provider.
func (s *Simulator) market(provider string, k *serviceKind) simMarket {
	m := simMarket{Provider: provider, Operation: k.operation, Status: simOpen, Min: "1", Max: "2000000"}
	s.markets.Lock()
	defer s.markets.Unlock()
	for _, set := range s.markets.all {
		if set.Provider != provider || set.Operation != k.operation {
			continue
		}
		if set.Min != "" {
			m.Min, m.Max = set.Min, set.Max
		} else {
			m.Status = set.Status
		}
	}
	return m
}

// delayed reports whether requests to a provider wait.
func (s *Simulator) delayed(provider string, k *serviceKind) bool {
	return k != &deposits && (s.c.Delayed || s.market(provider, k).Status == simDelayed)
}

// outside reports whether an amount is outside of the bounds.
func (m *simMarket) outside(amount string) bool {
	return simUnits(amount) < simUnits(m.Min) || simUnits(amount) > simUnits(m.Max)
}
