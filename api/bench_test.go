package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// BenchmarkCreate measures POST /payments without the network.
func BenchmarkCreate(b *testing.B) {
	w := newWorld(b, options{rate: 1e9, quiet: true})
	b.Cleanup(w.stop)
	var n atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r := httptest.NewRequest(http.MethodPost, "/v1/payments", bytes.NewBufferString(goodBody(fmt.Sprintf("00000000-0000-4000-8000-%012d", n.Add(1)))))
			r.Header.Set("X-Api-Key", w.keys["test"])
			r.Header.Set("Content-Type", "application/json")
			a := httptest.NewRecorder()
			w.handler.ServeHTTP(a, r)
			if a.Code != http.StatusAccepted {
				b.Fatal(a.Code, a.Body)
			}
		}
	})
}

// BenchmarkRefuse measures what a request costs that only passes the gates.
func BenchmarkRefuse(b *testing.B) {
	w := newWorld(b, options{rate: 1e9, quiet: true})
	b.Cleanup(w.stop)
	r := httptest.NewRequest(http.MethodGet, "/v1/payments/nope", nil)
	r.Header.Set("X-Api-Key", w.keys["test"])
	b.ReportAllocs()
	for b.Loop() {
		w.handler.ServeHTTP(httptest.NewRecorder(), r)
	}
}
