package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"till"
	"till/operators"
	"till/provider"
)

// otherAccount is another account under the sandbox's name.
type otherAccount struct{ provider.Provider }

func (otherAccount) Fingerprint() string { return "another account" }

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
	register := func(p provider.Provider) error {
		return operators.Register(t.Context(), s.store, map[string]provider.Provider{till.SandboxConnection: p}, nil)
	}
	if err := register(otherAccount{}); err != nil {
		t.Fatalf("a change without open payments: %v", err)
	}
	if err := register(s.sandbox); err != nil {
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
	err = register(otherAccount{})
	if err == nil || !strings.Contains(err.Error(), "1 payments on the old one are still open") {
		t.Errorf("a change with an open payment: got %v, want a refusal", err)
	}
	if err := register(s.sandbox); err != nil {
		t.Errorf("no change: %v", err)
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
