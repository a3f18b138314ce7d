package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"till"
	"till/checkout"
	"till/engine"
	"till/store"
)

const checkoutBody = `{"amount":{"value":"5000","currency":"XAF"},"reference":"order of A","description":"Two loaves","idempotency_key":"00000000-0000-4000-8000-00000000000c"}`

// checkout makes a checkout and returns its id.
func (w *world) checkout(key string) string {
	w.t.Helper()
	a := w.do(http.MethodPost, "/v1/checkouts", key, checkoutBody)
	var c struct{ ID string }
	if err := json.Unmarshal(a.Body.Bytes(), &c); err != nil || a.Code != http.StatusCreated {
		w.t.Fatalf("checkout: %d %s %v", a.Code, a.Body, err)
	}
	return c.ID
}

type checkoutAnswer struct {
	ID, URL, State string
	PaymentID      string `json:"payment_id"`
	ReturnSecret   string `json:"return_secret"`
	Asks           []struct {
		N         int
		PaymentID string `json:"payment_id"`
		Status    string
	}
}

func checkoutOf(t *testing.T, body []byte) (c checkoutAnswer) {
	t.Helper()
	if err := json.Unmarshal(body, &c); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return c
}

// A checkout is made once by its key, is read and listed, is asked on its page, and is paid.
func TestCheckouts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	key := w.keys["test"]
	a := w.do(http.MethodPost, "/v1/checkouts", key, checkoutBody)
	made := checkoutOf(t, a.Body.Bytes())
	if a.Code != http.StatusCreated || made.State != "open" || !strings.HasPrefix(made.URL, "https://pay.till.test/p/") || len(made.ReturnSecret) < 40 ||
		a.Header().Get("Location") != baseURL+"/checkouts/"+made.ID {
		t.Fatalf("%d %v %s", a.Code, a.Header(), a.Body)
	}
	first := a.Body.String()
	if a := w.do(http.MethodPost, "/v1/checkouts", key, checkoutBody); a.Code != http.StatusCreated || a.Body.String() != first || a.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("again: %d %s", a.Code, a.Body)
	}
	if a := w.do(http.MethodPost, "/v1/checkouts", key, strings.Replace(checkoutBody, "5000", "6000", 1)); a.Code != 422 || !strings.Contains(a.Body.String(), `"idempotency_key_reused"`) {
		t.Errorf("another body: %d %s", a.Code, a.Body)
	}

	ref := store.Ref{Client: w.clients["test"].ID, ID: mustParse(t, made.ID)}
	who := engine.Client{Client: w.clients["test"], Enabled: func(string) bool { return true }}
	if _, err := w.checkouts.Ask(t.Context(), who, ref, checkout.Typed{N: 1, Phone: "242061230000", Method: "mtn_momo", Country: "CG"}); err != nil {
		t.Fatal(err)
	}
	read := func() checkoutAnswer {
		t.Helper()
		a := w.do(http.MethodGet, "/v1/checkouts/"+made.ID, key, "")
		if a.Code != http.StatusOK || strings.Contains(a.Body.String(), made.ReturnSecret) {
			t.Fatalf("%d %s", a.Code, a.Body)
		}
		return checkoutOf(t, a.Body.Bytes())
	}
	open := read()
	if open.State != "open" || len(open.Asks) != 1 || open.Asks[0].N != 1 || open.Asks[0].PaymentID == "" {
		t.Fatalf("%+v", open)
	}
	payment := w.do(http.MethodGet, "/v1/payments/"+open.Asks[0].PaymentID, key, "").Body.String()
	if !strings.Contains(payment, `"checkout":{"id":"`+made.ID+`","link_id":null,"n":1}`) || !strings.Contains(payment, `"reference":"order of A"`) {
		t.Errorf("the ask: %s", payment)
	}
	if a := w.do(http.MethodPost, "/v1/checkouts/"+made.ID+"/cancel", key, "{}"); a.Code != http.StatusConflict || !strings.Contains(a.Body.String(), `"checkout_live"`) {
		t.Errorf("cancelled while the customer is asked: %d %s", a.Code, a.Body)
	}
	for path, want := range map[string]int{"/v1/checkouts": 1, "/v1/checkouts?state=open&reference=order+of+A&order=asc": 1, "/v1/checkouts?state=paid": 0,
		"/v1/checkouts?reference=another": 0, "/v1/checkouts?from_date=2000-01-01T00:00:00Z": 1, "/v1/checkouts?to_date=2000-01-01T00:00:00Z": 0, "/v1/checkouts?offset=1": 0} {
		var page struct {
			Items []checkoutAnswer
			Total int
		}
		a := w.do(http.MethodGet, path, key, "")
		if err := json.Unmarshal(a.Body.Bytes(), &page); err != nil || len(page.Items) != want || want == 1 && (page.Total != 1 || page.Items[0].ID != made.ID || len(page.Items[0].Asks) != 1) {
			t.Errorf("%s: %s %v", path, a.Body, err)
		}
	}
	if a := w.do(http.MethodGet, "/v1/checkouts?state=pending", key, ""); a.Code != http.StatusBadRequest {
		t.Errorf("no such state: %d", a.Code)
	}
}

