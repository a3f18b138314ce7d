package engine

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"till"
	"till/provider"
)

// quiet is a connection that is never called.
type quiet struct{ provider.Provider }

func (quiet) Traits() provider.Traits { return provider.Traits{ApprovalWindow: time.Minute} }

// told returns a worker with two connections, of whose first the operator says something.
func toldWorker(kind till.SubjectKind, said provider.Markets, routes ...string) *Worker {
	connections := map[string]provider.Provider{"a": quiet{}, "b": quiet{}}
	c := Config{Connections: connections, Routes: func(*till.Client, string, string, string) []string { return routes }}
	return &Worker{c: c, kind: kind, health: newHealth(connections, kind), toldMarkets: toldMarkets{kind, func(name string) provider.Markets {
		return map[string]provider.Markets{"a": said}[name]
	}}}
}

func said(t testing.TB, payments, payouts *provider.MarketTerms) provider.Markets {
	t.Helper()
	ms, err := provider.NewMarkets([]provider.MarketInfo{{Method: "mtn_momo", Country: "CG", Currency: "XAF", Shown: "MAPASSA", Payments: payments, Payouts: payouts}})
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

func congoOf(t testing.TB) (*till.Method, till.Market) {
	t.Helper()
	m, _ := till.MethodOf("mtn_momo")
	k, ok := m.Market("CG", "XAF")
	if !ok {
		t.Fatal("there is no market")
	}
	return &till.Method{Code: m.Code, Name: m.Name, CountryScoped: true, Markets: []till.Market{*k}}, *k
}

func TestWhatAnOperatorClosesIsClosed(t *testing.T) {
	t.Parallel()
	m, k := congoOf(t)
	terms := func(state provider.MarketState, flow till.Flow) *provider.MarketTerms {
		return &provider.MarketTerms{State: state, Flow: flow}
	}
	nothing := func(low, high int64) *provider.MarketTerms {
		return &provider.MarketTerms{State: provider.MarketOpen, Min: low, Max: high}
	}
	elsewhere := provider.Markets{{"mtn_momo", "CM", "XAF"}: {Method: "mtn_momo", Country: "CM", Currency: "XAF", Payments: terms(provider.MarketOpen, ""), Payouts: terms(provider.MarketOpen, "")}}
	for _, c := range []struct {
		name             string
		said             provider.Markets
		payments, payout Status
	}{
		{"nothing was said", nil, Operational, Operational},
		{"all is open", said(t, terms(provider.MarketOpen, till.FlowPush), terms(provider.MarketOpen, "")), Operational, Operational},
		{"it does not say how customers approve", said(t, terms(provider.MarketOpen, ""), terms(provider.MarketOpen, "")), Operational, Operational},
		{"closed", said(t, terms(provider.MarketClosed, ""), terms(provider.MarketClosed, "")), Closed, Closed},
		{"delayed: payments are refused, payouts wait", said(t, terms(provider.MarketDelayed, ""), terms(provider.MarketDelayed, "")), Closed, Degraded},
		{"each operation has its own state", said(t, terms(provider.MarketOpen, ""), terms(provider.MarketClosed, "")), Operational, Closed},
		{"the account has payouts only", said(t, nil, terms(provider.MarketOpen, "")), Closed, Operational},
		{"the account lacks the market", elsewhere, Closed, Closed},
		{"customers approve in another way", said(t, terms(provider.MarketOpen, till.FlowCode), terms(provider.MarketOpen, "")), Closed, Operational},
		{"no amount is within both bounds", said(t, nothing(k.Max+1, k.Max+9), nothing(1, k.Min-1)), Closed, Closed},
	} {
		for kind, want := range map[till.SubjectKind]Status{till.SubjectPayment: c.payments, till.SubjectPayout: c.payout} {
			w := toldWorker(kind, c.said, "a")
			o := w.Offer(&till.Client{Mode: till.Live}, m)
			if o.Markets[0].Status != want || o.Status != want || !o.Served[0] {
				t.Errorf("%s: a %s is offered as %s in a method that is %s, want %s", c.name, kind, o.Markets[0].Status, o.Status, want)
			}
			if err := w.Opens("a", m.Code, "CG", "XAF", false); (err != nil) != (want == Closed) || err != nil && till.ErrorCode(err) != till.CodeMethodUnavailable {
				t.Errorf("%s: of a %s without a substitute: %v", c.name, kind, err)
			}
			if b := toldWorker(kind, c.said, "a", "b").Offer(&till.Client{Mode: till.Live}, m); b.Status != Operational || b.Markets[0].Status != Operational {
				t.Errorf("%s: another connection serves a %s, and it is %s", c.name, kind, b.Status)
			}
		}
	}
}

func TestRefundsHaveTermsOfTheirOwn(t *testing.T) {
	t.Parallel()
	open := &provider.MarketTerms{State: provider.MarketOpen}
	for state, closed := range map[provider.MarketState]bool{provider.MarketOpen: false, provider.MarketDelayed: false, provider.MarketClosed: true, "": true} {
		info := provider.MarketInfo{Method: "mtn_momo", Country: "CG", Currency: "XAF", Payments: open, Payouts: open}
		if state != "" {
			info.Refunds = &provider.MarketTerms{State: state}
		}
		w := toldWorker(till.SubjectPayout, provider.Markets{{"mtn_momo", "CG", "XAF"}: &info}, "a")
		if err := w.Opens("a", "mtn_momo", "CG", "XAF", true); (err != nil) != closed {
			t.Errorf("refunds are %q: %v", state, err)
		}
		if err := w.Opens("a", "mtn_momo", "CG", "XAF", false); err != nil {
			t.Errorf("a transfer while refunds are %q: %v", state, err)
		}
	}
}

func TestToldIsWhatTheOperatorShows(t *testing.T) {
	t.Parallel()
	w := toldWorker(till.SubjectPayment, said(t, &provider.MarketTerms{State: provider.MarketOpen, Dial: "*105#"}, nil), "a")
	if shown, dial := w.Told("a", "mtn_momo", "CG", "XAF"); shown != "MAPASSA" || dial != "*105#" {
		t.Errorf("%q, %q", shown, dial)
	}
	for _, at := range [][4]string{{"b", "mtn_momo", "CG", "XAF"}, {"a", "mtn_momo", "CM", "XAF"}, {"a", "none", "CG", "XAF"}, {"", "", "", ""}} {
		if shown, dial := w.Told(at[0], at[1], at[2], at[3]); shown != "" || dial != "" {
			t.Errorf("of %v it is told %q, %q", at, shown, dial)
		}
	}
}

// Whatever an operator says: what is offered lies within our bounds and within its own, and
// nothing is offered that either side refuses.
func TestWhatAnOperatorSaysOnlyNarrows(t *testing.T) {
	t.Parallel()
	m, ours := congoOf(t)
	rapid.Check(t, func(r *rapid.T) {
		k := ours
		k.Step = rapid.SampledFrom([]int64{1, 5, 100}).Draw(r, "our step")
		m.Markets[0] = k
		terms := &provider.MarketTerms{
			State: rapid.SampledFrom([]provider.MarketState{provider.MarketOpen, provider.MarketDelayed, provider.MarketClosed}).Draw(r, "state"),
			Min:   rapid.Int64Range(0, 3_000_000).Draw(r, "min"), Step: rapid.SampledFrom([]int64{0, 1, 10, 100, 1000, 10_000}).Draw(r, "step"),
		}
		if rapid.Bool().Draw(r, "bounded") {
			terms.Max = terms.Min + rapid.Int64Range(0, 3_000_000).Draw(r, "room")
		}
		if terms.Max == 0 {
			terms.Min = 0
		}
		amount := rapid.Int64Range(1, 4_000_000).Draw(r, "amount")
		w := toldWorker(till.SubjectPayment, said(t, terms, nil), "a")
		o := w.Offer(&till.Client{Mode: till.Live}, m)
		is := o.Markets[0]
		if is.Min < k.Min || is.Max > k.Max || is.Step < k.Step || is.Min > is.Max {
			r.Fatalf("%d to %d by %d is offered as %d to %d by %d", k.Min, k.Max, k.Step, is.Min, is.Max, is.Step)
		}
		takes := func(low, high, step int64) bool {
			return amount >= low && (high == 0 || amount <= high) && amount%max(step, 1) == 0
		}
		offered := is.Status != Closed && takes(is.Min, is.Max, is.Step)
		both := takes(k.Min, k.Max, k.Step) && takes(terms.Min, terms.Max, terms.Step) && terms.State == provider.MarketOpen
		if offered != both {
			r.Fatalf("%d is offered: %t; both sides take it: %t (%+v, %+v)", amount, offered, both, terms, is)
		}
	})
}
