package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"till/api"
)

// somebodys is a phone number that nobody may read again where it was not asked
// for, and the ways in which it comes.
const somebodys = "242069876543"

// goodBodies are bodies of every route that has one.
var goodBodies = map[string]string{
	"POST /payments": `{"method":"mtn_momo","country":"CG","amount":{"value":"5000","currency":"XAF"},"customer":{"phone":"242064000001","name":"A","email":"a@b.example"},` +
		`"idempotency_key":"00000000-0000-4000-8000-000000000001","reference":"r","description":"d","metadata":{"a":{"b":"c"}},` +
		`"charge":{"items":[{"name":"Rice","quantity":1.5,"unit_price":"2000","total":"3000"}],"subtotal":"3000"},"tax":{"inclusive":true,"amount":"500","rate":"11.11","type":"VAT"}}`,
	"POST /refunds":                    `{"payment_id":"` + unknownID + `","amount":{"value":"500","currency":"XAF"},"idempotency_key":"00000000-0000-4000-8000-000000000004","reason":"other","reference":"r","description":"d","metadata":{"a":1}}`,
	"POST /refunds/{refund_id}/cancel": `{}`,
	"POST /checkouts": `{"amount":{"value":"5000","currency":"XAF"},"idempotency_key":"00000000-0000-4000-8000-000000000006","reference":"r","description":"d","metadata":{"a":{"b":"c"}},` +
		`"charge":{"items":[{"name":"Rice","quantity":1.5,"unit_price":"2000","total":"3000"}],"subtotal":"3000"},"tax":{"inclusive":true,"amount":"500","rate":"11.11","type":"VAT"},` +
		`"expires_in_seconds":600,"country":"CG","methods":["mtn_momo"],"phone":"242064000001","phone_fixed":false,"return_url":"https://shop.example/done","language":"fr"}`,
	"POST /checkouts/{checkout_id}/cancel": `{}`,
	"POST /links": `{"title":"Alms","open_amount":{"currency":"XAF","min":"500","max":"50000","suggested":["1000"]},"ask_reference":{"label":"Your name","required":true},` +
		`"idempotency_key":"00000000-0000-4000-8000-000000000007","description":"d","metadata":{"a":{"b":"c"}},"country":"CG","methods":["mtn_momo"],"return_url":"https://shop.example/done",` +
		`"language":"fr","expires_at":"2030-01-01T00:00:00Z"}`,
	"PATCH /links/{link_id}": `{"active":false,"title":"Alms of May","expires_at":"2030-01-01T00:00:00Z"}`,
	"POST /payouts": `{"method":"mtn_momo","country":"CG","amount":{"value":"500","currency":"XAF"},"recipient":{"phone":"242064000001"},` +
		`"idempotency_key":"00000000-0000-4000-8000-000000000001","reference":"r","description":"d","metadata":{"a":{"b":"c"}}}`,
	"POST /payouts/{payout_id}/cancel":                    `{}`,
	"POST /payment-methods/predict":                       `{"phone":"06 400 00 01","country":"CG"}`,
	"POST /events/{event_id}/redeliver":                   `{"endpoint_id":"019a8e0c-0000-7000-8000-000000000000"}`,
	"POST /webhook-endpoints":                             `{"url":"https://8.8.8.8/","events":["payment.success"],"description":"d","enabled":false}`,
	"PATCH /webhook-endpoints/{endpoint_id}":              `{"url":"https://8.8.8.8/","events":["payment.success"],"description":"d","enabled":false}`,
	"POST /webhook-endpoints/{endpoint_id}/rotate-secret": `{"overlap_seconds":60}`,
	"POST /webhook-endpoints/{endpoint_id}/replay":        `{"from_sequence":1,"to_sequence":2,"failed":true}`,
	"POST /api-keys":                                      `{"name":"n","scopes":["payments:read"],"expires_at":"2099-01-01T00:00:00Z"}`,
	"POST /api-keys/{key_id}/rotate":                      `{"overlap_seconds":60}`,
	"POST /sandbox/prompts/{payment_id}":                  `{"action":"approve"}`,
}

