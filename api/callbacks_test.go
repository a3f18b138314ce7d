package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"till"
	"till/api"
	"till/provider"
	"till/store"
)

// signing is an operator that calls one address and signs.
type signing struct{ provider.Provider }

// ReadCallback implements provider.CallbackReader.
func (signing) ReadCallback(c provider.CallbackRequest) (provider.Callback, error) {
	if got := c.Header["X-Signature"]; len(got) != 1 || got[0] != c.Method+" "+c.URL {
		return provider.Callback{}, errors.New("the signature is wrong")
	}
	var v struct{ Reference, Handle string }
	if err := json.Unmarshal(c.Body, &v); err != nil {
		return provider.Callback{}, err
	}
	id, _ := till.ParseID(v.Reference)
	return provider.Callback{Reference: id, Handle: v.Handle}, nil
}

// callback is one call by somebody.
type callback struct {
	verb, path, body   string
	from, forwarded    string
	unsigned, otherURL bool
}

func TestCallbacksToOneAddress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		w := newWorld(t, options{})
		defer w.stop()
		h := api.New(api.Config{
			Store: w.store, Collector: w.collector, Payouts: w.payouts, Accounts: w.accounts, Endpoints: w.endpoints, BaseURL: baseURL, ErrorPages: errorPages,
			TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
			CallbackPolicies: map[string]*api.CallbackPolicy{
				"momo":  {Secrets: func() []string { return []string{"unguessable"} }, Readers: []provider.CallbackReader{signing{}}, Networks: []netip.Prefix{netip.MustParsePrefix("212.88.125.0/24")}},
				"deaf":  {Secrets: func() []string { return []string{"unguessable"} }},
				"other": {Secrets: func() []string { return []string{"another"} }, Readers: []provider.CallbackReader{signing{}}},
			},
		})
		a := w.do(http.MethodPost, "/v1/payments", w.keys["test"], `{"method": "mtn_momo", "country": "CG", "amount": {"value": "5000", "currency": "XAF"},
			"customer": {"phone": "242061230014"}, "idempotency_key": "0199a7f0-0000-7000-8000-000000000001"}`)
		var p struct{ ID string }
		if err := json.Unmarshal(a.Body.Bytes(), &p); err != nil || a.Code != http.StatusAccepted {
			t.Fatal(a.Code, a.Body, err)
		}
		id, _ := till.ParseID(p.ID)
		ref, reference := store.Ref{Client: w.clients["test"].ID, ID: id}, till.NewID(7)
		time.Sleep(3 * time.Second)
		var step *store.Step
		read := func() *store.Step {
			err := w.store.View(ctx, func(tx *store.Tx) (err error) { step, err = tx.Step(ctx, ref); return err })
			if err != nil || step == nil {
				t.Fatal(err, "the step is gone")
			}
			return step
		}
		// What a send to such an operator, and its answer, leave behind.
		err := w.store.Update(ctx, func(tx *store.Tx) error {
			s, err := tx.Step(ctx, ref)
			if err != nil {
				return err
			}
			s.Handle = "ws_1"
			if err := tx.SaveSteps(ctx, []*store.Step{s}); err != nil {
				return err
			}
			if err := tx.NameHandles(ctx, []store.Named{{Connection: "momo", Handle: "ws_1", Ref: ref, Kind: till.SubjectPayment}}); err != nil {
				return err
			}
			return tx.InsertSends(ctx, []*store.Attempt{{ClientID: ref.Client, SubjectID: id, N: 90, Connection: "momo", Reference: reference,
				StartedAt: tx.Now(), First: true, LookupKind: till.SubjectPayment}})
		})
		if err != nil {
			t.Fatal(err)
		}
		byReference, byHandle := `{"reference": "`+reference.String()+`"}`, `{"handle": "ws_1"}`
		for _, c := range []struct {
			name   string
			in     callback
			status int
		}{
			{"by our reference", callback{body: byReference}, 200},
			{"by its handle, with PUT", callback{verb: "PUT", body: byHandle}, 200},
			{"again", callback{body: byHandle}, 200},
			{"through our proxy", callback{body: byHandle, from: "10.1.2.3", forwarded: "6.6.6.6, 212.88.125.9"}, 200},
			{"through two of our proxies", callback{body: byHandle, from: "10.1.2.3", forwarded: "212.88.125.9, 10.9.9.9"}, 200},
			{"with a query", callback{path: "momo/unguessable?a=b", body: byHandle}, 200},
			{"unsigned", callback{body: byHandle, unsigned: true}, 404},
			{"signed for another address", callback{body: byHandle, otherURL: true}, 404},
			{"not JSON", callback{body: "<html>"}, 404},
			{"about something that is not here", callback{body: `{"handle": "ws_2"}`}, 503},
			{"about nothing", callback{body: `{}`}, 503},
			{"about another connection's", callback{path: "other/another", body: byHandle}, 503},
			{"with a wrong secret", callback{path: "momo/guess", body: byHandle}, 404},
			{"to a connection that nobody reads", callback{path: "deaf/unguessable", body: byHandle}, 404},
			{"to one that is not there", callback{path: "gone/unguessable", body: byHandle}, 404},
			{"from elsewhere", callback{body: byHandle, from: "212.88.126.1"}, 404},
			{"from elsewhere through our proxy", callback{body: byHandle, from: "10.1.2.3", forwarded: "212.88.125.9, 6.6.6.6"}, 404},
			{"with a forwarded address of its own making", callback{body: byHandle, from: "6.6.6.6", forwarded: "212.88.125.9"}, 404},
			{"through our proxy, which says nonsense", callback{body: byHandle, from: "10.1.2.3", forwarded: "212.88.125.9, what"}, 404},
			{"too large", callback{body: strings.Repeat("x", 64<<10+1)}, 413},
		} {
			before := read().WakeSeq
			if got := exchange(h, c.in); got != c.status {
				t.Errorf("%s: answered %d, want %d", c.name, got, c.status)
			}
			if woken := read().WakeSeq > before; woken != (c.status == 200) {
				t.Errorf("%s: woken %v", c.name, woken)
			}
		}
		// One that lies changes nothing: only what is asked counts.
		if a := w.do(http.MethodGet, "/v1/payments/"+p.ID, w.keys["test"], ""); !strings.Contains(a.Body.String(), `"status":"processing"`) {
			t.Errorf("after all that: %s", a.Body)
		}
	})
}

