package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"till"
	"till/config"
	"till/internal/seal"
)

func TestAConnectionKeepsItsAccountWhilePaymentsAreOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := New(t.Context(), Config{
		Database: filepath.Join(dir, "till.db"), DemoFile: filepath.Join(dir, "demo.json"), Listen: "127.0.0.1:0", Role: RoleAPI,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := register(t.Context(), s.store, till.SandboxConnection, till.SubjectPayment, "another account"); err != nil {
		t.Fatalf("a change without open payments: %v", err)
	}
	if err := register(t.Context(), s.store, till.SandboxConnection, till.SubjectPayment, s.sandbox.Fingerprint()); err != nil {
		t.Fatal(err)
	}

	body := fmt.Sprintf(`{"method": "mtn_momo", "country": "CG", "amount": {"value": "5000", "currency": "XAF"},
		"customer": {"phone": "242061234567"}, "idempotency_key": %q}`, till.NewID(s.store.Now()))
	r := httptest.NewRequest(http.MethodPost, "/v1/payments", strings.NewReader(body))
	r.Header.Set("X-Api-Key", s.demo.APIKey)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	if w.Code != http.StatusAccepted {
		t.Fatalf("create: %d %s", w.Code, w.Body)
	}
	err = register(t.Context(), s.store, till.SandboxConnection, till.SubjectPayment, "another account")
	if err == nil || !strings.Contains(err.Error(), "1 payments on the old one are still open") {
		t.Errorf("a change with an open payment: got %v, want a refusal", err)
	}
	if err := register(t.Context(), s.store, till.SandboxConnection, till.SubjectPayment, s.sandbox.Fingerprint()); err != nil {
		t.Errorf("no change: %v", err)
	}
}

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

func TestTheSandboxCallsNobodyElse(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"http://127.0.0.1:1/", "https://example.com/v1/payments", ""} {
		if err := (&Server{}).postCallback(t.Context(), url, nil); err == nil {
			t.Errorf("%q was called", url)
		}
	}
}
