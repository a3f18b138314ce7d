package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"till/store"
	"till/store/storetest"
	"till/upkeep"
)

// A test client fills its quota and not the disk. What exists goes on.
func TestATestClientStoresNoMoreThanItsQuota(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			database := e.Config(t)
			synctest.Test(t, func(t *testing.T) { fill(t, database) })
		})
	}
}

func fill(t *testing.T, database store.Config) {
	w := newWorld(t, options{database: database, quota: 64 << 10})
	defer w.stop()
	n := 0
	big := fmt.Sprintf(`,"metadata":{"a":"%s"}}`, strings.Repeat("x", 15<<10))
	body := func(i int) string {
		return strings.TrimSuffix(goodBody(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)), "}") + big
	}
	send := func(method, path, key, body string) *httptest.ResponseRecorder {
		t.Helper()
		time.Sleep(1100 * time.Millisecond) // a session is a second old at most
		synctest.Wait()
		return w.do(method, "/v1"+path, w.keys[key], body)
	}
	refused := func(a *httptest.ResponseRecorder) bool {
		return a.Code == http.StatusUnprocessableEntity && strings.Contains(a.Body.String(), `"code":"too_many"`)
	}
	first := w.created("other", "00000000-0000-4000-8000-999999999999", "242064000000") // waits for a person
	for ; n < 20; n++ {
		a := send("POST", "/payments", "other", body(n))
		if refused(a) {
			break
		} else if a.Code != http.StatusAccepted {
			t.Fatalf("payment %d: %d %s", n, a.Code, a.Body)
		}
	}
	if n != 4 {
		t.Fatalf("%d large payments were taken, want 4 by a quota of 64 KiB", n)
	}
	if a := send("POST", "/sandbox/prompts/"+first, "other", `{"action":"approve"}`); a.Code >= 300 {
		t.Errorf("a prompt is answered %d %s", a.Code, a.Body)
	}
	if a := send("POST", "/payments", "other", body(0)); a.Code != http.StatusAccepted || a.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("a repeated request is answered %d %s", a.Code, a.Body)
	}
	if a := send("POST", "/payments", "other", strings.Replace(body(0), "order of A", "order of B", 1)); a.Code != 422 || !strings.Contains(a.Body.String(), "idempotency_key_reused") {
		t.Errorf("a key that is used is answered %d %s", a.Code, a.Body)
	}
	out := strings.NewReplacer("customer", "recipient").Replace(goodBody("00000000-0000-4000-8000-000000000077"))
	for name, a := range map[string]*httptest.ResponseRecorder{
		"a payout": send("POST", "/payouts", "other_manager", out), "a key": send("POST", "/api-keys", "other_manager", `{}`),
		"an endpoint": send("POST", "/webhook-endpoints", "other_manager", `{"url":"https://8.8.8.8/","events":["*"]}`),
	} {
		if !refused(a) {
			t.Errorf("%s of a client that is full is answered %d %s", name, a.Code, a.Body)
		}
	}
	live := strings.NewReplacer("mtn_momo", "mpesa", "CG", "KE", "XAF", "KES", "242064000001", "254712345678")
	for i := range 6 {
		if a := send("POST", "/payments", "live", live.Replace(body(i))); a.Code != http.StatusAccepted {
			t.Errorf("payment %d of a live client is answered %d %s", i, a.Code, a.Body)
		}
	}
	for name, a := range map[string]*httptest.ResponseRecorder{
		"another test client": send("POST", "/payments", "test", body(50)),
		"a list":              send("GET", "/payments", "other", ""),
	} {
		if a.Code >= 300 {
			t.Errorf("%s is answered %d %s", name, a.Code, a.Body)
		}
	}
	if a := send("GET", "/payments/"+first, "other", ""); !strings.Contains(a.Body.String(), `"status":"success"`) {
		t.Errorf("a payment of a client that is full does not end: %s", a.Body)
	}

	// What was tallied is folded, and counts as before.
	stored := func() (n int64) {
		err := w.store.View(t.Context(), func(tx *store.Tx) (err error) { n, err = tx.Stored(t.Context(), w.clients["other"].ID); return err })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := stored()
	if n, err := upkeep.RollUp(t.Context(), w.store, w.store.Now().Add(2*time.Hour)); err != nil || n == 0 {
		t.Fatalf("folded %d, %v", n, err)
	}
	if after := stored(); after != before || before < 64<<10 || before > 96<<10 {
		t.Errorf("%d bytes are counted, and %d once they are folded", before, after)
	}
}
