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

	"till/store/storetest"
)

// statusOf reads the status of an answer.
func statusOf(t *testing.T, a *httptest.ResponseRecorder) string {
	t.Helper()
	var p struct{ Status string }
	if err := json.Unmarshal(a.Body.Bytes(), &p); err != nil || a.Code != http.StatusOK {
		t.Fatalf("%d %s", a.Code, a.Body)
	}
	return p.Status
}

// A read that waits is answered when the status changes, at once if it never
// will, and after its time otherwise.
func TestAReadWaitsForAnotherStatus(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			database := e.Config(t)
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, options{database: database})
				defer w.stop()
				read := func(id, query string) (string, time.Duration) {
					begun := time.Now()
					a := w.do(http.MethodGet, "/v1/payments/"+id+query, w.keys["test"], "")
					return statusOf(t, a), time.Since(begun)
				}
				id := w.created("test", "00000000-0000-4000-8000-000000000001", "242064000001")
				for status, took := read(id, "?wait=30"); ; status, took = read(id, "?wait=30") {
					if took > 3*time.Second {
						t.Fatalf("the change to %s was told after %s", status, took)
					}
					if status == "success" {
						break
					}
				}
				if status, took := read(id, "?wait=30"); status != "success" || took > time.Second {
					t.Errorf("a final status was waited for: %s after %s", status, took)
				}
				stuck := w.created("test", "00000000-0000-4000-8000-000000000002", "242064000014")
				time.Sleep(3 * time.Second)
				if status, took := read(stuck, "?wait=7"); status != "processing" || took < 7*time.Second || took > 8*time.Second {
					t.Errorf("nothing changed: %s after %s", status, took)
				}
				if a := w.do(http.MethodGet, "/v1/payments/"+stuck+"?wait=61", w.keys["test"], ""); a.Code != http.StatusBadRequest {
					t.Errorf("a minute and a second: %d", a.Code)
				}
				if a := w.do(http.MethodGet, "/v1/payments/00000000-0000-7000-8000-000000000001?wait=60", w.keys["test"], ""); a.Code != http.StatusNotFound {
					t.Errorf("what does not exist is waited for: %d", a.Code)
				}
			})
		})
	}
}

// Payouts wait alike.
func TestAPayoutIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{})
		defer w.stop()
		w.addKey("test", "all", "payouts:read", "payouts:write", "payments:write")
		w.created("test", "00000000-0000-4000-8000-000000000001", "242064000001")
		time.Sleep(3 * time.Second)
		a := w.do(http.MethodPost, "/v1/payouts", w.keys["all"], `{"method":"mtn_momo","country":"CG","amount":{"value":"100","currency":"XAF"},"recipient":{"phone":"242064000020"},"idempotency_key":"00000000-0000-4000-8000-00000000000a"}`)
		var p struct{ ID string }
		if err := json.Unmarshal(a.Body.Bytes(), &p); err != nil || a.Code != http.StatusAccepted {
			t.Fatalf("%d %s", a.Code, a.Body)
		}
		begun := time.Now()
		if status := statusOf(t, w.do(http.MethodGet, "/v1/payouts/"+p.ID+"?wait=60", w.keys["all"], "")); status != "processing" {
			t.Errorf("it was held back for five seconds and is %s then", status)
		}
		if took := time.Since(begun); took < 4*time.Second || took > 7*time.Second {
			t.Errorf("it waited %s", took)
		}
	})
}

// Three hundred customers of a client may be at its checkout; each is notified of its
// own payment, and one more is refused. A key that ends while it waits is
// shown nothing.
func TestManyWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{quiet: true})
		defer w.stop()
		var all sync.WaitGroup
		for i := range 300 {
			id := w.created("test", fmt.Sprintf("00000000-0000-4000-8000-%012d", i), "242064000000") // somebody decides
			all.Go(func() {
				begun := time.Now()
				for status := "pending"; status != "failed"; {
					a := w.do(http.MethodGet, "/v1/payments/"+id+"?wait=60", w.keys["test"], "")
					if status = statusOf(t, a); status == "processing" && i%100 == 0 {
						w.do(http.MethodPost, "/v1/sandbox/prompts/"+id, w.keys["test"], `{"action":"decline"}`)
					}
					if status == "expired" {
						break
					}
				}
				// A wake that meets a call under way leaves the rest to the next check, 10 s later.
				if took := time.Since(begun); i%100 == 0 && took > 20*time.Second {
					t.Errorf("payment %d was told after %s", i, took)
				}
			})
		}
		extra := w.created("test", "00000000-0000-4000-8000-00000000aaaa", "242064000014")
		time.Sleep(2500 * time.Millisecond)
		for n := 0; n < 10; n++ { // some have ended by now; take their places
			all.Go(func() { w.do(http.MethodGet, "/v1/payments/"+extra+"?wait=5", w.keys["test"], "") })
		}
		synctest.Wait()
		a := w.do(http.MethodGet, "/v1/payments/"+extra+"?wait=60", w.keys["test"], "")
		if a.Code != http.StatusTooManyRequests || a.Header().Get("Retry-After") == "" {
			t.Errorf("the next one: %d %s", a.Code, a.Body)
		}
		all.Wait()
		go func() {
			time.Sleep(5 * time.Second)
			if _, err := w.accounts.RevokeKey(context.Background(), w.clients["test"].ID, strings.Split(w.keys["reader"], "_")[2], false, "a test"); err != nil {
				t.Error(err)
			}
		}()
		if a := w.do(http.MethodGet, "/v1/payments/"+extra+"?wait=20", w.keys["reader"], ""); a.Code != http.StatusUnauthorized {
			t.Errorf("a key that was revoked: %d", a.Code)
		}
	})
}
