package checkout_test

import (
	"strings"
	"testing"

	"till/checkout"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	letters := map[byte]int{}
	for range 2000 {
		token := checkout.NewToken()
		if got, ok := checkout.ParseToken(token); !ok || got != token || len(token) != 20 || seen[token] {
			t.Fatalf("%q is read as %q, %v", token, got, ok)
		}
		if got, ok := checkout.ParseToken(strings.ToUpper(token)); !ok || got != token {
			t.Fatalf("%q in capitals is read as %q", token, got)
		}
		seen[token] = true
		for i := range len(token) {
			letters[token[i]]++
		}
	}
	if len(letters) != 32 {
		t.Errorf("tokens have %d characters, want 32", len(letters))
	}
	for c, n := range letters { // 1250 each; a letter out of ten times this deviation would be no chance
		if n < 900 || n > 1600 {
			t.Errorf("%q is drawn %d times of 40 000", c, n)
		}
	}
	if got, ok := checkout.ParseToken("OoIiLl0123456789abcd"); !ok || got != "0011110123456789abcd" {
		t.Errorf("read as %q, %v", got, ok)
	}
	for _, bad := range []string{"", "0123456789abcdefghj", "0123456789abcdefghjkm", "u123456789abcdefghjk", "0123456789abcdefghj-", "0123456789abcdefghjé", "0123456789 abcdefghj"} {
		if got, ok := checkout.ParseToken(bad); ok {
			t.Errorf("%q is read as %q", bad, got)
		}
	}
}
