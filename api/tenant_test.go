package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"till"
	"till/api"
	"till/provider"
	"till/store/storetest"
	"till/webhook"
)

// crossing is client B trying A's ids. The client test is A, other is B.
type crossing struct {
	t             *testing.T
	w             *world
	stranger      string // a key of B that may do everything
	id, prompt    string // payments of A
	payout        string // of A
	checkout      string // of A
	link          string // of A
	given, refund string // a payment of A, and its refund
	keyID, client string // of A
	event         string // the id of A's first event
	endpoint      string // of A
}

// F52: another client's ids lead nowhere, on every route of the table.
func TestTenantCrossing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	x := &crossing{
		t: t, w: w, stranger: w.keys["other_manager"],
		id:     w.created("test", "00000000-0000-4000-8000-000000000001", "242064000001"),
		prompt: w.created("test", "00000000-0000-4000-8000-000000000002", "242064000000"),
		keyID:  strings.Split(w.keys["test"], "_")[2], client: w.clients["test"].ID.String(),
	}
	x.payout = x.pay()
	x.checkout = w.checkout(w.keys["test"])
	x.link = w.link(w.keys["test"])
	x.given, x.refund = x.refunded()
	x.event = till.EventID(w.clients["test"].ID, 1, mustParse(t, x.id).Time()).String()
	if a := w.do(http.MethodGet, "/v1/events/"+x.event, w.keys["test"], ""); a.Code != http.StatusOK {
		t.Fatalf("A's own event: %d %s", a.Code, a.Body)
	}
	url := "https://93.184.216.34/hooks"
	made, err := w.endpoints.Create(context.Background(), w.clients["test"], &webhook.Request{URL: &url, Events: &[]string{"*"}}, webhook.Requester{Actor: "a test", Scopes: till.Scopes})
	if err != nil {
		t.Fatal(err)
	}
	x.endpoint = made.Endpoint.ID.String()
	cases := x.cases()
	for _, r := range api.Routes {
		check := cases[r.Method+" "+r.Path]
		if check == nil {
			t.Errorf("no case for %s %s", r.Method, r.Path)
			continue
		}
		check(r.Method, x.target(r.Path))
	}
	// And A still has everything.
	if a := w.do(http.MethodGet, "/v1/sandbox/prompts", w.keys["test"], ""); !strings.Contains(a.Body.String(), x.prompt) {
		t.Errorf("A's prompt is gone: %s", a.Body)
	}
	if _, err := w.accounts.AuthenticateNow(context.Background(), w.keys["test"]); err != nil {
		t.Errorf("A's key is gone: %v", err)
	}
}

