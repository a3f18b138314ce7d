package loadgen

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

func TestOpen(t *testing.T) {
	var calls atomic.Int64
	ending, end := context.WithCancel(t.Context())
	defer end()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, key := calls.Add(1), r.Header.Get("X-Api-Key")
		if key == "stalls" && n == 1 {
			time.Sleep(300 * time.Millisecond)
		}
		if key == "ends" && n == 3 { // one of two connections had an answer before
			end()
		}
		switch {
		case r.URL.Path != "/v1/payments":
			w.WriteHeader(http.StatusNotFound)
		case key == "some" && n%5 == 0:
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
		calls.Store(0)
		r, err := Open{BaseURL: s.URL + "/v1", APIKey: "stalls", Rate: 100, Duration: 500 * time.Millisecond, Connections: 1}.Run(t.Context())
		// Of 50 requests 30 were due in the stall; a closed loop would see one.
		if err != nil || r.Accepted != 50 || r.Latency.Quantile(0.6) < 50*time.Millisecond {
			t.Fatalf("accepted %d, p60 %v, error %v", r.Accepted, r.Latency.Quantile(0.6), err)
		}
	})
	t.Run("ends with its context and tells what it found", func(t *testing.T) {
		calls.Store(0)
		r, err := Open{BaseURL: s.URL + "/v1", APIKey: "ends", Rate: 100, Duration: MaxTime, Connections: 2}.Run(ending)
		if err != nil || r.Accepted == 0 || r.Elapsed > MaxTime/2 {
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
