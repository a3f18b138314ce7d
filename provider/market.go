package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"till"
)

// MarketReader is a provider whose operator says what the account may do.
type MarketReader interface {
	Provider
	// Markets asks the operator for all that the account may do, for payments, payouts and
	// refunds. What it does not name, the account does not have. An answer that cannot be
	// understood is an error as a whole.
	Markets(ctx context.Context) ([]MarketInfo, error)
}

// MarketInfo is what an account may do with a method in a country and currency.
type MarketInfo struct {
	Method   string `json:"method"`
	Country  string `json:"country"`
	Currency string `json:"currency"`
	// Shown is the name that the customer's phone shows when it asks, "" if that is not known.
	Shown string `json:"shown,omitempty"`
	// Payments, Payouts and Refunds are nil for what the account cannot do.
	Payments *MarketTerms `json:"payments,omitempty"`
	Payouts  *MarketTerms `json:"payouts,omitempty"`
	Refunds  *MarketTerms `json:"refunds,omitempty"`
}

// MarketTerms is how an account may do one of these just now.
type MarketTerms struct {
	State MarketState `json:"state"`
	Min   int64       `json:"min,omitempty"`  // of an amount, in minor units; 0: it does not say
	Max   int64       `json:"max,omitempty"`  // the same
	Step  int64       `json:"step,omitempty"` // a power of ten; 0: it does not say
	// Flow is how customers approve, "" if it does not say.
	Flow till.Flow `json:"flow,omitempty"`
	// Dial is what a customer dials to bring the prompt, "" if that is not published.
	Dial string `json:"dial,omitempty"`
}

// MarketState says whether an operator takes requests.
type MarketState string

// The states.
const (
	MarketOpen    MarketState = "operational"
	MarketDelayed MarketState = "delayed" // payments are refused, payouts wait
	MarketClosed  MarketState = "closed"
)

// The limits of what an operator may say.
const (
	maxMarkets     = 1000
	maxMarketShown = 60
	maxMarketStep  = 10_000
	maxDial        = 20
)

// Markets is what an operator said of an account, by market.
type Markets map[[3]string]*MarketInfo

// NewMarkets returns what an operator said, or an error if any of it cannot be: then nothing
// of it is used.
func NewMarkets(all []MarketInfo) (Markets, error) {
	switch {
	case len(all) == 0:
		return nil, errors.New("the operator names no market that we know")
	case len(all) > maxMarkets:
		return nil, fmt.Errorf("the operator names %d markets; at most %d are read", len(all), maxMarkets)
	}
	out := make(Markets, len(all))
	for i := range all {
		m := &all[i]
		key := [3]string{m.Method, m.Country, m.Currency}
		if err := m.check(); err != nil {
			return nil, fmt.Errorf("of %s in %s with %s the operator says %w", CleanText(m.Method, 40), CleanText(m.Country, 10), CleanText(m.Currency, 10), err)
		}
		if out[key] != nil {
			return nil, fmt.Errorf("the operator names %s in %s with %s twice", m.Method, m.Country, m.Currency)
		}
		out[key] = m
	}
	return out, nil
}

// Find returns what the operator said of a market, nil if the account does not have it.
func (ms Markets) Find(method, country, currency string) *MarketInfo {
	return ms[[3]string{method, country, currency}]
}

// check returns what cannot be.
func (m *MarketInfo) check() error {
	if _, ok := till.CurrencyDecimals(m.Currency); !ok {
		return errors.New("a currency that is not known")
	}
	if m.Method == "" || len(m.Country) != 2 || strings.ToUpper(m.Country) != m.Country {
		return errors.New("no method, or no country")
	}
	if ShownName(m.Shown) != m.Shown {
		return errors.New("a name that cannot be shown")
	}
	for what, t := range map[string]*MarketTerms{"payments": m.Payments, "payouts": m.Payouts, "refunds": m.Refunds} {
		if t == nil {
			continue
		}
		if err := t.check(); err != nil {
			return fmt.Errorf("%w, for %s", err, what)
		}
	}
	return nil
}

func (t *MarketTerms) check() error {
	switch {
	case t.State != MarketOpen && t.State != MarketDelayed && t.State != MarketClosed:
		return fmt.Errorf("a state that is not known: %q", CleanText(string(t.State), 20))
	case t.Min < 0 || t.Max < 0 || t.Min > till.MaxMinor || t.Max > till.MaxMinor || t.Max > 0 && t.Min > t.Max:
		return fmt.Errorf("bounds that cannot be: %d to %d minor units", t.Min, t.Max)
	case t.Step < 0 || t.Step > maxMarketStep:
		return fmt.Errorf("a step that cannot be: %d minor units", t.Step)
	case t.Flow != "" && !t.Flow.Valid():
		return errors.New("a flow that is not known")
	case t.Dial != "" && !IsDial(t.Dial):
		return errors.New("something to dial that is none")
	}
	return nil
}

// ShownName returns a name as it may be shown to people, "" for one that may not: it is too
// long, or has something in it that is not seen.
func ShownName(s string) string {
	s = strings.TrimSpace(s)
	if !storable(s, maxMarketShown) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return ""
	}
	return s
}

// IsDial reports whether a text is what brings a prompt when it is dialled: *105#. No part of
// it has more than four digits, so that none is a phone number or a large amount.
func IsDial(s string) bool {
	if len(s) < 3 || len(s) > maxDial || s[0] != '*' && s[0] != '#' || s[len(s)-1] != '#' {
		return false
	}
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return r == '*' || r == '#' }) {
		if len(part) > 4 || strings.Trim(part, "0123456789") != "" {
			return false
		}
	}
	return strings.ContainsAny(s, "0123456789")
}
