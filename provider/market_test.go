package provider_test

import (
	"strings"
	"testing"

	"till"
	"till/provider"
)

func congo(change func(m *provider.MarketInfo)) []provider.MarketInfo {
	m := provider.MarketInfo{Method: "mtn_momo", Country: "CG", Currency: "XAF", Shown: "MAPASSA",
		Payments: &provider.MarketTerms{State: provider.MarketOpen, Min: 100, Max: 500_000, Step: 1, Flow: till.FlowPush, Dial: "*105#"}}
	change(&m)
	return []provider.MarketInfo{m}
}

// What an operator says is used as a whole, or not at all.
func TestWhatAnOperatorSaysIsCheckedAsAWhole(t *testing.T) {
	t.Parallel()
	good := congo(func(*provider.MarketInfo) {})
	ms, err := provider.NewMarkets(good)
	if err != nil {
		t.Fatal(err)
	}
	if m := ms.Find("mtn_momo", "CG", "XAF"); m == nil || m.Payments.Max != 500_000 || ms.Find("mtn_momo", "CG", "USD") != nil {
		t.Errorf("found %+v", m)
	}
	if _, err := provider.NewMarkets(append(congo(func(m *provider.MarketInfo) { m.Currency = "USD" }), good...)); err != nil {
		t.Errorf("two markets: %v", err)
	}
	many := make([]provider.MarketInfo, 100_000)
	for name, all := range map[string][]provider.MarketInfo{
		"nothing":               nil,
		"too much":              many,
		"the same twice":        append(congo(func(*provider.MarketInfo) {}), good...),
		"a negative minimum":    congo(func(m *provider.MarketInfo) { m.Payments.Min = -1 }),
		"a negative maximum":    congo(func(m *provider.MarketInfo) { m.Payments.Max = -1 }),
		"a minimum above":       congo(func(m *provider.MarketInfo) { m.Payments.Min = 500_001 }),
		"an endless maximum":    congo(func(m *provider.MarketInfo) { m.Payments.Max = till.MaxMinor + 1 }),
		"a currency of no land": congo(func(m *provider.MarketInfo) { m.Currency = "ZZZ" }),
		"no method":             congo(func(m *provider.MarketInfo) { m.Method = "" }),
		"a country in full":     congo(func(m *provider.MarketInfo) { m.Country = "COG" }),
		"a state":               congo(func(m *provider.MarketInfo) { m.Payments.State = "perhaps" }),
		"no state":              congo(func(m *provider.MarketInfo) { m.Payments.State = "" }),
		"a flow":                congo(func(m *provider.MarketInfo) { m.Payments.Flow = "carrier pigeon" }),
		"a step":                congo(func(m *provider.MarketInfo) { m.Payments.Step = 1 << 40 }),
		"a negative step":       congo(func(m *provider.MarketInfo) { m.Payments.Step = -1 }),
		"a name with a newline": congo(func(m *provider.MarketInfo) { m.Shown = "A\nB" }),
		"a name that turns":     congo(func(m *provider.MarketInfo) { m.Shown = "A\u202eB" }),
		"a long name":           congo(func(m *provider.MarketInfo) { m.Shown = strings.Repeat("A", 61) }),
		"something to dial":     congo(func(m *provider.MarketInfo) { m.Payments.Dial = "tel:112" }),
		"a transfer to dial":    congo(func(m *provider.MarketInfo) { m.Payments.Dial = "*105*1*061234567*500000#" }),
		"wrong terms of payouts": congo(func(m *provider.MarketInfo) {
			m.Payouts = &provider.MarketTerms{State: provider.MarketOpen, Min: 2, Max: 1}
		}),
		"wrong terms of refunds": congo(func(m *provider.MarketInfo) { m.Refunds = &provider.MarketTerms{State: "x"} }),
	} {
		if ms, err := provider.NewMarkets(all); err == nil || ms != nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestIsDial(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"*105#": true, "#120#": true, "*144*4*6#": true, "*182*7*1#": true,
		"": false, "*#": false, "#": false, "105": false, "*105": false, "105#": false, "*10a5#": false, "*105*61234#": false,
		"*105*0612*3456*7000*0000#": false, "* 105#": false, "*105#\n": false,
	} {
		if provider.IsDial(s) != want {
			t.Errorf("%q is dialled: %t", s, !want)
		}
	}
}
