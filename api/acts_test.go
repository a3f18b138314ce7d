package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"till"
	"till/api"
	"till/books"
	"till/provider"
	"till/store"
	"till/store/storetest"
)

// noActs are the calls that change something and are no acts of a person on
// an account, each with the reason.
var noActs = map[string]string{
	"POST /payments":                       "the payment itself and its events tell of it; its money has audit rows",
	"POST /checkouts":                      "asks nobody for money; what its page asks for is a payment",
	"POST /payment-methods/predict":        "changes nothing",
	"POST /sandbox/prompts/{payment_id}":   "plays the customer, not the client",
	"POST /callbacks/{connection}/{token}": "the operator's word, which is only a hint",
	"PUT /callbacks/{connection}/{token}":  "the same",
}

// I14: every call by which a client changes its account, or sends money out,
// leaves an audit row that names the key and the request. A new route fails here until somebody
// decides.
func TestEveryActLeavesAnAuditRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	client, key := w.clients["other"], w.keys["other_manager"]
	id := func(body string) string {
		var v struct{ ID string }
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatal(err)
		}
		return v.ID
	}
	if a := w.do(http.MethodPost, "/v1/payments", key, goodBody("00000000-0000-4000-8000-000000000001")); a.Code != http.StatusAccepted {
		t.Fatalf("create: %d %s", a.Code, a.Body)
	}
	event := w.firstEvent(key)
	c := storetest.NewCollector(t, w.store)
	storetest.Apply(t, c, w.store, storetest.NewPayment(t, c, client, storetest.Body{}), storetest.Succeeded) // money to pay out
	given := storetest.Apply(t, c, w.store, storetest.NewPayment(t, c, client, storetest.Body{Phone: "242061230035"}), provider.Result{Outcome: provider.Success, Receipt: "R-35"})
	var endpoint, made, out string
	acts := map[string]bool{}
	for _, act := range []struct {
		route, target, body string
		keep                *string
	}{
		{"POST /api-keys", "/api-keys", `{"name":"new"}`, &made},
		{"POST /api-keys/{key_id}/rotate", "/api-keys/{made}/rotate", `{}`, &made},
		{"DELETE /api-keys/{key_id}", "/api-keys/{made}", "", nil},
		{"POST /webhook-endpoints", "/webhook-endpoints", `{"url":"https://8.8.8.8/hook","events":["*"]}`, &endpoint},
		{"PATCH /webhook-endpoints/{endpoint_id}", "/webhook-endpoints/{endpoint}", `{"description":"ours"}`, nil},
		{"POST /webhook-endpoints/{endpoint_id}/rotate-secret", "/webhook-endpoints/{endpoint}/rotate-secret", `{}`, nil},
		{"POST /webhook-endpoints/{endpoint_id}/test", "/webhook-endpoints/{endpoint}/test", "", nil},
		{"POST /webhook-endpoints/{endpoint_id}/replay", "/webhook-endpoints/{endpoint}/replay", `{"from_sequence":1}`, nil},
		{"POST /events/{event_id}/redeliver", "/events/" + event + "/redeliver", `{}`, nil},
		{"POST /sandbox/webhook-endpoints/{endpoint_id}/disable", "/sandbox/webhook-endpoints/{endpoint}/disable", "", nil},
		{"DELETE /webhook-endpoints/{endpoint_id}", "/webhook-endpoints/{endpoint}", "", nil},
		{"POST /payouts", "/payouts", strings.NewReplacer("customer", "recipient", "242064000001", "242064000020").Replace(goodBody("00000000-0000-4000-8000-000000000002")), &out},
		{"POST /payouts/{payout_id}/cancel", "/payouts/{out}/cancel", `{}`, nil},
		{"POST /refunds", "/refunds", `{"payment_id":"` + given.ID.String() + `","idempotency_key":"00000000-0000-4000-8000-000000000003"}`, &out},
		{"POST /refunds/{refund_id}/cancel", "/refunds/{out}/cancel", `{}`, nil},
		{"POST /links", "/links", linkBody, &out},
		{"PATCH /links/{link_id}", "/links/{out}", `{"active":false}`, nil},
		{"POST /checkouts/{checkout_id}/cancel", "/checkouts/" + w.checkout(key) + "/cancel", `{}`, nil},
	} {
		acts[act.route] = true
		before := len(w.acts(client.ID))
		method, _, _ := strings.Cut(act.route, " ")
		target := strings.NewReplacer("{made}", made, "{endpoint}", endpoint, "{out}", out).Replace(act.target)
		a := w.do(method, "/v1"+target, key, act.body)
		if a.Code >= 300 {
			t.Fatalf("%s: %d %s", act.route, a.Code, a.Body)
		}
		if act.keep != nil {
			*act.keep = id(a.Body.String())
		}
		rows := w.acts(client.ID)
		if len(rows) != before+1 {
			t.Errorf("%s left %d audit rows", act.route, len(rows)-before)
			continue
		}
		last := rows[len(rows)-1]
		if last.Actor != "api:"+strings.Split(key, "_")[2] || last.Cause != "request "+a.Header().Get("X-Request-Id")+" from 192.0.2.1" { // where httptest calls from
			t.Errorf("%s left %+v", act.route, last)
		}
	}
	for _, r := range api.Routes {
		if name := r.Method + " " + r.Path; r.Method != http.MethodGet && !acts[name] && noActs[name] == "" {
			t.Errorf("%s changes something: is it an act of a person? Then it needs an audit row", name)
		}
	}
}