func mustParse(t *testing.T, text string) till.ID {
	t.Helper()
	id, err := till.ParseID(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// cases say for each route what must come of it.
func (x *crossing) cases() map[string]func(method, target string) {
	return map[string]func(method, target string){
		"POST /payments": x.create,
		"GET /payments": x.empty("?reference=order+of+A", "?idempotency_key=00000000-0000-4000-8000-000000000002", "?status=pending", "?method=mtn_momo",
			"?provider_reference=SBX", "?from_date=2000-01-01T00:00:00Z"),
		"GET /payments/{payment_id}":           x.missing("payment_not_found"),
		"GET /payments/{payment_id}/attempts":  x.missing("payment_not_found"),
		"GET /payments/{payment_id}/events":    x.missing("payment_not_found"),
		"GET /payments/{payment_id}/refunds":   x.missing("payment_not_found"),
		"POST /refunds":                        x.giveBack,
		"GET /refunds":                         x.empty("?status=pending", "?payment_id="+x.given, "?idempotency_key=00000000-0000-4000-8000-000000000004"),
		"GET /refunds/{refund_id}":             x.missing("refund_not_found"),
		"POST /refunds/{refund_id}/cancel":     x.missing("refund_not_found"),
		"GET /refunds/{refund_id}/attempts":    x.missing("refund_not_found"),
		"GET /refunds/{refund_id}/events":      x.missing("refund_not_found"),
		"POST /checkouts":                      x.ownCheckout,
		"GET /checkouts":                       x.empty("?state=open", "?reference=order+of+A", "?link_id="+x.link, "?from_date=2000-01-01T00:00:00Z"),
		"GET /checkouts/{checkout_id}":         x.missing("checkout_not_found"),
		"POST /checkouts/{checkout_id}/cancel": x.missing("checkout_not_found"),
		"POST /links":                          x.ownLink,
		"GET /links":                           x.empty("?active=true", "?from_date=2000-01-01T00:00:00Z"),
		"GET /links/{link_id}":                 x.missing("link_not_found"),
		"PATCH /links/{link_id}":               x.missing("link_not_found"),
		"POST /payouts":                        x.poor,
		"GET /payouts":                         x.empty("?status=pending", "?idempotency_key=00000000-0000-4000-8000-000000000003"),
		"GET /payouts/{payout_id}":             x.missing("payout_not_found"),
		"POST /payouts/{payout_id}/cancel":     x.missing("payout_not_found"),
		"GET /payouts/{payout_id}/attempts":    x.missing("payout_not_found"),
		"GET /payouts/{payout_id}/events":      x.missing("payout_not_found"),
		"GET /events":                          x.empty("?limit=200", "?after=1"),
		"GET /events/{event_id}":               x.missing("event_not_found"),
		"POST /events/{event_id}/redeliver":    x.missing("event_not_found"),
		"POST /webhook-endpoints":              x.ownEndpoint,
		"GET /webhook-endpoints":               x.empty(),

		"GET /webhook-endpoints/{endpoint_id}":                x.missing("webhook_endpoint_not_found"),
		"PATCH /webhook-endpoints/{endpoint_id}":              x.missing("webhook_endpoint_not_found"),
		"DELETE /webhook-endpoints/{endpoint_id}":             x.missing("webhook_endpoint_not_found"),
		"POST /webhook-endpoints/{endpoint_id}/rotate-secret": x.missing("webhook_endpoint_not_found"),
		"POST /webhook-endpoints/{endpoint_id}/test":          x.missing("webhook_endpoint_not_found"),
		"GET /webhook-endpoints/{endpoint_id}/deliveries":     x.missing("webhook_endpoint_not_found"),
		"POST /webhook-endpoints/{endpoint_id}/replay":        x.missing("webhook_endpoint_not_found"),

		"GET /payment-methods":                 x.empty(),
		"POST /payment-methods/predict":        x.predicted,
		"GET /wallets":                         x.empty(),
		"GET /transactions":                    x.empty("?payment_id="+x.id, "?reference=order+of+A", "?payout_id="+x.payout, "?refund_id="+x.refund, "?currency=XAF"),
		"GET /me":                              x.empty(),
		"GET /api-keys":                        x.empty(),
		"POST /api-keys":                       x.createKey,
		"POST /api-keys/{key_id}/rotate":       x.missing("api_key_not_found"),
		"DELETE /api-keys/{key_id}":            x.missing("api_key_not_found"),
		"GET /sandbox/prompts":                 x.empty(),
		"POST /sandbox/prompts/{payment_id}":   x.missing("prompt_not_found"),
		"GET /sandbox/stories":                 x.empty(),
		"POST /callbacks/{connection}/{token}": x.missing("not_found"),
		"PUT /callbacks/{connection}/{token}":  x.missing("not_found"),
		"GET /openapi.yaml":                    x.empty(),
		"GET /openapi.json":                    x.empty(),

		"POST /sandbox/webhook-endpoints/{endpoint_id}/disable": x.missing("webhook_endpoint_not_found"),
	}
}

// target puts A's ids into a path.
func (x *crossing) target(path string) string {
	id := x.id
	if strings.HasPrefix(path, "/sandbox") {
		id = x.prompt
	}
	return "/v1" + strings.NewReplacer("{payment_id}", id, "{payout_id}", x.payout, "{refund_id}", x.refund, "{checkout_id}", x.checkout, "{link_id}", x.link, "{event_id}", x.event, "{endpoint_id}", x.endpoint, "{key_id}", x.keyID, "{connection}", "sandbox",
		"{token}", x.client+"."+id+".AAAAAAAAAAAAAAAAAAAAAA").Replace(path)
}

// missing wants a 404, as for an id that nobody has.
func (x *crossing) missing(code string) func(method, target string) {
	return func(method, target string) {
		body := ""
		switch {
		case strings.Contains(target, "/prompts/"):
			body = `{"action":"approve"}`
		case strings.HasSuffix(target, "/replay"):
			body = `{"failed":true}`
		case method == http.MethodPost, method == http.MethodPatch:
			body = `{}`
		}
		a := x.w.do(method, target, x.stranger, body)
		if a.Code != http.StatusNotFound || !strings.Contains(a.Body.String(), `"`+code+`"`) {
			x.t.Errorf("%s %s: %d %s", method, target, a.Code, a.Body)
		}
	}
}

// predicted is the table of prefixes, whose answer is the same for every client.
func (x *crossing) predicted(method, target string) {
	body := goodBodies[method+" "+strings.TrimPrefix(target, "/v1")]
	if a := x.w.do(method, target, x.stranger, body); a.Code != http.StatusOK || !strings.Contains(a.Body.String(), `"mtn_momo"`) {
		x.t.Errorf("%s %s: %d %s", method, target, a.Code, a.Body)
	}
}

func (x *crossing) empty(queries ...string) func(method, target string) {
	return func(method, target string) {
		for _, q := range append(queries, "") {
			a := x.w.do(method, target+q, x.stranger, "")
			if a.Code != http.StatusOK {
				x.t.Errorf("%s %s%s: %d %s", method, target, q, a.Code, a.Body)
			}
			for _, mine := range []string{x.id, x.prompt, x.payout, x.checkout, x.link, x.keyID, x.client, x.event, x.endpoint} {
				if strings.Contains(a.Body.String(), mine) {
					x.t.Errorf("%s %s%s shows %s", method, target, q, mine)
				}
			}
		}
	}
}

// create wants a payment of B's own under A's idempotency key.
func (x *crossing) create(method, target string) {
	a := x.w.do(method, target, x.stranger, goodBody("00000000-0000-4000-8000-000000000001"))
	if a.Code != http.StatusAccepted || a.Header().Get("Idempotent-Replayed") != "" || strings.Contains(a.Body.String(), x.id) {
		x.t.Errorf("B's use of A's key: %d %s", a.Code, a.Body)
	}
}

const payoutBody = `{"method":"mtn_momo","country":"CG","amount":{"value":"100","currency":"XAF"},` +
	`"idempotency_key":"00000000-0000-4000-8000-000000000003","recipient":{"phone":"242064000020"}}`

// pay makes a payout of A, which is held back, from money that came in.
func (x *crossing) pay() string {
	c := storetest.NewCollector(x.t, x.w.store)
	storetest.Apply(x.t, c, x.w.store, storetest.NewPayment(x.t, c, x.w.clients["test"], storetest.Body{}), storetest.Succeeded)
	x.w.addKey("test", "payer", till.PayoutsRead, till.PayoutsWrite)
	a := x.w.do(http.MethodPost, "/v1/payouts", x.w.keys["payer"], payoutBody)
	var p struct{ ID string }
	if err := json.Unmarshal(a.Body.Bytes(), &p); err != nil || a.Code != http.StatusAccepted {
		x.t.Fatalf("A's payout: %d %s %v", a.Code, a.Body, err)
	}
	return p.ID
}

// refunded makes a payment of A, and a refund of it.
func (x *crossing) refunded() (payment, refund string) {
	c := storetest.NewCollector(x.t, x.w.store)
	p := storetest.Apply(x.t, c, x.w.store, storetest.NewPayment(x.t, c, x.w.clients["test"], storetest.Body{}), provider.Result{Outcome: provider.Success, Receipt: "R-given"})
	x.w.addKey("test", "refunder", till.RefundsWrite)
	a := x.w.do(http.MethodPost, "/v1/refunds", x.w.keys["refunder"], refundBody(p.ID.String()))
	var r struct{ ID string }
	if err := json.Unmarshal(a.Body.Bytes(), &r); err != nil || a.Code != http.StatusAccepted {
		x.t.Fatalf("A's refund: %d %s %v", a.Code, a.Body, err)
	}
	return p.ID.String(), r.ID
}

func refundBody(payment string) string {
	return `{"payment_id":"` + payment + `","idempotency_key":"00000000-0000-4000-8000-000000000004"}`
}

// ownLink wants that A's key makes a link of B's own.
func (x *crossing) ownLink(method, target string) {
	a := x.w.do(method, target, x.stranger, linkBody)
	if a.Code != http.StatusCreated || strings.Contains(a.Body.String(), x.link) || a.Header().Get("Idempotent-Replayed") != "" {
		x.t.Errorf("B's link with A's key: %d %s", a.Code, a.Body)
	}
}

// ownCheckout wants that A's key makes a checkout of B's own.
func (x *crossing) ownCheckout(method, target string) {
	a := x.w.do(method, target, x.stranger, checkoutBody)
	if a.Code != http.StatusCreated || strings.Contains(a.Body.String(), x.checkout) || a.Header().Get("Idempotent-Replayed") != "" {
		x.t.Errorf("B's checkout with A's key: %d %s", a.Code, a.Body)
	}
}

// giveBack wants that B can neither give back A's payment nor use A's key.
func (x *crossing) giveBack(method, target string) {
	a := x.w.do(method, target, x.stranger, refundBody(x.given))
	if a.Code != http.StatusNotFound || !strings.Contains(a.Body.String(), `"payment_not_found"`) {
		x.t.Errorf("B's refund of A's payment: %d %s", a.Code, a.Body)
	}
}

// poor wants that B can neither use A's idempotency key nor A's money.
func (x *crossing) poor(method, target string) {
	a := x.w.do(method, target, x.stranger, payoutBody)
	if a.Code != http.StatusUnprocessableEntity || !strings.Contains(a.Body.String(), `"insufficient_balance"`) {
		x.t.Errorf("B's use of A's key: %d %s", a.Code, a.Body)
	}
}

// ownEndpoint wants an endpoint of B's own, and that it gets no event of A's.
func (x *crossing) ownEndpoint(method, target string) {
	x.refused(method, target, `{"url":"https://93.184.216.34/b","events":["*"],"client_id":"`+x.client+`","id":"`+x.endpoint+`"}`)
	a := x.w.do(method, target, x.stranger, `{"url":"https://93.184.216.34/b","events":["*"]}`)
	if a.Code != http.StatusCreated || strings.Contains(a.Body.String(), x.endpoint) {
		x.t.Errorf("B's endpoint: %d %s", a.Code, a.Body)
	}
	var own struct{ ID string }
	if err := json.Unmarshal(a.Body.Bytes(), &own); err != nil {
		x.t.Fatal(err)
	}
	a = x.w.do(http.MethodPost, "/v1/events/"+x.event+"/redeliver", x.stranger, `{"endpoint_id":"`+own.ID+`"}`)
	if a.Code != http.StatusNotFound {
		x.t.Errorf("A's event to B's endpoint: %d %s", a.Code, a.Body)
	}
}

// refused wants that a body of B's cannot name A.
func (x *crossing) refused(method, target, body string) {
	if a := x.w.do(method, target, x.stranger, body); a.Code != http.StatusUnprocessableEntity || !strings.Contains(a.Body.String(), `"unknown_member"`) {
		x.t.Errorf("%s %s with %s: %d %s", method, target, body, a.Code, a.Body)
	}
}

// createKey wants a key of B's own.
func (x *crossing) createKey(method, target string) {
	x.refused(method, target, `{"client_id":"`+x.client+`"}`)
	a := x.w.do(method, target, x.stranger, `{}`)
	var k struct {
		Key string `json:"api_key"`
	}
	if err := json.Unmarshal(a.Body.Bytes(), &k); err != nil {
		x.t.Fatal(err)
	}
	s, err := x.w.accounts.AuthenticateNow(context.Background(), k.Key)
	if err != nil || s.Client.ID != x.w.clients["other"].ID {
		x.t.Errorf("B made a key of somebody else's: %v", err)
	}
}
