package mtnmomo

import (
	"testing"

	"till"
)

// An environment is one country. Each of those that are documented is a market
// of the catalogue, so that all of MTN can be routed.
func TestServes(t *testing.T) {
	t.Parallel()
	m, _ := till.MethodOf(Method)
	for name, home := range environmentMarkets {
		p := &service{environment: name}
		if _, ok := m.Market(home.country, home.currency); !ok || !p.Serves(Method, home.country, home.currency) {
			t.Errorf("%s is not served in %s with %s", name, home.country, home.currency)
		}
		if p.Serves(Method, home.country, "EUR") || p.Serves(Method, "FR", home.currency) || p.Serves("airtel_money", home.country, home.currency) {
			t.Errorf("%s serves what is not its own", name)
		}
		if simCurrencies[name] != home.currency {
			t.Errorf("%s: the simulator takes %s", name, simCurrencies[name])
		}
	}
	if len(environmentMarkets) != len(simCurrencies)-1 { // but for MTN's sandbox
		t.Errorf("%d environments are known, %d simulated", len(environmentMarkets), len(simCurrencies))
	}
	for _, name := range []string{sandboxEnvironment, "mtnnowhere"} {
		p := &service{environment: name}
		if !p.Serves(Method, "CG", "XAF") || !p.Serves(Method, "UG", "UGX") || p.Serves("airtel_money", "CG", "XAF") {
			t.Errorf("%s does not serve MTN's markets, or others'", name)
		}
	}
}