// Who reads the audit log sees what a key could do and where events went, before
// and after, and no credential that an address holds.
func TestAuditRowsHaveOldAndNewScopesAndURLs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	client, key := w.clients["other"], w.keys["other_manager"]
	do := func(method, target, body string) (id string, row *store.AuditRow) {
		t.Helper()
		a := w.do(method, "/v1"+target, key, body)
		if a.Code >= 300 {
			t.Fatalf("%s %s: %d %s", method, target, a.Code, a.Body)
		}
		var v struct{ ID string }
		json.Unmarshal(a.Body.Bytes(), &v)
		rows := w.audit(client.ID)
		return v.ID, rows[len(rows)-1]
	}
	want := func(row *store.AuditRow, action, detail string) {
		t.Helper()
		if row.Action != action || row.Detail != detail {
			t.Errorf("got %s %q\nwant %s %q", row.Action, row.Detail, action, detail)
		}
	}
	made, row := do("POST", "/api-keys", `{"scopes":["payouts:read","payments:read"],"expires_at":"2099-01-01T00:00:00Z"}`)
	want(row, "key.create", "key "+made+", scopes payments:read payouts:read, expires 2099-01-01T00:00:00.000000Z")
	next, row := do("POST", "/api-keys/"+made+"/rotate", `{"overlap_seconds":60}`)
	want(row, "key.rotate", "key "+made+", scopes payments:read payouts:read, expires 2099-01-01T00:00:00.000000Z into key "+next+
		", scopes payments:read payouts:read, expires 2099-01-01T00:00:00.000000Z, overlap 1m0s")
	_, row = do("DELETE", "/api-keys/"+next, "")
	want(row, "key.revoke", "key "+next+", scopes payments:read payouts:read, expires 2099-01-01T00:00:00.000000Z")

	hook, row := do("POST", "/webhook-endpoints", `{"url":"https://8.8.8.8/hook?token=s3cret","events":["payment.success"]}`)
	want(row, "webhook_endpoint.create", "url https://8.8.8.8/hook?…, events payment.success")
	hook = "/webhook-endpoints/" + hook
	_, row = do("PATCH", hook, `{"url":"https://8.8.4.4/other","events":["payout.success","payment.failed"]}`)
	want(row, "webhook_endpoint.patch", "url https://8.8.8.8/hook?… into https://8.8.4.4/other, events payment.success into payment.failed payout.success")
	_, row = do("PATCH", hook, `{"url":"https://8.8.4.4/other?token=s3cret"}`)
	want(row, "webhook_endpoint.patch", "url https://8.8.4.4/other into https://8.8.4.4/other?…")
	_, row = do("PATCH", hook, `{"url":"https://8.8.4.4/other?token=s3cret2"}`)
	want(row, "webhook_endpoint.patch", "url https://8.8.4.4/other?… into https://8.8.4.4/other?…")
	_, row = do("DELETE", hook, "")
	want(row, "webhook_endpoint.delete", "url https://8.8.4.4/other?…, events payment.failed payout.success")
	for _, a := range w.audit(client.ID) {
		if strings.Contains(a.Detail, "s3cret") {
			t.Errorf("a credential is in the audit log: %q", a.Detail)
		}
	}
}

// audit reads a client's audit log.
func (w *world) audit(client till.ID) (out []*store.AuditRow) {
	w.t.Helper()
	err := books.EachAudit(w.t.Context(), w.store, client, books.AuditFilter{}, func(a *store.AuditRow) error { out = append(out, a); return nil })
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// acts returns the audit rows of people and their programs. The engine writes
// rows too, whenever an operator answers.
func (w *world) acts(client till.ID) []*store.AuditRow {
	w.t.Helper()
	return slices.DeleteFunc(w.audit(client), func(a *store.AuditRow) bool { return a.Actor == "engine" })
}

// firstEvent returns the id of a client's first event.
func (w *world) firstEvent(key string) string {
	w.t.Helper()
	a := w.do(http.MethodGet, "/v1/events?limit=1", key, "")
	var page struct{ Items []struct{ ID string } }
	if err := json.Unmarshal(a.Body.Bytes(), &page); err != nil || len(page.Items) != 1 {
		w.t.Fatalf("events: %s", a.Body)
	}
	return page.Items[0].ID
}
