package engine

import (
	"cmp"
	"time"

	"till"
	"till/internal/request"
	"till/provider"
)

// What an operator says of an account only narrows what we offer: a market that it closes or
// does not name is closed, and of two bounds the tighter one holds. It decides about new rows
// alone; what was accepted goes its way.

// toldMarkets is what operators say of accounts, as payments or payouts see it.
type toldMarkets struct {
	of   till.SubjectKind
	said func(connection string) provider.Markets // as Config.Markets
}

// closedRetry is when a client may try again a market that its operator has closed.
const closedRetry = 5 * time.Minute

// standing is a market as one connection has it.
type standing struct {
	till.Market // with the tighter of both bounds
	// Closed says that the operator takes no such requests, or the account has no such market.
	Closed bool
	// Delayed says that the operator takes them and leaves them waiting.
	Delayed bool
	Shown   string
	Dial    string
}

// standing returns a market as a connection has it. Without a word of the operator it is ours.
func (a *toldMarkets) standing(connection, method string, k *till.Market) standing {
	s := standing{Market: *k}
	told := a.told(connection)
	if told == nil {
		return s
	}
	info := told.Find(method, k.Country, k.Currency)
	if info == nil {
		s.Closed = true
		return s
	}
	s.Shown = info.Shown
	terms := info.Payments
	if a.of == till.SubjectPayout {
		terms = info.Payouts
	}
	if terms == nil {
		s.Closed = true
		return s
	}
	some := s.narrow(terms)
	flow := cmp.Or(k.Flow, till.FlowPush)
	switch {
	case terms.State == provider.MarketOpen:
		s.Closed = !some
	case terms.State == provider.MarketDelayed && a.of == till.SubjectPayout:
		s.Closed, s.Delayed = !some, true
	default:
		s.Closed = true
	}
	if a.of == till.SubjectPayment {
		s.Closed = s.Closed || terms.Flow != "" && terms.Flow != flow // it would be asked in a way that nobody can approve
		s.Dial = terms.Dial
	}
	return s
}

// told returns what a connection's operator said, nil if it has said nothing.
func (a *toldMarkets) told(connection string) provider.Markets {
	if a.said == nil {
		return nil
	}
	return a.said(connection)
}

// narrow takes the tighter of both bounds. It reports false, and changes nothing, if no amount
// lies within both.
func (s *standing) narrow(t *provider.MarketTerms) bool {
	low, high, step := max(s.Min, t.Min), s.Max, max(s.Step, 1)
	if t.Max > 0 {
		high = min(high, t.Max)
	}
	if t.Step > 1 {
		a, b := step, t.Step
		for b != 0 {
			a, b = b, a%b
		}
		if step/a > till.MaxMinor/t.Step {
			return false
		}
		step = step / a * t.Step
	}
	if low > high || high/step*step < low {
		return false
	}
	s.Min, s.Max, s.Step = low, high, step
	return true
}

// takes reports whether an amount is within the bounds.
func (s *standing) takes(minor int64) bool {
	return minor >= s.Min && minor <= s.Max && minor%s.Step == 0
}

// Told returns what the operator of a payment's connection says to its customer: the name that
// the phone shows, and what to dial if no prompt comes; "" for what is not known.
func (a *toldMarkets) Told(connection, method, country, currency string) (shown, dial string) {
	if k := marketOf(method, country, currency); k != nil {
		s := a.standing(connection, method, k)
		return s.Shown, s.Dial
	}
	return "", ""
}

// Opens returns nil if the operator of a connection that has no substitute takes new requests
// in a market, and CodeMethodUnavailable if it says that it does not. refund says that it is
// asked by its own call for refunds.
func (a *toldMarkets) Opens(connection, method, country, currency string, refund bool) error {
	told, k := a.told(connection), marketOf(method, country, currency)
	if told == nil || k == nil {
		return nil
	}
	closed := false
	if info := told.Find(method, country, currency); refund {
		closed = info == nil || info.Refunds == nil || info.Refunds.State == provider.MarketClosed
	} else {
		s := a.standing(connection, method, k)
		closed = s.Closed
	}
	if !closed {
		return nil
	}
	return &till.Error{Code: till.CodeMethodUnavailable, Detail: closedDetail, RetryAfter: closedRetry}
}

// closedDetail is what a client reads of a market that its operator has closed.
const closedDetail = "the operator takes no such requests just now"

func marketOf(method, country, currency string) *till.Market {
	m, ok := till.MethodOf(method)
	if !ok {
		return nil
	}
	k, ok := m.Market(country, currency)
	if !ok {
		return nil
	}
	return k
}

// fitting returns the connections of a call whose operators take its amount. If none does,
// refusal says what the first would take.
func (p *Processor[R]) fitting(call *CreateCall[R], names []string) (fit []string, refusal error) {
	k := marketOf(call.Method, call.Country, call.Currency)
	if k == nil || p.said == nil {
		return names, nil
	}
	for _, name := range names {
		s := p.standing(name, call.Method, k)
		if s.takes(call.Amount) {
			fit = append(fit, name)
			continue
		}
		if refusal == nil {
			var v request.Validator
			request.CheckBounds(&v, &s.Market, call.Amount)
			refusal = v.Refusal()
		}
	}
	if len(fit) > 0 {
		refusal = nil
	}
	return fit, refusal
}

// closedHere reports whether the operator of a connection has closed the market of a call.
func (p *Processor[R]) closedHere(call *CreateCall[R], name string) bool {
	k := marketOf(call.Method, call.Country, call.Currency)
	if k == nil {
		return false
	}
	s := p.standing(name, call.Method, k)
	return s.Closed
}
