package console

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"till/console/shell"
	"till/store"
	"till/store/webhooks"
)

// What gives access asks for fresh proof: keys, links, and where events are sent.
func TestActsThatGiveAccessAskForProof(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	w.hook = w.newEndpoint("http://127.0.0.1:65001/hook")
	w.visitor.ProvedAt = 0
	asked := 0
	for i := range Routes {
		r := &Routes[i]
		gives := r.Method == http.MethodPost && r.For == shell.Staff && (strings.Contains(r.Path, "/keys") || strings.Contains(r.Path, "/people") ||
			strings.HasSuffix(r.Path, "/webhooks") || strings.HasSuffix(r.Path, "/edit") || strings.HasSuffix(r.Path, "/rotate"))
		if !gives {
			continue
		}
		asked++
		a := w.do(request(r.Method, w.address(r, w.client.ID, ""), formOf(r)))
		if a.Code != http.StatusForbidden || !strings.Contains(a.Body.String(), "Show once more that it is you") {
			t.Errorf("%s: %d", r.Path, a.Code)
		}
	}
	if asked < 10 {
		t.Errorf("%d acts", asked)
	}
	for _, path := range []string{"/keys", "/people", "/webhooks", "/webhooks/" + w.hook.String()} {
		if page := w.get(w.path(path)); !strings.Contains(page, `action="/console/me/prove"`) {
			t.Errorf("%s does not ask for it", path)
		}
	}
	err := w.store.View(context.Background(), func(tx *store.Tx) error {
		all, err := webhooks.Endpoints(context.Background(), tx, w.client.ID, 10)
		if len(all) != 1 || all[0].URL != "http://127.0.0.1:65001/hook" {
			t.Errorf("the endpoints are %+v", all)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
