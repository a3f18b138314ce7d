package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"till"
	"till/api"
)

// Every route refuses a key that has every scope but the route's own, and
// nobody is served without a key but where the table says so.
func TestEveryRouteAsksForItsScope(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	id := w.created("test", "00000000-0000-4000-8000-000000000001", "242064000001")
	lacking := map[till.Scope]string{} // keys that have all scopes but one
	for _, s := range till.Scopes {
		name := "all but " + string(s)
		w.addKey("test", name, slices.DeleteFunc(slices.Clone(till.Scopes), func(have till.Scope) bool { return have == s })...)
		lacking[s] = w.keys[name]
	}
	w.addKey("test", "wallets alone", till.WalletsRead)
	another := strings.Split(w.keys["reader"], "_")[2]
	for _, r := range api.Routes {
		name := r.Method + " " + r.Path
		target := "/v1" + strings.NewReplacer("{payment_id}", id, "{payout_id}", id, "{event_id}", id, "{endpoint_id}", id, "{key_id}", another,
			"{connection}", "sandbox", "{token}", "x").Replace(r.Path)
		body := ""
		if r.Method != http.MethodGet {
			body = "{}"
		}
		if a := w.do(r.Method, target, "", body); !r.Open && a.Code != http.StatusUnauthorized {
			t.Errorf("%s without a key: %d %s", name, a.Code, a.Body)
		}
		key := lacking[r.Scope]
		switch {
		case r.Open:
			continue
		case len(r.Scopes) > 0: // one of several
			key = w.keys["wallets alone"]
		case r.Scope == "":
			if a := w.do(r.Method, target, w.keys["wallets alone"], goodBodies[name]); a.Code != http.StatusOK {
				t.Errorf("%s is for any key: %d %s", name, a.Code, a.Body)
			}
			continue
		}
		if a := w.do(r.Method, target, key, body); a.Code != http.StatusForbidden || !strings.Contains(a.Body.String(), `"insufficient_scope"`) {
			t.Errorf("%s without its scope: %d %s", name, a.Code, a.Body)
		}
		if r.TestOnly {
			if a := w.do(r.Method, target, w.keys["live"], body); a.Code != http.StatusNotFound {
				t.Errorf("%s by a live client: %d %s", name, a.Code, a.Body)
			}
		}
	}
}

// What the service decides by itself cannot be decided by a body that says it:
// no status, fee, owner, secret or history of a caller's choosing. The client is live, so
// that the bodies are taken.
func TestABodyCannotSayWhatTheServiceDecides(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	w.addKey("live", "all", till.Scopes...)
	if err := w.accounts.EnableMethod(t.Context(), w.clients["live"].ID, "mtn_momo", true, "a test"); err != nil {
		t.Fatal(err)
	}
	forged := map[string]any{
		"id": "00000000-0000-7000-8000-000000000001", "client_id": w.clients["other"].ID.String(), "status": "success", "fee": "-5", "net": "1", "provider_reference": "FORGED",
		"created_at": "2001-01-01T00:00:00Z", "expires_at": "2001-01-01T00:00:00Z", "late_success_at": "2001-01-01T00:00:00Z", "reversed_at": "2001-01-01T00:00:00Z",
		"resolution": map[string]any{"state": "confirmed"}, "secret": "whsec_Zm9yZ2VkZm9yZ2VkZm9yZ2VkZm9yZ2Vk", "made_by": "forged", "replaces": "forged", "mode": "test",
		"owed": "0", "connection": "forged", "retryable": true, "failure_reason": "wrong_pin",
	}
	for path, good := range map[string]string{
		"/payments":          goodBody("00000000-0000-4000-8000-000000000007"),
		"/webhook-endpoints": `{"url": "https://93.184.216.34/hooks", "events": ["payment.success"]}`,
		"/api-keys":          `{"name": "another", "scopes": ["payments:read"]}`,
	} {
		var body map[string]any
		if err := json.Unmarshal([]byte(good), &body); err != nil {
			t.Fatal(err)
		}
		said := map[string]any{}
		for name, value := range forged {
			if name == "expires_at" && path == "/api-keys" || name == "secret" && path == "/webhook-endpoints" {
				continue // a key's end and an endpoint's secret are their maker's to choose
			}
			body[name], said[name] = value, value
		}
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		a := w.do(http.MethodPost, "/v1"+path, w.keys["all"], string(text))
		var made map[string]any
		if err := json.Unmarshal(a.Body.Bytes(), &made); err != nil || a.Code/100 != 2 {
			t.Fatalf("POST %s: %d %s", path, a.Code, a.Body)
		}
		for name, value := range said {
			got, _ := json.Marshal(made[name])
			want, _ := json.Marshal(value)
			if string(got) == string(want) {
				t.Errorf("POST %s took %s from the body: %s", path, name, got)
			}
		}
	}
}
