package pawapay

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"till/provider"
	"till/provider/providertest"
	"till/provider/wire"
)

// BenchmarkCalls measures what the adapter adds to a call: compare with bare,
// the same call with nothing around it. One operation is one submit or check.
func BenchmarkCalls(b *testing.B) {
	accepted := providertest.ReadExchange(&testing.T{}, "testdata/deposit_accepted.txt").Body(0)
	completed := providertest.ReadExchange(&testing.T{}, "testdata/deposit_status_completed.txt").Body(0)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.Write(accepted)
		} else {
			w.Write(completed)
		}
	}))
	defer server.Close()
	p := newOperator(b, Config{BaseURL: server.URL, APIToken: testToken}, time.Now).payment
	r := goldenRequest(b)
	body, _ := json.Marshal(p.initiation(r, p.routes[routeKey{"mtn_momo", "CG", "XAF"}], "1000"))
	client := wire.NewClient(0)
	header := http.Header{"Authorization": {"Bearer x"}, "Content-Type": contentType}
	for _, c := range []struct {
		name string
		call func() error
	}{
		{"bare submit", func() error {
			_, err := client.Do(b.Context(), "POST", server.URL+"/v2/deposits", header, body)
			return err
		}},
		{"submit", func() error { _, err := p.Submit(b.Context(), r); return err }},
		{"bare check", func() error {
			_, err := client.Do(b.Context(), "GET", server.URL+"/v2/deposits/x", header, nil)
			return err
		}},
		{"check", func() error { _, err := p.Check(b.Context(), provider.Query{Reference: r.Reference}); return err }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestAllocations bounds what the adapter does around a call.
func TestAllocations(t *testing.T) {
	accepted := providertest.ReadExchange(&testing.T{}, "testdata/deposit_accepted.txt").Body(0)
	completed := providertest.ReadExchange(&testing.T{}, "testdata/deposit_status_completed.txt").Body(0)
	p := newOperator(t, Config{BaseURL: "https://api.pawapay.io", APIToken: testToken}, time.Now).payment
	r := goldenRequest(t)
	route := p.routes[routeKey{"mtn_momo", "CG", "XAF"}]
	const most = 60
	if n := testing.AllocsPerRun(100, func() {
		json.Marshal(p.initiation(r, route, "1000"))
		readSubmit(p.kind, 200, accepted, testID)
	}); n > most {
		t.Errorf("a submit takes %v allocations, want at most %d", n, most)
	}
	if n := testing.AllocsPerRun(100, func() { readCheck(p.kind, 200, completed, testID) }); n > most {
		t.Errorf("a check takes %v allocations, want at most %d", n, most)
	}
}
