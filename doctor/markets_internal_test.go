package doctor

import (
	"strings"
	"testing"
	"time"

	"till"
	"till/config"
	"till/operators"
	"till/provider"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
)

// The doctor says how old it is what operators say, and of a day's silence it warns.
func TestTheDoctorSaysHowOldMarketsAre(t *testing.T) {
	t.Parallel()
	noon := till.TimeOf(time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC))
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		file, err := config.Parse("till.toml", []byte(`
[[connection]]
name = "pawapay"
operator = "pawapay"
base_url = "https://pawapay.example"
[connection.pawapay]
api_token_env = "X"
`), config.Options{Operators: operators.Builtin.Options().Operators, Env: func(string) (string, bool) { return "x", true }})
		if err != nil {
			t.Fatal(err)
		}
		ops, err := operators.Open(file, nil, func(c *config.Connection) provider.Deps { return provider.Deps{Connection: c.Name} })
		if err != nil {
			t.Fatal(err)
		}
		says := func(when string, v Severity, text string) {
			t.Helper()
			d := &doctor{}
			if err := d.examineMarkets(t.Context(), s, ops); err != nil {
				t.Fatal(err)
			}
			if len(d.All) != 1 || d.All[0].Name != "pawapay markets" || d.All[0].Verdict != v || !strings.Contains(d.All[0].Detail, text) {
				t.Errorf("%s: %+v, want %v %q", when, d.All, v, text)
			}
		}
		write := func(f func(tx *store.Tx) error) {
			t.Helper()
			if err := s.Update(t.Context(), f); err != nil {
				t.Fatal(err)
			}
		}
		fail := func(tx *store.Tx) error {
			return admin.SaveMarketsProblem(t.Context(), tx, "pawapay", "account", "no answer")
		}
		says("at first", Fine, "not asked yet")
		write(fail)
		says("it cannot be read", Fine, "no answer")
		clock.Set(noon.Add(25 * time.Hour))
		says("a day later", Risky, "everything is offered: no answer")
		write(func(tx *store.Tx) error { return admin.SaveMarkets(t.Context(), tx, "pawapay", "account", "[]") })
		says("it was read", Fine, "was read at")
		clock.Set(noon.Add(26 * time.Hour))
		write(fail)
		says("it cannot be read again", Fine, "is tried again: no answer")
		clock.Set(noon.Add(50 * time.Hour))
		says("for a day", Risky, "still holds: no answer")
		write(func(tx *store.Tx) error { return admin.SaveMarkets(t.Context(), tx, "pawapay", "account", "[]") })
		clock.Set(noon.Add(75 * time.Hour))
		says("nobody asks", Risky, "does a server run")
	})
}
