package pawapay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"till"
	"till/provider"
	"till/provider/wire"
)

// maxConf is the longest active configuration in bytes: it has all countries, with instructions
// in two languages.
const maxConf = 1 << 20

// Markets implements provider.MarketReader from the active configuration.
func (s *service) Markets(ctx context.Context) ([]provider.MarketInfo, error) {
	conf, err := s.readConf(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.checkCompany(conf); err != nil {
		return nil, err
	}
	return s.markets(conf)
}

// markets reads the providers that we route. Those that the account has and the program does
// not know are left out.
func (s *service) markets(conf *activeConf) (out []provider.MarketInfo, err error) {
	routes := map[string][]*Route{}
	for _, r := range s.routes {
		routes[r.Code] = append(routes[r.Code], r)
	}
	for _, country := range conf.Countries {
		for _, p := range country.Providers {
			for _, c := range p.Currencies {
				code, currency, ours := string(p.Provider), string(c.Currency), 0
				for _, r := range routes[code] {
					if r.Currency != currency {
						continue
					}
					ours++
					m, err := r.market(c.OperationTypes)
					if err != nil {
						return nil, fmt.Errorf("of %s with %s pawaPay says %w", code, currency, err)
					}
					m.Shown = provider.ShownName(string(p.NameDisplayedToCustomer))
					out = append(out, m)
				}
				if ours == 0 && len(routes[code]) > 0 {
					return nil, fmt.Errorf("pawaPay says that %s is in %q, another currency than ours: if it is right, write a [[connection.pawapay.provider]] row for it",
						wire.Truncate(code, maxCode), wire.Truncate(currency, 10))
				}
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("pawaPay names no provider that we know. Ask it to activate those of your countries")
	}
	return out, nil
}

// market reads what the account may do with a provider.
func (r *Route) market(raw json.RawMessage) (m provider.MarketInfo, err error) {
	m = provider.MarketInfo{Method: r.Method, Country: r.Country, Currency: r.Currency}
	ops, err := readOperations(raw)
	if err != nil {
		return m, err
	}
	for _, side := range []struct {
		kind *serviceKind
		to   **provider.MarketTerms
	}{{&deposits, &m.Payments}, {&payouts, &m.Payouts}, {&refunds, &m.Refunds}} {
		op, has := ops[side.kind.operation]
		if !has {
			continue
		}
		if *side.to, err = op.terms(r.Currency); err != nil {
			return m, fmt.Errorf("%w, for %s", err, side.kind.operation)
		}
	}
	return m, nil
}

// The words of the active configuration. What it leaves out narrows nothing.
var (
	confStates = map[wire.Text]provider.MarketState{"": provider.MarketOpen, "OPERATIONAL": provider.MarketOpen, "DELAYED": provider.MarketDelayed, "CLOSED": provider.MarketClosed}
	confFlows  = map[wire.Text]till.Flow{"": "", "PROVIDER_AUTH": till.FlowPush, "REDIRECT_AUTH": till.FlowRedirect, "PREAUTH": till.FlowCode}
	confPlaces = map[wire.Text]int{"": -1, "NONE": 0, "TWO_PLACES": 2}
)

// terms reads one operation.
func (op *operation) terms(currency string) (*provider.MarketTerms, error) {
	state, known := confStates[op.Status]
	places, placed := confPlaces[op.Decimals]
	iso, ok := till.CurrencyDecimals(currency)
	switch {
	case !known:
		return nil, fmt.Errorf("a status that is not known: %q", wire.Truncate(string(op.Status), maxCode))
	case !placed:
		return nil, fmt.Errorf("decimals that are not known: %q", wire.Truncate(string(op.Decimals), maxCode))
	case !ok:
		return nil, errors.New("a currency that is not known")
	}
	t := &provider.MarketTerms{State: state}
	if t.Flow, known = confFlows[op.AuthType]; !known { // a way to approve that no program of ours has
		t.State = provider.MarketClosed
	}
	for _, bound := range []struct {
		text wire.Text
		to   *int64
	}{{cmp.Or(op.Min, op.OldMin), &t.Min}, {cmp.Or(op.Max, op.OldMax), &t.Max}} {
		if bound.text == "" {
			continue
		}
		minor, ok := wire.ParseMinor(string(bound.text), iso)
		if !ok {
			return nil, fmt.Errorf("a bound that is no amount: %q", wire.Truncate(string(bound.text), maxCode))
		}
		*bound.to = minor
	}
	if t.Max == 0 && cmp.Or(op.Max, op.OldMax) != "" {
		return nil, errors.New("that it takes at most nothing")
	}
	if t.Max > 0 && t.Min > t.Max {
		return nil, fmt.Errorf("bounds that cannot be: %d to %d minor units", t.Min, t.Max)
	}
	if places >= 0 && places < iso {
		for t.Step = 1; places < iso; places++ {
			t.Step *= 10
		}
	}
	t.Dial = dialOf(op.Instructions)
	return t, nil
}

// confInstructions are what a customer does to bring the prompt.
type confInstructions struct {
	Channels []struct {
		Type         wire.Text     `json:"type"`
		Variables    confVariables `json:"variables"`
		Instructions map[string][]struct {
			Variables confVariables `json:"variables"`
		} `json:"instructions"`
	} `json:"channels"`
}

type confVariables struct {
	ShortCode wire.Text `json:"shortCode"`
}

// dialOf returns what is dialled first, "" if that is not published in a form that we read.
func dialOf(raw json.RawMessage) string {
	var in confInstructions
	if len(raw) == 0 || json.Unmarshal(raw, &in) != nil {
		return ""
	}
	for _, c := range in.Channels {
		if !strings.EqualFold(string(c.Type), "USSD") {
			continue
		}
		code := string(c.Variables.ShortCode)
		if steps := c.Instructions["en"]; code == "" && len(steps) > 0 {
			code = string(steps[0].Variables.ShortCode)
		}
		if code = strings.TrimSpace(code); provider.IsDial(code) {
			return code
		}
	}
	return ""
}