// mutants returns a JSON text with the number put in every place in every way:
// as a value of every type, as a name, as a name that comes twice, as one too deep
// and as one before a mistake.
func mutants(good string) []string {
	deep := strings.Repeat(`{"`+somebodys+`":`, 9) + "1" + strings.Repeat("}", 9)
	values := []string{
		`"` + somebodys + `"`, `"+` + somebodys + `"`, somebodys, `-` + somebodys + `.5`, `{"` + somebodys + `":1}`, `["` + somebodys + `"]`, `[` + somebodys + `,{}]`,
		deep, `{"` + somebodys + `":"\u0000"}`, `{"` + somebodys + `":[1,}`, `{"` + somebodys + `":1,"` + somebodys + `":2}`, `{"+242 06 987 6543":[1,}`, `{"x` + somebodys + `y":[1,}`,
		`"` + somebodys + "\xff\"", `"\ud800` + somebodys + `"`, somebodys + somebodys, `"` + strings.Repeat(somebodys, 50) + `"`,
	}
	var tree any
	d := json.NewDecoder(strings.NewReader(good))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		panic(err)
	}
	const hole = `"\u0001hole"`
	var out []string
	put := func(set func(v any)) {
		set("\x01hole")
		b, _ := json.Marshal(tree)
		for _, v := range values {
			out = append(out, strings.Replace(string(b), hole, v, 1))
		}
	}
	var walk func(v any, set func(v any))
	walk = func(v any, set func(v any)) {
		put(set)
		set(v)
		switch x := v.(type) {
		case map[string]any:
			for _, name := range []string{somebodys, "unknown"} {
				put(func(v any) { x[name] = v })
				delete(x, name)
			}
			for name, inner := range x {
				walk(inner, func(v any) { x[name] = v })
			}
		case []any:
			for i := range x {
				walk(x[i], func(v any) { x[i] = v })
			}
		}
	}
	walk(tree, func(v any) { tree = v })
	return append(out, good+somebodys, somebodys, `"`+somebodys+`"`)
}

// I13: whatever a request holds, wherever it is, no refusal and no line of
// the log repeats it where it may be somebody's phone number.
func TestNoRefusalRepeatsAPhoneNumber(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	key, sent := w.keys["other_manager"], 0
	send := func(method, target, body string, header http.Header) {
		t.Helper()
		sent++
		r := httptest.NewRequest(method, "/v1"+target, strings.NewReader(body))
		r.Header.Set("X-Api-Key", key)
		r.Header.Set("Content-Type", "application/json")
		for name, values := range header {
			r.Header[name] = values
		}
		a := httptest.NewRecorder()
		w.handler.ServeHTTP(a, r)
		if a.Code < 300 {
			return // what it was asked to keep is shown to whom it belongs
		}
		all := fmt.Sprint(a.Header(), a.Body)
		if strings.Contains(all, somebodys) || strings.Contains(all, "987 6543") {
			t.Errorf("%s %s %s\nis answered %s", method, target, body, all)
		}
	}
	for _, r := range api.Routes {
		name := r.Method + " " + r.Path
		path := strings.NewReplacer("{payment_id}", unknownID, "{payout_id}", unknownID, "{refund_id}", unknownID, "{endpoint_id}", unknownID, "{event_id}", unknownID, "{key_id}", strings.Split(key, "_")[2]).Replace(r.Path)
		good := goodBodies[name]
		if strings.HasPrefix(good, "{") {
			for _, body := range mutants(good) {
				send(r.Method, path, body, nil)
			}
		} else if r.Body != 0 {
			t.Errorf("there is no body for %s", name)
		}
		send(r.Method, pathOf(r.Path, somebodys), good, nil)
		send(r.Method, pathOf(r.Path, "+"+somebodys), good, nil)
		for _, q := range append(r.Query, "unknown", somebodys, "+"+somebodys) {
			for _, v := range []string{somebodys, "+242 06 987 6543", "-" + somebodys + ".5", strings.Repeat(somebodys, 30)} {
				send(r.Method, path+"?"+url.Values{q: {v}}.Encode(), good, nil)
			}
			send(r.Method, path+"?"+url.QueryEscape(q)+"=1&"+url.QueryEscape(q)+"="+somebodys, good, nil)
			send(r.Method, path+"?"+url.QueryEscape(q)+"=%zz"+somebodys, good, nil)
		}
		for _, h := range []string{"X-Api-Key", "Content-Type", "Content-Encoding", "X-Request-Id", "Expect"} {
			send(r.Method, path, good, http.Header{h: {somebodys}})
		}
	}
	send("GET", "/"+somebodys, "", nil)
	send(somebodys, "/payments", "", nil)
	t.Logf("%d requests", sent)
	for line := range bytes.Lines([]byte(w.log.String())) {
		if bytes.Contains(line, []byte(somebodys)) || bytes.Contains(line, []byte("987 6543")) {
			t.Errorf("the log says %.300s", line)
		}
	}
}

// pathOf fills every part of a path that is open.
func pathOf(pattern, value string) string {
	parts := strings.Split(pattern, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, "{") {
			parts[i] = value
		}
	}
	return strings.Join(parts, "/")
}

// unknownID is an id that nobody has.
const unknownID = "019a8e0c-0000-7000-8000-000000000000"
