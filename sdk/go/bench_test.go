package till

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// What a create costs beside a bare request of the same bytes: compare the two.
func BenchmarkCreate(b *testing.B) {
	answer := []byte(payment(Pending))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write(answer)
	}))
	defer server.Close()
	b.Run("sdk", func(b *testing.B) {
		c, err := New(server.URL, Key(testKey))
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := c.Payments.Create(b.Context(), wish()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		body, err := render(wish())
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			res, err := http.Post(server.URL+"/payments", "application/json", bytes.NewReader(body))
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
	})
}
