package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"till/store/storetest"
)

// A key that leaked lived on in the keys that it had made, and in as many
// successors as it liked.
func TestARevokedKeyLivesOnInNoOther(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{database: e.Config(t)})
			defer w.stop()
			key := w.keys["manager"]
			id := strings.Split(key, "_")[2]
			var made struct {
				Key string `json:"api_key"`
			}
			a := w.do(http.MethodPost, "/v1/api-keys", key, `{"scopes":["payments:read"]}`)
			if err := json.Unmarshal(a.Body.Bytes(), &made); err != nil || a.Code != http.StatusCreated {
				t.Fatalf("create: %d %s", a.Code, a.Body)
			}
			var wait sync.WaitGroup
			codes := make([]int, 5)
			for i := range codes {
				wait.Go(func() {
					codes[i] = w.do(http.MethodPost, "/v1/api-keys/"+id+"/rotate", key, `{"overlap_seconds":3600}`).Code
				})
			}
			wait.Wait()
			successors := 0
			for _, code := range codes {
				if code == http.StatusCreated {
					successors++
				}
			}
			if successors != 1 {
				t.Errorf("a key has %d successors: %v", successors, codes)
			}
			if a := w.do(http.MethodDelete, "/v1/api-keys/"+id, key, ""); a.Code != http.StatusNoContent {
				t.Errorf("revoke: %d %s", a.Code, a.Body)
			}
			if a := w.do(http.MethodGet, "/v1/payments", made.Key, ""); a.Code != http.StatusUnauthorized {
				t.Errorf("what a revoked key made opens its account: %d", a.Code)
			}
		})
	}
}
