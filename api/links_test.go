package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"till"
	"till/checkout"
	"till/engine"
	"till/store"
)

const linkBody = `{"title":"Alms","open_amount":{"currency":"XAF","min":"500","max":"50000","suggested":["1000","2000"]},"idempotency_key":"00000000-0000-4000-8000-00000000000d"}`

// link makes a link and returns its id.
func (w *world) link(key string) string {
	w.t.Helper()
	a := w.do(http.MethodPost, "/v1/links", key, linkBody)
	var l struct{ ID string }
	if err := json.Unmarshal(a.Body.Bytes(), &l); err != nil || a.Code != http.StatusCreated {
		w.t.Fatalf("link: %d %s %v", a.Code, a.Body, err)
	}
	return l.ID
}

// A link is made once by its key, is read, listed and changed; what is paid for never changes.
// What it opens says so.
func TestLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	key := w.keys["test"]
	a := w.do(http.MethodPost, "/v1/links", key, linkBody)
	first := a.Body.String()
	var made struct{ ID, URL string }
	if err := json.Unmarshal(a.Body.Bytes(), &made); err != nil || a.Code != http.StatusCreated || !strings.HasPrefix(made.URL, "https://pay.till.test/p/") ||
		a.Header().Get("Location") != baseURL+"/links/"+made.ID || !strings.Contains(first, `"amount":null,"open_amount":{"currency":"XAF","min":"500","max":"50000","suggested":["1000","2000"]},"ask_reference":null`) {
		t.Fatalf("%d %v %s", a.Code, a.Header(), a.Body)
	}
	if a := w.do(http.MethodPost, "/v1/links", key, linkBody); a.Code != http.StatusCreated || a.Body.String() != first || a.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("again: %d %s", a.Code, a.Body)
	}
	if a := w.do(http.MethodPost, "/v1/links", key, strings.Replace(linkBody, "500", "600", 1)); a.Code != 422 || !strings.Contains(a.Body.String(), `"idempotency_key_reused"`) {
		t.Errorf("another body: %d %s", a.Code, a.Body)
	}
	if a := w.do(http.MethodGet, "/v1/links/"+made.ID, key, ""); a.Code != http.StatusOK || a.Body.String() != first {
		t.Errorf("%d %s", a.Code, a.Body)
	}
	for body, want := range map[string]string{
		`{"amount":{"value":"1","currency":"XAF"}}`: "/amount", `{"open_amount":{"currency":"XAF"}}`: "/open_amount", `{"expires_at":"soon"}`: "/expires_at",
		`{"expires_at":"2000-01-01T00:00:00Z"}`: "/expires_at", `{"title":""}`: "/title",
	} {
		if a := w.do(http.MethodPatch, "/v1/links/"+made.ID, key, body); a.Code != 422 || !strings.Contains(a.Body.String(), `"`+want+`"`) {
			t.Errorf("%s: %d %s", body, a.Code, a.Body)
		}
	}
	for _, c := range []struct{ body, want string }{
		{`{"expires_at":"2030-01-01T00:00:00Z","title":"Alms of May"}`, `"expires_at":"2030-01-01T00:00:00`}, {`{"expires_at":""}`, `"expires_at":null`}, {`{"active":false}`, `"active":false,"title":"Alms of May"`},
		{`{}`, `"active":false`},
	} {
		if a := w.do(http.MethodPatch, "/v1/links/"+made.ID, key, c.body); a.Code != http.StatusOK || !strings.Contains(a.Body.String(), c.want) {
			t.Errorf("%s: %d %s", c.body, a.Code, a.Body)
		}
	}
	for path, want := range map[string]int{"/v1/links": 1, "/v1/links?active=false&order=asc": 1, "/v1/links?active=true": 0, "/v1/links?to_date=2000-01-01T00:00:00Z": 0, "/v1/links?offset=1": 0} {
		var page struct{ Items []struct{ ID string } }
		a := w.do(http.MethodGet, path, key, "")
		if err := json.Unmarshal(a.Body.Bytes(), &page); err != nil || len(page.Items) != want || want == 1 && page.Items[0].ID != made.ID {
			t.Errorf("%s: %s %v", path, a.Body, err)
		}
	}
	for _, path := range []string{"/v1/links?active=maybe", "/v1/links?state=open", "/v1/checkouts?link_id=x"} {
		if a := w.do(http.MethodGet, path, key, ""); a.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", path, a.Code)
		}
	}

	w.do(http.MethodPatch, "/v1/links/"+made.ID, key, `{"active":true}`)
	who := engine.Client{Client: w.clients["test"], Enabled: func(string) bool { return true }}
	ref := store.Ref{Client: who.ID, ID: mustParse(t, made.ID)}
	v, err := w.checkouts.Open(t.Context(), who, ref, checkout.Opening{Nonce: []byte("a form"), Amount: 700})
	if err != nil {
		t.Fatal(err)
	}
	w.checkout(key) // of no link
	list := w.do(http.MethodGet, "/v1/checkouts?link_id="+made.ID, key, "").Body.String()
	if !strings.Contains(list, `"total":1`) || !strings.Contains(list, `"link_id":"`+made.ID+`"`) || !strings.Contains(list, v.Checkout.ID.String()) {
		t.Errorf("what came in by the link: %s", list)
	}
	asked, err := w.checkouts.Ask(t.Context(), who, store.Ref{Client: who.ID, ID: v.Checkout.ID}, checkout.Typed{N: 1, Phone: "242061230000", Method: "mtn_momo", Country: "CG"})
	if err != nil {
		t.Fatal(err)
	}
	payment := w.do(http.MethodGet, "/v1/payments/"+asked.PaymentID.String(), key, "").Body.String()
	if !strings.Contains(payment, `"checkout":{"id":"`+v.Checkout.ID.String()+`","link_id":"`+made.ID+`","n":1}`) {
		t.Errorf("the ask: %s", payment)
	}
}

// What is wrong with a link is told at each member; a member that nobody knows is, too.
func TestBodiesThatAreNoLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	a := w.do(http.MethodPost, "/v1/links", w.keys["test"], `{"amount":{"value":"0","currency":"XAF"},"open_amount":{},"titel":"A","expires_at":"soon"}`)
	var p struct {
		Code   string
		Errors []struct{ Pointer string }
	}
	if err := json.Unmarshal(a.Body.Bytes(), &p); err != nil || a.Code != 422 || p.Code != string(till.CodeValidationFailed) {
		t.Fatalf("%d %s", a.Code, a.Body)
	}
	for _, want := range []string{"/title", "/open_amount", "/amount/value", "/idempotency_key", "/expires_at"} {
		if !slices.ContainsFunc(p.Errors, func(e struct{ Pointer string }) bool { return e.Pointer == want }) {
			t.Errorf("nothing is said of %s: %s", want, a.Body)
		}
	}
	if a := w.do(http.MethodPost, "/v1/links", w.keys["test"], strings.Replace(linkBody, `"title"`, `"titel":1,"title"`, 1)); a.Code != 422 || !strings.Contains(a.Body.String(), `"unknown_member"`) {
		t.Errorf("%d %s", a.Code, a.Body)
	}
	if a := w.do(http.MethodGet, "/v1/links", w.keys["test"], ""); !strings.Contains(a.Body.String(), `"total":0`) {
		t.Errorf("something was made: %s", a.Body)
	}
}
