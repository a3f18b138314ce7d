package loadgen

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestClosed(t *testing.T) {
	var calls atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/payments", func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1); r.Header.Get("X-Api-Key") == "bad" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		w.Write([]byte(`{"status":"pending"}`))
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	addr := strings.TrimPrefix(s.URL, "http://")

	t.Run("counts what the server accepted, and stops at its count", func(t *testing.T) {
		calls.Store(0)
		r, err := Closed{Addr: addr, Connections: 3, Requests: 100}.Run(t.Context())
		if err != nil || r.Accepted != 100 || calls.Load() != 100 || r.Latency.Quantile(0.5) <= 0 {
			t.Fatalf("accepted %d of %d calls, p50 %v, error %v", r.Accepted, calls.Load(), r.Latency.Quantile(0.5), err)
		}
	})
	t.Run("stops when its time is over", func(t *testing.T) {
		calls.Store(0)
		r, err := Closed{Addr: addr, Connections: 2, Duration: time.Millisecond}.Run(t.Context())
		if err != nil || r.Accepted == 0 || r.Accepted != calls.Load() {
			t.Fatalf("accepted %d of %d calls, error %v", r.Accepted, calls.Load(), err)
		}
	})
	t.Run("fails at an answer that is not 202", func(t *testing.T) {
		r, err := Closed{Addr: addr, APIKey: "bad", Connections: 2}.Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "answer 401: no") || r.Accepted != 0 {
			t.Fatalf("accepted %d, error %v", r.Accepted, err)
		}
	})
	t.Run("ends with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		calls.Store(0)
		go func() {
			for calls.Load() < 10 && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			cancel()
		}()
		if _, err := (Closed{Addr: addr, Connections: 2}).Run(ctx); err == nil {
			t.Fatal("no error")
		}
	})
}