// What is wrong with a body is told at each member, and nothing is made.
func TestBodiesThatAreNoCheckout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	for name, c := range map[string]struct{ body, pointer string }{
		"no amount":         {`{}`, "/amount"},
		"no key":            {`{"amount":{"value":"5000","currency":"XAF"}}`, "/idempotency_key"},
		"too much":          {`{"amount":{"value":"999999999999999","currency":"XAF"}}`, "/amount"},
		"no such currency":  {`{"amount":{"value":"5000","currency":"EUR"}}`, "/amount/currency"},
		"too short":         {`{"expires_in_seconds":299}`, "/expires_in_seconds"},
		"too long":          {`{"expires_in_seconds":2592001}`, "/expires_in_seconds"},
		"no country":        {`{"country":"XX"}`, "/country"},
		"no method":         {`{"methods":["visa"]}`, "/methods/0"},
		"no methods":        {`{"methods":[]}`, "/methods"},
		"a fixed nothing":   {`{"phone_fixed":true}`, "/phone"},
		"no number":         {`{"phone":"12"}`, "/phone"},
		"a script":          {`{"return_url":"javascript:alert(1)"}`, "/return_url"},
		"data":              {`{"return_url":"data:text/html,x"}`, "/return_url"},
		"relative":          {`{"return_url":"/done"}`, "/return_url"},
		"with a user":       {`{"return_url":"https://a@shop.example/"}`, "/return_url"},
		"our own host":      {`{"return_url":"https://pay.till.test/p/x"}`, "/return_url"},
		"a third language":  {`{"language":"sw"}`, "/language"},
		"a member too many": {`{"ammount":1}`, "/ammount"},
	} {
		var body, base map[string]any
		if err := json.Unmarshal([]byte(c.body), &body); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(checkoutBody), &base); err != nil {
			t.Fatal(err)
		}
		switch name {
		case "no amount":
			delete(base, "amount")
		case "no key":
			delete(base, "idempotency_key")
		}
		for k, v := range body {
			base[k] = v
		}
		text, _ := json.Marshal(base)
		a := w.do(http.MethodPost, "/v1/checkouts", w.keys["test"], string(text))
		var p struct {
			Code   string
			Errors []struct{ Pointer string }
		}
		if err := json.Unmarshal(a.Body.Bytes(), &p); err != nil || a.Code != 422 || !slices.ContainsFunc(p.Errors, func(e struct{ Pointer string }) bool { return strings.HasPrefix(e.Pointer, c.pointer) }) {
			t.Errorf("%s: %d %s", name, a.Code, a.Body)
		}
	}
	if a := w.do(http.MethodGet, "/v1/checkouts", w.keys["test"], ""); !strings.Contains(a.Body.String(), `"total":0`) {
		t.Errorf("something was made: %s", a.Body)
	}
}

// A read that waits answers when the checkout is cancelled.
func TestACheckoutIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	key := w.keys["test"]
	id := w.checkout(key)
	answer := make(chan string, 1)
	go func() { answer <- w.do(http.MethodGet, "/v1/checkouts/"+id+"?wait=30", key, "").Body.String() }()
	time.Sleep(50 * time.Millisecond) // the wait has begun, or begins after the cancellation: both answer
	for range 2 {
		if a := w.do(http.MethodPost, "/v1/checkouts/"+id+"/cancel", key, ""); a.Code != http.StatusOK || !strings.Contains(a.Body.String(), `"state":"cancelled"`) {
			t.Fatalf("%d %s", a.Code, a.Body)
		}
	}
	if got := <-answer; !strings.Contains(got, `"state":"cancelled"`) {
		t.Errorf("the read that waited: %s", got)
	}
	events := w.do(http.MethodGet, "/v1/events?limit=200", key, "").Body.String()
	if n := strings.Count(events, string(till.CheckoutEventCancelled)); n != 1 || !strings.Contains(events, `"data":{"checkout":{"id":"`+id+`"`) || strings.Contains(events, `"url"`) {
		t.Errorf("%d events: %s", n, events)
	}
}

// Without pages no checkout is made.
func TestNoPagesNoCheckouts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{noPages: true})
	defer w.stop()
	a := w.do(http.MethodPost, "/v1/checkouts", w.keys["test"], checkoutBody)
	if a.Code != 422 || !strings.Contains(a.Body.String(), `"pages_not_available"`) {
		t.Errorf("%d %s", a.Code, a.Body)
	}
}
