package webhook

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// BenchmarkPost compares with a bare client that posts the same bytes.
func BenchmarkPost(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	defer server.Close()
	body := []byte(strings.Repeat("{}", 500))
	secret := NewSecret()
	allow, _ := ParseAllowed(Loopback)
	const concurrency = 32 // per processor
	b.Run("sender", func(b *testing.B) {
		s := NewSender(SenderConfig{Allow: allow})
		defer s.Close()
		b.ReportAllocs()
		b.SetParallelism(concurrency)
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				if a := s.Post(b.Context(), server.URL, Sign("e1", time.Now(), body, secret), body); !a.Delivered() {
					b.Errorf("got %+v", a)
				}
			}
		})
	})
	b.Run("bare", func(b *testing.B) {
		c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
		header := Sign("e1", time.Now(), body, secret)
		b.ReportAllocs()
		b.SetParallelism(concurrency)
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				r, _ := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(string(body)))
				r.Header = header
				res, err := c.Do(r)
				if err != nil {
					b.Error(err)
					return
				}
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
		})
	})
}
