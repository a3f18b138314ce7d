package operators

import (
	"strings"
	"testing"

	"till/config"
	"till/internal/seal"
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
