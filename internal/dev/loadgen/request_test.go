package loadgen

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"sync/atomic"
	"testing"
)

func TestTemplate(t *testing.T) {
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := make(map[string]bool)
	var orders atomic.Int64
	for range 2 {
		tp := newTemplate("127.0.0.1:1", "/v1", "secret", &orders)
		for range 3 {
			r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(tp.next())))
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Amount         struct{ Value string }
				IdempotencyKey string `json:"idempotency_key"`
				Reference      string
			}
			if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
				t.Fatal(err)
			}
			if r.Header.Get("X-Api-Key") != "secret" || got.Amount.Value != "5000" {
				t.Fatalf("got %v %+v", r.Header, got)
			}
			if !uuid.MatchString(got.IdempotencyKey) {
				t.Errorf("%q is not a UUID of version 4", got.IdempotencyKey)
			}
			for _, s := range []string{got.IdempotencyKey, got.Reference} {
				if seen[s] {
					t.Errorf("%q came twice", s)
				}
				seen[s] = true
			}
		}
	}
}
