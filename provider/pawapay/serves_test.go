package pawapay

import (
	"cmp"
	"encoding/csv"
	"strings"
	"testing"

	"till"
)

// Every provider of the table can be routed to: its method is in the catalogue,
// in its country and currency, and takes no amount that the provider cannot
// express.
func TestEveryProviderCanBeRoutedTo(t *testing.T) {
	t.Parallel()
	for _, r := range defaultRoutes {
		m, ok := till.MethodOf(r.Method)
		if !ok {
			t.Errorf("%s: there is no method %s", r.Code, r.Method)
			continue
		}
		k, ok := m.Market(r.Country, r.Currency)
		if !ok {
			t.Errorf("%s: %s is not served in %s with %s", r.Code, r.Method, r.Country, r.Currency)
			continue
		}
		for _, kind := range []*serviceKind{&deposits, &payouts, &refunds} {
			for _, minor := range []int64{k.Step, k.Step * 7} {
				if text, ok := r.amount(till.Money{Minor: minor, Currency: r.Currency}, kind); !ok {
					t.Errorf("%s cannot express %d %s (%q) of a %s", r.Code, minor, r.Currency, text, kind.id)
				}
			}
		}
	}
}

// Our table of pawaPay's providers and the table of methods say the same of how customers
// approve, and name no market twice.
func TestTheTablesAgree(t *testing.T) {
	t.Parallel()
	rows, err := csv.NewReader(strings.NewReader(providersCSV)).ReadAll()
	if err != nil || len(rows)-1 != len(defaultRoutes) || len(defaultRoutes) < 42 {
		t.Fatalf("%d rows, %d routes (%v)", len(rows), len(defaultRoutes), err)
	}
	seen := map[routeKey]string{}
	for i, row := range rows[1:] {
		r := defaultRoutes[i]
		key := routeKey{r.Method, r.Country, r.Currency}
		if seen[key] != "" {
			t.Errorf("%s and %s serve the same market", seen[key], r.Code)
		}
		seen[key] = r.Code
		m, _ := till.MethodOf(r.Method)
		k, ok := m.Market(r.Country, r.Currency)
		if !ok {
			t.Errorf("%s: methods.csv does not have %s in %s with %s", r.Code, r.Method, r.Country, r.Currency)
			continue
		}
		if flow := cmp.Or(till.Flow(row[6]), till.FlowPush); flow != k.Flow {
			t.Errorf("%s: the flow is %s, and %s in methods.csv", r.Code, flow, k.Flow)
		}
	}
}

func TestServes(t *testing.T) {
	t.Parallel()
	s := &service{Operator: &Operator{routes: mergeRoutes([]Route{{Method: "wave", Country: "ML", Currency: "XOF", Code: "WAVE_MLI"}})}, kind: &deposits}
	for want, names := range map[bool][][3]string{
		true:  {{"mtn_momo", "CG", "XAF"}, {"orange_money", "CD", "USD"}, {"wave", "SN", "XOF"}, {"wave", "ML", "XOF"}, {"orange_money", "BF", "XOF"}},
		false: {{"mtn_momo", "CG", "USD"}, {"mtn_momo", "TD", "XAF"}, {"wave", "BF", "XOF"}, {"cash", "CG", "XAF"}},
	} {
		for _, n := range names {
			if s.Serves(n[0], n[1], n[2]) != want {
				t.Errorf("%v is served: %v", n, !want)
			}
		}
	}
}