// exchange makes a call, and returns the status of the answer.
func exchange(h http.Handler, c callback) int {
	or := func(s *string, d string) {
		if *s == "" {
			*s = d
		}
	}
	or(&c.verb, http.MethodPost)
	or(&c.path, "momo/unguessable")
	or(&c.from, "212.88.125.100")
	r := httptest.NewRequest(c.verb, "/v1/callbacks/"+c.path, strings.NewReader(c.body))
	r.RemoteAddr = c.from + ":4711"
	if c.forwarded != "" {
		r.Header.Set("X-Forwarded-For", c.forwarded)
	}
	url := baseURL + "/callbacks/" + c.path
	if c.otherURL {
		url += "x"
	}
	if !c.unsigned {
		r.Header.Set("X-Signature", c.verb+" "+url)
	}
	a := httptest.NewRecorder()
	h.ServeHTTP(a, r)
	return a.Code
}

// The networks of an operator hold for its payments' own addresses, too.
func TestCallbacksOfAPaymentFromElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{})
		defer w.stop()
		h := api.New(api.Config{Store: w.store, Collector: w.collector, Payouts: w.payouts, Accounts: w.accounts, Endpoints: w.endpoints, BaseURL: baseURL, ErrorPages: errorPages,
			CallbackPolicies: map[string]*api.CallbackPolicy{"sandbox": {Networks: []netip.Prefix{netip.MustParsePrefix("212.88.125.0/24")}}}})
		w.do(http.MethodPost, "/v1/payments", w.keys["test"], `{"method": "mtn_momo", "country": "CG", "amount": {"value": "5000", "currency": "XAF"},
			"customer": {"phone": "242061234567"}, "idempotency_key": "0199a7f0-0000-7000-8000-000000000001"}`)
		time.Sleep(3 * time.Second)
		path := strings.TrimPrefix(w.called.Load().(string), "/v1/callbacks/")
		if got := exchange(h, callback{path: path}); got != 200 {
			t.Errorf("from the operator's network: %d", got)
		}
		if got := exchange(h, callback{path: path, from: "6.6.6.6"}); got != 404 {
			t.Errorf("from elsewhere: %d", got)
		}
	})
}
