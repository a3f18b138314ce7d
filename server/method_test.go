package server_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"till"
	"till/config"
	"till/operators"
	"till/provider"
	"till/server"
)

const vouchers = `
[[method]]
code = "test_vouchers"
name = "Vouchers"
[[method.country]]
code = "CG"
currency = "XAF"
max_amount = 6000
`

// A method is data, not code: the configuration adds one and routes it, and a
// live client pays by it. A test client does not see it.
func TestAMethodOfTheConfigurationIsServed(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	c.LiveDemoFile = filepath.Join(filepath.Dir(c.DemoFile), "live.json")
	if err := withBank(t, &c, vouchers+strings.Replace(oneBank, `"mtn_momo"`, `"test_vouchers"`, 1)); err != nil {
		t.Fatal(err)
	}
	r := start(t, c)
	status, p, err := r.doAs(r.LiveDemo(), http.MethodPost, "/payments", strings.Replace(order("242051234567"), "mtn_momo", "test_vouchers", 1))
	if err != nil || status != http.StatusAccepted {
		t.Fatalf("%d %v %v", status, p, err)
	}
	for who, want := range map[*server.Demo]int{r.LiveDemo(): 1, r.Demo(): 3} {
		_, list, err := r.doAs(who, http.MethodGet, "/payment-methods", "")
		items, _ := list["items"].([]any)
		if err != nil || len(items) != want || strings.Contains(fmt.Sprint(items), "max_amount:6000") != (want == 1) {
			t.Errorf("%s is offered %v, %v", who.ClientID, list, err)
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	verify(t, c.Database)
}

// A route to a connection that serves nothing of it is refused where it stands,
// and one that serves a part of it is taken for that part.
func TestARouteLeadsOnlyWhereItsConnectionServes(t *testing.T) {
	t.Parallel()
	open := func(routes string) (*operators.Operators, error) {
		o := operators.Builtin.Options()
		o.Env = func(string) (string, bool) { return "x", true }
		f, err := config.Parse("till.toml", []byte(mtnUganda+routes), o)
		if err != nil {
			t.Fatal(err)
		}
		return operators.Open(f, nil, func(*config.Connection) provider.Deps { return provider.Deps{Tokens: provider.MemoryTokens()} })
	}
	for _, route := range []string{
		"method = \"mtn_momo\"\ncountries = [\"CG\"]", "method = \"airtel_money\"\ncountries = [\"UG\"]", "method = \"mtn_momo\"\nkind = \"payout\"",
	} {
		if _, err := open("[[route]]\n" + route + "\nconnections = [\"uganda\"]\n"); err == nil ||
			!strings.Contains(err.Error(), "till.toml:11: the connection uganda does not serve what this route is for") {
			t.Errorf("%q gives %v", route, err)
		}
	}
	ops, err := open("[[route]]\nmethod = \"mtn_momo\"\nconnections = [\"uganda\"]\n")
	if err != nil {
		t.Fatal(err)
	}
	m, _ := till.MethodOf("mtn_momo")
	for _, k := range m.Markets {
		if got := ops.HasRoute(till.ID{1}, till.SubjectPayment, m.Code, k); got != (k.Country == "UG") {
			t.Errorf("a payment in %s leads somewhere: %v", k.Country, got)
		}
	}
}

const mtnUganda = `[[connection]]
name = "uganda"
operator = "mtnmomo"
base_url = "https://momo.example"
[connection.mtnmomo]
target_environment = "mtnuganda"
api_user_env = "X"
api_key_env = "X"
collection_subscription_key_env = "X"

`
