package doctor

import (
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"till/config"
	"till/engine"
	"till/operators"
	"till/provider"
	"till/provider/pawapay"
	"till/store"
)

// The doctor says by which road the payments of each connection are given back, and of which
// nothing is.
func TestTheDoctorSaysByWhichRoad(t *testing.T) {
	t.Parallel()
	sim, err := pawapay.NewSimulator(pawapay.SimConfig{Token: "x"})
	if err != nil {
		t.Fatal(err)
	}
	side := httptest.NewServer(sim)
	t.Cleanup(func() { side.Close(); sim.Close() })
	connection := func(refunds, operations string) string {
		return `
[[connection]]
name = "pawapay"
operator = "pawapay"
base_url = "` + side.URL + `"
` + refunds + `
[connection.pawapay]
api_token_env = "X"
operations = [` + operations + `]
[[connection]]
name = "other"
operator = "pawapay"
base_url = "https://pawapay.example"
[connection.pawapay]
api_token_env = "X"
operations = ["payouts"]
`
	}
	const route = `
[[route]]
method = "mtn_momo"
countries = ["CG", "CM"]
kind = "payment"
connections = ["pawapay"]
`
	const elsewhere = `
[[route]]
method = "mtn_momo"
countries = ["CM"]
kind = "payout"
connections = ["other"]
`
	both, one := `"payments", "payouts"`, `"payments"`
	for _, c := range []struct{ name, text, want string }{
		{"the operator's call", connection("", both) + route, "0 payments are given back by the operator's own call"},
		{"a transfer", connection(`refunds = "payout"`, both) + route, "0 payments are given back by a transfer"},
		{"off", connection(`refunds = "off"`, both) + route, `0 payments are not given back: refunds = "off"`},
		{"no payouts", connection("", one) + route, "1 payments cannot be given back: the connection has no credentials for payouts, and no route of payouts leads anywhere (mtn_momo in CG, mtn_momo in CM)"},
		{"payouts elsewhere", connection("", one) + route + elsewhere, "0 given back by a transfer of another connection, because this one does not pay out there: mtn_momo in CM\n1 not given back, because nothing pays out there: mtn_momo in CG"},
		{"no route", connection("", both), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			db, err := store.Open(t.Context(), store.Config{Path: filepath.Join(t.TempDir(), "till.db")})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			o := operators.Builtin.Options()
			o.Env = func(string) (string, bool) { return "x", true }
			f, err := config.Parse("till.toml", []byte(c.text), o)
			if err != nil {
				t.Fatal(err)
			}
			ops, err := operators.Open(f, nil, func(c *config.Connection) provider.Deps { return provider.Deps{Connection: c.Name} })
			if err != nil {
				t.Fatal(err)
			}
			says := func() string {
				d := &doctor{}
				for _, name := range []string{"other", "pawapay"} {
					if err := d.examineRefunds(t.Context(), db, ops, name); err != nil {
						t.Fatal(err)
					}
				}
				var lines []string
				for _, finding := range d.All {
					if finding.Name != "pawapay refunds" {
						t.Errorf("it says of %s: %s", finding.Name, finding.Detail)
					}
					lines = append(lines, string('0'+rune(finding.Verdict))+" "+finding.Detail)
				}
				return strings.Join(lines, "\n")
			}
			if got := says(); got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
			for _, by := range []engine.RefundBy{engine.RefundByOperator, engine.RefundByPayout} {
				if err := operators.RegisterRefunds(t.Context(), db, map[string]engine.Origin{"pawapay": {Refunds: by}}); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Split(says(), "\n"); !slices.ContainsFunc(got, func(l string) bool { return strings.Contains(l, `before it was "operator"`) }) {
				t.Errorf("of the change it says nothing: %q", got)
			}
		})
	}
}
