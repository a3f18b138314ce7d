package operators

import (
	"context"
	"errors"
	"strings"
	"testing"

	"till"
	"till/config"
	"till/internal/seal"
	"till/provider"
)

// A token is kept under a digest of the settings that it was fetched with:
// those of another account, or another key, are others.
func TestSettingsHaveADigest(t *testing.T) {
	t.Parallel()
	type settings struct{ Account, Key string }
	of := func(operator string, s settings) string {
		return settingsDigest([]byte("a secret"), &config.Connection{Operator: operator, Settings: &s})
	}
	one := of("bank", settings{"A-1", "key-canary"})
	if one != of("bank", settings{"A-1", "key-canary"}) || strings.Contains(one, "canary") || len(one) != 16 {
		t.Errorf("the digest is %q", one)
	}
	for _, other := range []string{of("bank", settings{"A-2", "key-canary"}), of("bank", settings{"A-1", "another"}), of("shop", settings{"A-1", "key-canary"})} {
		if other == one {
			t.Error("two connections share a digest")
		}
	}
	if CallbackURL("x", "a", seal.Single([]byte("a secret for tests"))) == CallbackURL("x", "a", seal.Single([]byte("another secret for tests"))) {
		t.Error("the address does not depend on the secret")
	}
}

// Without a word in the configuration, payments go back by the operator's own call where that is
// known to be bounded by the payment, and by a transfer elsewhere.
func TestRoadsOfRefunds(t *testing.T) {
	t.Parallel()
	const text = `
[[connection]]
name = "momo"
operator = "mtnmomo"
base_url = "https://momo.example"
[connection.mtnmomo]
target_environment = "mtncongo"
api_user_env = "X"
api_key_env = "X"
collection_subscription_key_env = "X"
disbursement_subscription_key_env = "X"
[[connection]]
name = "paid"
operator = "pawapay"
base_url = "https://pawapay.example"
[connection.pawapay]
api_token_env = "X"
operations = ["payments", "payouts"]
[[connection]]
name = "collects"
operator = "pawapay"
base_url = "https://pawapay.example"
[connection.pawapay]
api_token_env = "X"
`
	for _, c := range []struct{ change, momo, paid, collects string }{
		{"", "payout", "operator", "payout"},
		{"operator", "operator", "operator", "operator"},
		{"payout", "payout", "payout", "payout"},
		{"off", "off", "off", "off"},
		{"transfer", "", "", ""},
	} {
		with := text
		if c.change != "" {
			with = strings.ReplaceAll(text, "operator = ", "refunds = \""+c.change+"\"\noperator = ")
		}
		o := Builtin.Options()
		o.Env = func(string) (string, bool) { return "x", true }
		f, err := config.Parse("till.toml", []byte(with), o)
		if c.momo == "" {
			if err == nil || !strings.Contains(err.Error(), "till.toml:4: refunds is one of: operator, payout, off") {
				t.Errorf("%s: %v", c.change, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		ops, err := Open(f, nil, func(*config.Connection) provider.Deps { return provider.Deps{Tokens: provider.MemoryTokens()} })
		if err != nil {
			t.Fatal(err)
		}
		payouts := map[string]provider.Provider{}
		for name, p := range ops.Payouts { // as a server has them
			payouts[name] = newRenewed(p, nil, func(error) {}).asProvider()
		}
		of := ops.Refunds(ops.Payments, payouts).Origins
		for name, want := range map[string]string{"momo": c.momo, "paid": c.paid, "collects": c.collects} {
			if string(of[name].Refunds) != want || of[name].Fingerprint != ops.Payments[name].Fingerprint() {
				t.Errorf("%s with %q: %+v, want %s", name, c.change, of[name], want)
			}
		}
	}
}

// silent is a provider that gives no payment back by naming it.
type silent struct{ provider.Provider }

func (silent) Submit(context.Context, provider.Request) (provider.Result, error) {
	return provider.Result{Outcome: provider.Accepted}, nil
}

func (silent) Check(context.Context, provider.Query) (provider.Result, error) {
	return provider.Result{Outcome: provider.Open}, nil
}

// Such a provider is never asked to: it would send a payout.
func TestAPayoutIsNoRefund(t *testing.T) {
	t.Parallel()
	r := newRenewed(silent{}, nil, func(error) {})
	of := &provider.Original{Amount: till.Money{Minor: 1, Currency: "XAF"}}
	if r.CanRefund(*of, of.Amount) {
		t.Error("it can refund")
	}
	if got, err := r.Submit(t.Context(), provider.Request{Refund: of}); !errors.Is(err, provider.ErrNotSent) || got != (provider.Result{}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := r.Check(t.Context(), provider.Query{Refund: of}); err == nil || got != (provider.Result{}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := r.Submit(t.Context(), provider.Request{}); err != nil || got.Outcome != provider.Accepted {
		t.Errorf("a payout: %+v, %v", got, err)
	}
}
