package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"till"
	"till/api"
	"till/meter"
	"till/store"
	"till/store/access"
	"till/store/admin"
)

func goodBody(key string) string {
	return `{"method":"mtn_momo","country":"CG","amount":{"value":"5000","currency":"XAF"},"idempotency_key":"` + key +
		`","customer":{"phone":"242064000001"},"reference":"order of A"}`
}

// created makes a payment and returns its id.
func (w *world) created(key, idempotencyKey, phone string) string {
	w.t.Helper()
	a := w.do(http.MethodPost, "/v1/payments", w.keys[key], strings.Replace(goodBody(idempotencyKey), "242064000001", phone, 1))
	var p struct{ ID string }
	if err := json.Unmarshal(a.Body.Bytes(), &p); err != nil || a.Code != http.StatusAccepted {
		w.t.Fatalf("create: %d %s", a.Code, a.Body)
	}
	return p.ID
}

// F54: a key in a URL is nowhere in the logs, and the genuine one is flagged.
func TestKeyInURL(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	for _, target := range []string{"/v1/payments?api_key=%s", "/v1/payments?reference=%s", "/v1/payments/%s", "/%s", "/v1/payments?%s", "/v1/payments?x=%%20%s", "/v1/payments?x=%%zz%s"} {
		a := w.do(http.MethodGet, fmt.Sprintf(target, w.keys["test"]), w.keys["test"], "")
		if a.Code != http.StatusBadRequest || !strings.Contains(a.Body.String(), `"key_in_url"`) {
			t.Errorf("%s: %d %s", target, a.Code, a.Body)
		}
	}
	if log := w.log.String(); strings.Contains(log, w.keys["test"]) || strings.Contains(log, "api_key=") {
		t.Error("a key is in the logs")
	}
	err := w.store.View(context.Background(), func(tx *store.Tx) error {
		k, err := access.Key(context.Background(), tx, w.clients["test"].ID, strings.Split(w.keys["test"], "_")[2])
		if err == nil && k.ExposedAt.IsZero() {
			t.Error("the key is not flagged")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// I13: no phone, key or secret in the logs, whatever was sent.
func TestNothingPrivateIsLogged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	w.created("test", "00000000-0000-4000-8000-000000000001", "242064000001")
	w.do(http.MethodPost, "/v1/payments", w.keys["test"], strings.Replace(goodBody("x"), "242064000001", "+242064000001", 1))
	w.do(http.MethodGet, "/v1/payments?reference=242064000001", w.keys["test"], "")
	w.do(http.MethodGet, "/v1/payments/242064000001", w.keys["test"], "")
	for _, secret := range append([]string{"242064000001", "64000001", "order of A"}, w.keys["test"], strings.Split(w.keys["test"], "_")[3]) {
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("%q is in the logs", secret)
		}
	}
	if !strings.Contains(w.log.String(), "GET /payments/{payment_id}") {
		t.Error("the log does not name routes")
	}
}

// F22: the same key a hundred times at once is one payment.
func TestSameKeyInParallel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	var wg sync.WaitGroup
	var mu sync.Mutex
	bodies, first := map[string]bool{}, 0
	for range 100 {
		wg.Go(func() {
			a := w.do(http.MethodPost, "/v1/payments", w.keys["test"], goodBody("00000000-0000-4000-8000-000000000001"))
			mu.Lock()
			defer mu.Unlock()
			bodies[a.Body.String()] = true
			if a.Code != http.StatusAccepted {
				t.Errorf("answered %d, want 202", a.Code)
			}
			if a.Header().Get("Idempotent-Replayed") == "" {
				first++
			}
		})
	}
	wg.Wait()
	if len(bodies) != 1 || first != 1 {
		t.Errorf("%d different answers, %d of them new", len(bodies), first)
	}
}

// F10 and 5xx: what breaks inside is not shown outside.
func TestInternalErrorsLeakNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	for name, c := range map[string]api.Config{
		"a panic": {Accounts: w.accounts, Log: nil}, // there is no collector and no store
	} {
		h := api.New(c)
		other := &world{t: t, handler: h}
		for range 3 { // the process lives
			a := other.do(http.MethodPost, "/v1/payments", w.keys["test"], goodBody("00000000-0000-4000-8000-000000000001"))
			if a.Code != http.StatusInternalServerError || !strings.Contains(a.Body.String(), `"internal_error"`) || strings.Contains(a.Body.String(), "nil") {
				t.Errorf("%s: %d %s", name, a.Code, a.Body)
			}
		}
	}
}

// F32: a database that does not answer is reported as such, soon.
func TestADatabaseThatIsAwayIs503(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	w.do(http.MethodGet, "/v1/payments", w.keys["test"], "") // the session is known from here on

	// Every reader is taken.
	var busy sync.WaitGroup
	free := make(chan struct{})
	for range 4 {
		busy.Add(1)
		go w.store.View(context.Background(), func(*store.Tx) error { busy.Done(); <-free; return nil })
	}
	busy.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r := httptest.NewRequest(http.MethodGet, "/v1/payments", nil).WithContext(ctx)
	r.Header.Set("X-Api-Key", w.keys["test"])
	a := httptest.NewRecorder()
	w.handler.ServeHTTP(a, r)
	close(free)
	want503(t, a)
}

func want503(t *testing.T, a *httptest.ResponseRecorder) {
	t.Helper()
	if a.Code != http.StatusServiceUnavailable || a.Header().Get("Retry-After") != "1" || !strings.Contains(a.Body.String(), `"service_unavailable"`) {
		t.Errorf("%d %v %s", a.Code, a.Header(), a.Body)
	}
}

