package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"till"
	"till/console/shell"
	"till/store"
	"till/store/access"
	"till/store/webhooks"
)

// worksWhileSuspended are the acts of a merchant that neither move money nor give
// access.
var worksWhileSuspended = []string{
	"/people/withdraw", "/people/remove", "/people/end", "/payments/export", "/payouts/export", "/refunds/export", "/note", "/search", "/webhooks/{endpoint}/state", "/webhooks/{endpoint}/delete",
	"/keys/revoke", "/phone", "/sandbox/choose", "/sandbox/answer", "/sandbox/handset", "/checkouts/{id}/cancel", "/links/{id}/state",
}

func staysOpen(r *shell.Route) bool {
	for _, end := range worksWhileSuspended {
		if strings.HasSuffix(r.Path, end) {
			return true
		}
	}
	return false
}

// Every act of the console with a suspended merchant: none that moves money or gives
// access is done, the page says why, and nothing reaches an operator.
func TestASuspendedMerchantActsNowhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	w.hook = w.newEndpoint("http://127.0.0.1:65001/hook")
	desk := w.deskForm("5 000", "06 123 00 01", "242061230001")
	order := url.Values{"key": {till.NewID(w.store.Now()).String()}, "phone": {"242061230001"}, "market": {"mtn_momo.CG.XAF"}}
	if err := w.accounts.Suspend(context.Background(), w.client.ID, "a test"); err != nil {
		t.Fatal(err)
	}
	sends := w.sends.Load()
	for i := range Routes {
		r := &Routes[i]
		if r.For != shell.Staff || r.Method != http.MethodPost || strings.Contains(r.Path, "{id}") {
			continue
		}
		form := formOf(r)
		switch {
		case strings.HasSuffix(r.Path, "/collect"):
			form = desk
		case strings.HasSuffix(r.Path, "/sandbox/order"):
			form = order
		case strings.HasSuffix(r.Path, "/state"):
			form = url.Values{} // off
		}
		for _, role := range []till.Role{till.RoleOwner, till.RoleCashier, till.RoleDeveloper, till.RoleSupport, till.RoleAdmin} {
			w.be(role, "en")
			if w.visitor.May(w.client, r.May) == 0 {
				continue
			}
			a := w.do(request(r.Method, w.address(r, w.client.ID, ""), form))
			said := a.Code == http.StatusForbidden && strings.Contains(a.Body.String(), "This merchant is suspended")
			if said == staysOpen(r) {
				t.Errorf("%s as %s: %d %s", r.Path, role, a.Code, a.Header().Get("Location"))
			}
		}
	}
	w.be(till.RoleOwner, "en")
	for path, form := range map[string]url.Values{ // what an open route must not do
		"/webhooks/" + w.hook.String() + "/state": {"on": {"1"}},
	} {
		if a := w.do(request(http.MethodPost, w.path(path), form)); a.Code != http.StatusForbidden {
			t.Errorf("%s: %d", path, a.Code)
		}
	}
	w.get(w.path("/payments")) // reading goes on
	if page := w.get(w.path("/collect")); !strings.Contains(page, "This merchant is suspended") {
		t.Error("the counter does not say it")
	}
	if got := w.sends.Load(); got != sends {
		t.Errorf("%d requests reached the operator", got-sends)
	}
	err := w.store.View(context.Background(), func(tx *store.Tx) error {
		keys, err := access.Keys(context.Background(), tx, w.client.ID, 100)
		if err != nil {
			return err
		}
		hooks, err := webhooks.Endpoints(context.Background(), tx, w.client.ID, 100)
		if len(keys) != 1 || len(hooks) > 1 {
			t.Errorf("%d keys and %d endpoints, there was one of each", len(keys), len(hooks))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
