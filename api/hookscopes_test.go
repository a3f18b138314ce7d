package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"till"
	"till/store/storetest"
)

// hookScopes is a key that may manage webhooks and read nothing, trying to
// have payments and payouts sent to it.
type hookScopes struct {
	t *testing.T
	w *world
}

// try sends a request and returns its status and its body.
func (x hookScopes) try(key, method, path, body string) (int, string) {
	a := x.w.do(method, "/v1"+path, x.w.keys[key], body)
	return a.Code, a.Body.String()
}

// refused wants a 403 that names the scopes that are missing.
func (x hookScopes) refused(method, path, body string, scopes ...string) {
	x.t.Helper()
	code, text := x.try("hooks", method, path, body)
	missing := slices.ContainsFunc(scopes, func(s string) bool { return !strings.Contains(text, s) })
	if code != http.StatusForbidden || !strings.Contains(text, `"insufficient_scope"`) || missing {
		x.t.Errorf("%s %s %s: %d %s, want 403 for %v", method, path, body, code, text, scopes)
	}
}

type hookAnswer struct {
	ID     string
	Events []string
}

// register makes an endpoint.
func (x hookScopes) register(key, events string) (e hookAnswer) {
	x.t.Helper()
	code, text := x.try(key, http.MethodPost, "/webhook-endpoints", `{"url":"https://93.184.216.34/hooks","events":`+events+`}`)
	if err := json.Unmarshal([]byte(text), &e); code != http.StatusCreated || err != nil {
		x.t.Fatalf("register %s: %d %s", events, code, text)
	}
	return e
}

// deliveries returns the kinds of events that the list of an endpoint shows.
func (x hookScopes) deliveries(key, id, query string) (kinds []string) {
	x.t.Helper()
	code, text := x.try(key, http.MethodGet, "/webhook-endpoints/"+id+"/deliveries"+query, "")
	var page struct {
		Items []struct{ Event struct{ Type string } }
	}
	if err := json.Unmarshal([]byte(text), &page); code != http.StatusOK || err != nil {
		x.t.Fatalf("deliveries: %d %s", code, text)
	}
	for _, i := range page.Items {
		kinds = append(kinds, i.Event.Type)
	}
	return kinds
}

// A key with webhooks:manage alone read every payment and payout of its
// client: it registered "*", or turned an endpoint to its own address, and
// replayed the log.
func TestAKeyIsSentOnlyWhatItMayRead(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{database: e.Config(t)})
			defer w.stop()
			x := hookScopes{t, w}
			w.addKey("test", "half", till.WebhooksManage, till.PaymentsRead)
			ours := x.register("test", `["*"]`)
			if !slices.Equal(ours.Events, []string{"*"}) {
				t.Errorf("a default key's * became %v", ours.Events)
			}
			w.created("test", "00000000-0000-4000-8000-000000000001", "242064000000")
			x.makesNoEndpoint()
			x.turnsNoEndpoint("/webhook-endpoints/" + ours.ID)
			x.sendsNothing("/webhook-endpoints/"+ours.ID, w.firstEvent(w.keys["test"]))
			x.seesNothing(ours.ID)
		})
	}
}

func (x hookScopes) makesNoEndpoint() {
	const body = `{"url":"https://93.184.216.34/hooks","events":`
	x.refused(http.MethodPost, "/webhook-endpoints", body+`["payment.success"]}`, "payments:read")
	x.refused(http.MethodPost, "/webhook-endpoints", body+`["payout.failed","webhook_endpoint.disabled"]}`, "payouts:read")
	x.refused(http.MethodPost, "/webhook-endpoints", body+`["payout.failed","payment.late_success"]}`, "payments:read", "payouts:read")
	theirs := x.register("hooks", `["*"]`)
	if !slices.Equal(theirs.Events, []string{"webhook_endpoint.disabled"}) {
		x.t.Errorf("* of a key that reads nothing is %v", theirs.Events)
	}
	x.refused(http.MethodPatch, "/webhook-endpoints/"+theirs.ID, `{"events":["payment.success"]}`, "payments:read")
	if code, text := x.try("hooks", http.MethodPatch, "/webhook-endpoints/"+theirs.ID, `{"events":["*"]}`); code != http.StatusOK || strings.Contains(text, `"*"`) {
		x.t.Errorf("patch to *: %d %s", code, text)
	}
	for _, k := range x.register("half", `["*"]`).Events {
		if s := till.EventKind(k).Scope(); s != till.PaymentsRead && s != till.WebhooksManage || k == till.AllEvents {
			x.t.Errorf("* of a key that reads payments has %s", k)
		}
	}
}

func (x hookScopes) turnsNoEndpoint(path string) {
	x.refused(http.MethodPatch, path, `{"url":"https://93.184.216.34/mine"}`, "payments:read", "payouts:read")
	x.refused(http.MethodPatch, path, `{"events":["webhook_endpoint.disabled"]}`, "payments:read", "payouts:read")
	for _, body := range []string{`{"description":"theirs"}`, `{"enabled":false}`} {
		if code, text := x.try("hooks", http.MethodPatch, path, body); code != http.StatusOK {
			x.t.Errorf("%s: %d %s", body, code, text)
		}
	}
	x.refused(http.MethodPatch, path, `{"enabled":true}`, "payments:read")
	if code, text := x.try("test", http.MethodPatch, path, `{"enabled":true}`); code != http.StatusOK {
		x.t.Errorf("enable: %d %s", code, text)
	}
}

func (x hookScopes) sendsNothing(path, event string) {
	x.refused(http.MethodPost, path+"/replay", `{"from_sequence":1}`, "payments:read", "payouts:read")
	x.refused(http.MethodPost, path+"/replay", `{"failed":true}`, "payments:read")
	x.refused(http.MethodPost, "/events/"+event+"/redeliver", `{}`, "payments:read")
	for _, body := range []string{`{"from_sequence":1}`, `{"failed":true}`} {
		if code, text := x.try("test", http.MethodPost, path+"/replay", body); code != http.StatusAccepted {
			x.t.Errorf("replay %s by a default key: %d %s", body, code, text)
		}
	}
}

func (x hookScopes) seesNothing(id string) {
	for _, query := range []string{"", "?status=pending", "?status=disabled", "?status=exhausted"} {
		if kinds := x.deliveries("hooks", id, query); kinds != nil {
			x.t.Errorf("deliveries%s show %v", query, kinds)
		}
	}
	if kinds := x.deliveries("half", id, ""); !slices.Contains(kinds, "payment.pending") {
		x.t.Errorf("deliveries show a key that reads payments only %v", kinds)
	}
}
