package doctor

import (
	"path/filepath"
	"strings"
	"testing"

	"till"
	"till/account"
	"till/config"
	"till/operators"
	"till/provider"
	"till/store"
)

const gapped = `
[[connection]]
name = "mtn-congo"
operator = "mtnmomo"
base_url = "https://momo.example"
[connection.mtnmomo]
target_environment = "mtncongo"
api_user_env = "X"
api_key_env = "X"
collection_subscription_key_env = "X"

[[connection]]
name = "pawapay"
operator = "pawapay"
base_url = "https://pawapay.example"
[connection.pawapay]
api_token_env = "X"

[[route]]
method = "mtn_momo"
countries = ["CG", "UG"]
connections = ["mtn-congo"]

[[route]]
method = "orange_money"
countries = ["CM", "CD"]
currencies = ["XAF", "CDF"]
connections = ["pawapay"]

[[route]]
method = "moov_money"
connections = ["pawapay"]
`

// The doctor names every country that a live client's method does not lead to,
// every method that leads nowhere, and every route whose connections do not
// serve what it names.
func TestTheDoctorNamesEveryGap(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), store.Config{Path: filepath.Join(t.TempDir(), "till.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	accounts := account.New(s, nil)
	c, _, err := accounts.CreateClient(t.Context(), "Shop", till.Live, "test")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{"mtn_momo", "mpesa", "orange_money", "moov_money"} {
		if err := accounts.EnableMethod(t.Context(), c.ID, code, true, "test"); err != nil {
			t.Fatal(err)
		}
	}
	o := operators.Builtin.Options()
	o.Env = func(string) (string, bool) { return "x", true }
	f, err := config.Parse("till.toml", []byte(gapped), o)
	if err != nil {
		t.Fatal(err)
	}
	ops, err := operators.Open(f, nil, func(*config.Connection) provider.Deps { return provider.Deps{Tokens: provider.MemoryTokens()} })
	if err != nil {
		t.Fatal(err)
	}
	look := func() string {
		d := &doctor{}
		if err := d.examineRoutes(t.Context(), s, ops); err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(findingsText(d), " routes: ", ": ")
	}
	const payments = `warning: 1 live client may use mpesa for payments, and no route leads anywhere: it is not offered
ok: mtn_momo for payments leads nowhere in CM, UG, GH, RW, ZM, CI, BJ, NG, ZA, GN, GW, LR, SS, SZ: 1 live client is not offered it there
ok: orange_money for payments leads nowhere in CD USD, CI, SL, SN, BF: 1 live client is not offered it there
warning: the route in line 19 names mtn_momo in UG, where none of its connections serves payments
`
	if got := look(); got != payments {
		t.Errorf("got\n%swant\n%s", got, payments)
	}
	// With a key that pays out, payouts are looked at too.
	if _, _, err := accounts.CreateKey(t.Context(), c.ID, "payouts", []till.Scope{till.PayoutsWrite}, 0, "test"); err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{"moov_money", "mpesa", "mtn_momo", "orange_money"} {
		want := "warning: 1 live client may use " + code + " for payouts, and no route leads anywhere"
		if got := look(); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
