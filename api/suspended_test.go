package api_test

import (
	"net/http"
	"strings"
	"testing"

	"till"
	"till/api"
)

// Every route that needs a key refuses a suspended client, with the reason, and nothing
// of it reaches the operator.
func TestASuspendedClientIsRefusedByEveryRoute(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	w.addKey("test", "all", till.Scopes...)
	id := w.created("test", "00000000-0000-4000-8000-000000000001", "242064000001")
	if err := w.accounts.Suspend(t.Context(), w.clients["test"].ID, "a test"); err != nil {
		t.Fatal(err)
	}
	for _, r := range api.Routes {
		if r.Open {
			continue
		}
		target := "/v1" + strings.NewReplacer("{payment_id}", id, "{payout_id}", id, "{event_id}", id, "{endpoint_id}", id, "{key_id}", "x").Replace(r.Path)
		body := ""
		switch {
		case r.Method == http.MethodPost && r.Path == "/payments":
			body = goodBody("00000000-0000-4000-8000-000000000002")
		case r.Method != http.MethodGet:
			body = "{}"
		}
		if a := w.do(r.Method, target, w.keys["all"], body); a.Code != http.StatusForbidden || !strings.Contains(a.Body.String(), `"client_suspended"`) {
			t.Errorf("%s %s: %d %s", r.Method, r.Path, a.Code, a.Body)
		}
	}
	if err := w.accounts.Resume(t.Context(), w.clients["test"].ID, "a test"); err != nil {
		t.Fatal(err)
	}
	if a := w.do(http.MethodGet, "/v1/payments?limit=10", w.keys["all"], ""); !strings.Contains(a.Body.String(), `"total":1,`) {
		t.Errorf("there are more payments than the one from before: %s", a.Body)
	}
}
