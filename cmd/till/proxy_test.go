package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// lines is output that a running command writes and a test reads.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A proxy that loses every answer lets each request be done, and reports it.
func TestProxyLosesAnswers(t *testing.T) {
	t.Parallel()
	done := make(chan string, 4)
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { done <- r.URL.Path }))
	defer service.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, ended := &lines{}, make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"proxy", "--to", service.URL, "--listen", "127.0.0.1:0", "--lose-answers", "100%"}, out, out)
	}()
	until := time.Now().Add(20 * time.Second)
	wait := func(text string) {
		for !strings.Contains(out.String(), text) {
			if time.Now().After(until) {
				t.Fatalf("it never says %q, but %q", text, out)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	wait("goes to")
	address := strings.Fields(out.String())[1]
	if res, err := http.Get(address + "/v1/payments"); err == nil {
		t.Errorf("an answer came: %d", res.StatusCode)
	}
	if path := <-done; path != "/v1/payments" {
		t.Errorf("the service was asked for %s", path)
	}
	wait("lose_answer   GET /v1/payments")
	cancel()
	if code := <-ended; code != 0 {
		t.Errorf("it ended with %d: %s", code, out)
	}
}
