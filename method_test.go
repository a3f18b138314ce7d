package till

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// sandboxMarkets is what test clients have; it is promised to integrators.
var sandboxMarkets = map[string]string{
	"mtn_momo":     "CG XAF, CM XAF, UG UGX, GH GHS, RW RWF, ZM ZMW, CI XOF, BJ XOF",
	"airtel_money": "CG XAF, UG UGX, KE KES, ZM ZMW, MG MGA, GA XAF",
	"mpesa":        "KE KES",
}

func TestTheSandboxServesWhatItAlwaysServed(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	for _, m := range methodTable {
		var in []string
		for _, k := range m.Markets {
			if k.Sandbox {
				in = append(in, k.Country+" "+k.Currency)
			}
		}
		if len(in) > 0 {
			got[m.Code] = strings.Join(in, ", ")
		}
		if m.InSandbox() != (len(in) > 0) {
			t.Errorf("%s is in the sandbox: %v", m.Code, m.InSandbox())
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(sandboxMarkets) {
		t.Errorf("got %v\nwant %v", got, sandboxMarkets)
	}
}

func TestEveryMethodIsWhole(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, m := range methodTable {
		if m.Code == "" || m.Name == "" || !m.CountryScoped || len(m.Markets) == 0 || seen[m.Code] {
			t.Errorf("%+v", m)
		}
		seen[m.Code] = true
		for _, k := range m.Markets {
			at := m.Code + " " + k.Country + " " + k.Currency
			if seen[at] {
				t.Errorf("%s stands there twice", at)
			}
			seen[at] = true
			c := country(t, k.Country)
			decimals, _ := CurrencyDecimals(k.Currency)
			if k.Min != 100 || k.Max != 2_000_000*pow10(decimals) || k.Step != 1 && k.Step != pow10(decimals) {
				t.Errorf("%s takes %d to %d in steps of %d", at, k.Min, k.Max, k.Step)
			}
			if ok, hint := m.CheckPhone(c, m.PhoneExample(c)); !ok {
				t.Errorf("%s refuses its own example: %s", at, hint)
			}
		}
	}
}

func TestMethodsAreMerged(t *testing.T) {
	t.Parallel()
	all := MergeMethods(methodTable, []*Method{
		{Code: "sama_money", Name: "Sama Money", Markets: []Market{{Country: "ML", Currency: "XOF"}}},
		{Code: "wave", Markets: []Market{{Country: "SN", Currency: "XOF", Max: 9}}},
		{Code: "mtn_momo", Markets: []Market{{Country: "CG", Currency: "XAF", Max: 7}, {Country: "CG", Currency: "USD"}}},
		{Code: "mtn_momo", Name: "MoMo"},
	})
	if len(all) != len(methodTable)+1 || all[len(all)-1].Code != "sama_money" {
		t.Fatalf("%d methods", len(all))
	}
	i := slices.IndexFunc(all, func(m *Method) bool { return m.Code == "mtn_momo" })
	if k, ok := all[i].Market("CG", "XAF"); !ok || k.Max != 7 || all[i].Name != "MoMo" || len(all[i].Markets) != len(methodTable[i].Markets)+1 {
		t.Errorf("merged: %+v", all[i])
	}
	if wave := all[len(all)-2]; wave.Code != "wave" || wave.Markets[1].Max != 9 || wave.Markets[1].Flow != FlowRedirect {
		t.Errorf("how Wave's customers approve was changed: %+v", wave)
	}
	if k, _ := methodTable[i].Market("CG", "XAF"); k.Max == 7 || methodTable[i].Name != "MTN MoMo" {
		t.Error("the table itself was changed")
	}
}

// A number that begins as another operator's is refused with the method that it
// belongs to, where that is known; elsewhere nothing is refused for its prefix.
func TestANumberOfAnotherOperatorIsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ method, country, phone, likely string }{
		{"mtn_momo", "CG", "242061234567", ""},
		{"mtn_momo", "CG", "242051234567", "airtel_money"},
		{"mtn_momo", "CG", "242041234567", "airtel_money"},
		{"airtel_money", "CG", "242051234567", ""},
		{"airtel_money", "CG", "242041234567", ""},
		{"airtel_money", "CG", "242061234567", "mtn_momo"},
		{"mtn_momo", "CG", "242011234567", ""}, // of an operator without a wallet here
		{"mpesa", "CG", "242061234567", ""},    // not served there: nothing is known of it
		// Numbers are ported, or their ranges are not certain.
		{"mtn_momo", "BJ", "2290195123456", ""}, {"mtn_momo", "CM", "237691234567", ""}, {"mtn_momo", "GH", "233261234567", ""},
		{"airtel_money", "KE", "254712123456", ""}, {"mtn_momo", "NG", "2348021234567", ""}, {"mtn_momo", "ZA", "27821234567", ""},
		{"mtn_momo", "UG", "256701234567", ""},
	} {
		m, ok := MethodOf(tt.method)
		if !ok {
			t.Fatal(tt.method)
		}
		ok, hint := m.CheckPhone(country(t, tt.country), tt.phone)
		if ok != (tt.likely == "") || ok != (hint == "") || !strings.Contains(hint, tt.likely) || strings.Contains(hint, tt.phone[:7]) {
			t.Errorf("%s for %s in %s: %v, %q", tt.phone, tt.method, tt.country, ok, hint)
		}
	}
	m, _ := MethodOf("airtel_money")
	c := country(t, "CG")
	if got := m.PhoneExample(c); got != "242051234567" {
		t.Errorf("the example is %s", got)
	}
	if _, hint := m.CheckPhone(c, "06"); hint != "digits only: 242 followed by 9 digits, for example 242051234567" {
		t.Errorf("the hint is %q", hint)
	}
}

func TestCheckingAMethodsPhoneDoesNotAllocate(t *testing.T) {
	if poolsForget() {
		t.Skip("the race detector makes regexp allocate")
	}
	c := country(t, "CG")
	m, _ := MethodOf("mtn_momo")
	if n := testing.AllocsPerRun(100, func() {
		if ok, _ := m.CheckPhone(c, "242061234567"); !ok {
			t.Error("a good phone is refused")
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