// A method whose operator does not answer is refused to new payments, and
// shown as closed; a key that made a payment before is still answered.
func TestAClosedMethod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := meter.New(meter.Config{})
		w := newWorld(t, options{watched: true, meter: m})
		defer w.stop()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.collector.Watch(ctx)
		body := func(key string) string {
			return `{"method":"mtn_momo","country":"CG","amount":{"value":"5000","currency":"XAF"},"idempotency_key":"` + key + `","customer":{"phone":"242061234567"}}`
		}
		const old, fresh = "0191d6f6-9f64-7c3c-8b1e-5b2d8f1c0a01", "0191d6f6-9f64-7c3c-8b1e-5b2d8f1c0a02"
		if a := w.do(http.MethodPost, "/v1/payments", w.keys["test"], body(old)); a.Code != http.StatusAccepted {
			t.Fatalf("%d %s", a.Code, a.Body)
		}
		err := w.store.Update(ctx, func(tx *store.Tx) error {
			_, err := admin.SwapBreaker(ctx, tx, &admin.Breaker{Connection: "sandbox", State: admin.Stopped, ChangedAt: tx.Now(), RetryAt: tx.Now().Add(40 * time.Second)})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
		a := w.do(http.MethodPost, "/v1/payments", w.keys["test"], body(fresh))
		if a.Code != http.StatusServiceUnavailable || a.Header().Get("Retry-After") != "39" || !strings.Contains(a.Body.String(), `"method_unavailable"`) {
			t.Errorf("a new key: %d, Retry-After %q, %s", a.Code, a.Header().Get("Retry-After"), a.Body)
		}
		if a := w.do(http.MethodPost, "/v1/payments", w.keys["test"], body(old)); a.Code != http.StatusAccepted || a.Header().Get("Idempotent-Replayed") != "true" {
			t.Errorf("an old key: %d %v %s", a.Code, a.Header(), a.Body)
		}
		if a := w.do(http.MethodGet, "/v1/payment-methods", w.keys["test"], ""); !strings.Contains(a.Body.String(), `"status":"closed"`) {
			t.Errorf("the methods: %s", a.Body)
		}
		page := httptest.NewRecorder()
		m.Handler().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for _, want := range []string{`till_http_requests_total{code="closed",route="POST /payments"} 1`, `till_http_requests_total{code="503",route="POST /payments"} 0`} {
			if !strings.Contains(page.Body.String(), want) {
				t.Errorf("an operator that does not answer counts as a fault of ours: %s is missing", want)
			}
		}
	})
}

// Callbacks: a hint is recorded before it is answered, and what it says does
// not matter.
func TestCallbacks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{})
		w.created("test", "00000000-0000-4000-8000-000000000001", "242064000001")
		time.Sleep(3 * time.Second)
		target, _ := w.called.Load().(string)
		if target == "" {
			t.Fatal("no callback came")
		}
		for _, body := range []string{"", "{}", "not JSON at all", strings.Repeat("x", 64<<10)} {
			for _, method := range []string{http.MethodPost, http.MethodPut} {
				if a := w.do(method, target+"?retry=1", "", body); a.Code != http.StatusOK || a.Body.String() != "{}" {
					t.Errorf("%s: %d %s", method, a.Code, a.Body)
				}
			}
		}
		if a := w.do(http.MethodPost, target, "", strings.Repeat("x", 64<<10+1)); a.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("a large callback: %d %s", a.Code, a.Body)
		}
		for _, bad := range []string{target + "x", strings.Replace(target, "/sandbox/", "/other/", 1)} {
			if a := w.do(http.MethodPost, bad, "", "{}"); a.Code != http.StatusNotFound {
				t.Errorf("a forged callback: %d %s", a.Code, a.Body)
			}
		}
		w.stop()

		// Nothing can be recorded any more: the operator is asked to come again.
		want503(t, w.do(http.MethodPost, target, "", "{}"))
	})
}

// The default overlap of a rotation is a day.
func TestDefaultOverlap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	id := strings.Split(w.keys["reader"], "_")[2]
	if a := w.do(http.MethodPost, "/v1/api-keys/"+id+"/rotate", w.keys["reader"], ""); a.Code != http.StatusCreated {
		t.Fatalf("%d %s", a.Code, a.Body)
	}
	err := w.store.View(context.Background(), func(tx *store.Tx) error {
		k, err := access.Key(context.Background(), tx, w.clients["test"].ID, id)
		if left := k.ExpiresAt.Sub(w.store.Now()); left > 24*time.Hour || left < 24*time.Hour-time.Minute {
			t.Errorf("the old key ends in %v", left)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// FuzzCreate sends any body: the answer is a payment or a refusal, never a
// failure of ours.
func FuzzCreate(f *testing.F) {
	for _, s := range []string{"", "{}", goodBody("00000000-0000-4000-8000-000000000001"), `{"amount":{"value":"1e3"}}`, `{"charge":{"items":[{"quantity":1e999}]}}`,
		`{"metadata":{"\ud800":1}}`, "\xff", strings.Repeat(`{"a":`, 20), `{"customer":{"phone":"+242 06"}}`} {
		f.Add(s)
	}
	w := newWorld(f, options{})
	f.Cleanup(w.stop)
	f.Fuzz(func(t *testing.T, body string) {
		a := w.do(http.MethodPost, "/v1/payments", w.keys["test"], body)
		switch a.Code {
		case 202, 400, 413, 415, 422:
		default:
			t.Errorf("%d %s", a.Code, a.Body)
		}
		if a.Code >= 400 {
			var p problem
			if err := json.Unmarshal(a.Body.Bytes(), &p); err != nil || till.Code(p.Code) == till.CodeInternal {
				t.Errorf("%s %v", a.Body, err)
			}
		}
	})
}
