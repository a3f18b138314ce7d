package loadgen

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

func TestFlood(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 100 {
			cancel()
		}
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer s.Close()
	addr := strings.TrimPrefix(s.URL, "http://")
	begun := false
	got, err := Flood{
		Addr: addr, Connections: 4, OnConnected: func() { begun = true },
		Next: func() func() []byte {
			return func() []byte { return []byte("GET / HTTP/1.1\r\nHost: " + addr + "\r\n\r\n") }
		},
	}.Run(ctx)
	if err != nil || !begun || got[http.StatusTooManyRequests] < 90 || len(got) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	s.Close()
	if _, err := (Flood{Addr: addr, Connections: 1}).Run(t.Context()); err == nil {
		t.Error("nobody listens, and nobody noticed")
	}
}
