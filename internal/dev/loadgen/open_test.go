package loadgen

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestOpen(t *testing.T) {
	var calls atomic.Int64
	var stall sync.RWMutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stall.RLock()
		defer stall.RUnlock()
		switch n := calls.Add(1); {
		case r.URL.Path != "/v1/payments":
			w.WriteHeader(http.StatusNotFound)
		case r.Header.Get("X-Api-Key") == "some" && n%5 == 0:
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	defer s.Close()

	t.Run("sends what is due, each at its time", func(t *testing.T) {
		calls.Store(0)
		r, err := Open{BaseURL: s.URL + "/v1", Rate: 200, Duration: 500 * time.Millisecond, Connections: 4}.Run(t.Context())
		if err != nil || r.Accepted != 100 || r.Due != 100 || calls.Load() != 100 || r.Elapsed < 490*time.Millisecond {
			t.Fatalf("got %+v, %d calls, error %v", r.Failures, calls.Load(), err)
		}
	})
	t.Run("counts refusals by their status and connects anew", func(t *testing.T) {
		calls.Store(0)
		r, err := Open{BaseURL: s.URL + "/v1/", APIKey: "some", Rate: 1000, Duration: 100 * time.Millisecond, Connections: 2}.Run(t.Context())
		if err != nil || r.Accepted != 80 || r.Failures["503"] != 20 || len(r.Failures) != 1 {
			t.Fatalf("accepted %d, failures %v, error %v", r.Accepted, r.Failures, err)
		}
	})
	t.Run("charges a stall to everybody who was due meanwhile", func(t *testing.T) {
		stall.Lock()
		go func() {
			time.Sleep(300 * time.Millisecond)
			stall.Unlock()
		}()
		r, err := Open{BaseURL: s.URL + "/v1", Rate: 100, Duration: 500 * time.Millisecond, Connections: 1}.Run(t.Context())
		// Of 50 requests 30 were due in the stall; a closed loop would see one.
		if err != nil || r.Accepted != 50 || r.Latency.Quantile(0.6) < 50*time.Millisecond {
			t.Fatalf("accepted %d, p60 %v, error %v", r.Accepted, r.Latency.Quantile(0.6), err)
		}
	})
	t.Run("ends with its context and tells what it found", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		r, err := Open{BaseURL: s.URL + "/v1", Rate: 100, Duration: time.Minute, Connections: 2}.Run(ctx)
		if err != nil || r.Accepted == 0 || r.Elapsed > 5*time.Second {
			t.Fatalf("got %v, error %v", r, err)
		}
	})
	t.Run("refuses what has no bounds", func(t *testing.T) {
		for _, l := range []Open{
			{BaseURL: "ftp://x/v1", Rate: 1, Duration: 1, Connections: 1},
			{BaseURL: s.URL, Rate: 0, Duration: 1, Connections: 1},
			{BaseURL: s.URL, Rate: 1, Duration: MaxTime + 1, Connections: 1},
			{BaseURL: s.URL, Rate: MaxRate + 1, Duration: 1, Connections: 1},
			{BaseURL: s.URL, Rate: 1, Duration: 1, Connections: MaxConnections + 1},
			{BaseURL: s.URL, APIKey: "a\r\nb", Rate: 1, Duration: 1, Connections: 1},
		} {
			if _, err := l.Run(t.Context()); err == nil {
				t.Errorf("%+v ran", l)
			}
		}
	})
}
