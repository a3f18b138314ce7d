package console

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"till"
	"till/store/storetest"
)

// What pages read from the database, on each engine.
func TestReadingOnBothEngines(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, e)
			paid := w.pay("242061230001", 7500, "ORDER-7", "=1+1")
			open := w.pay("242061230003", 2500, "=1+1", "loaves")
			w.until(paid, till.Success)
			w.until(open, till.Processing)
			page := w.get(w.path("/payments/" + paid.String()))
			for _, want := range []string{"Paid at", "Payment received", "balance 7,500", "event 1<", "Sent to sandbox", "=1&#43;1"} {
				if !strings.Contains(page, want) {
					t.Errorf("the page of a payment lacks %q", want)
				}
			}
			for path, want := range map[string]string{
				"/payments?state=success": paid.String(), "/payments?method=mtn_momo": open.String(), "/payments?amount=7+500&currency=XAF": paid.String(),
				"/search?q=ORDER-7": paid.String(), "/search?q=7500": paid.String(), "/search?q=" + open.String(): open.String(),
			} {
				other := map[bool]string{true: open.String(), false: paid.String()}[want == paid.String()]
				page := w.get(w.path(path))
				if !strings.Contains(page, want) || !strings.Contains(path, "method") && strings.Contains(strings.ReplaceAll(page, path, ""), "/payments/"+other) {
					t.Errorf("%s shows other payments than it should", path)
				}
			}
			table := w.do(request(http.MethodGet, w.path("/payments.csv?for=excel"), nil))
			text := table.Body.String()
			if table.Code != http.StatusOK || !strings.HasPrefix(text, "\ufeff\"id\";\"created_utc\";\"created_local\";\"zone\";") || strings.Count(text, "\n") != 3 || strings.Contains(text, "242061230001") ||
				!strings.Contains(text, "Africa/Brazzaville") || !strings.Contains(text, `;"'=1+1";`) || !strings.Contains(table.Header().Get("Content-Disposition"), "attachment") {
				t.Errorf("the table is answered %d: %s", table.Code, text)
			}
		})
	}
}

// A tab hears that something has changed, and a fifth tab of a person is told
// to ask at intervals.
func TestLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	s := httptest.NewServer(w.console)
	defer s.Close()
	defer w.console.Stop() // it must not wait for who listens
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	listen := func() *bufio.Reader {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+w.path("/live"), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Cookie", "till=token")
		a, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Body.Close() })
		if a.StatusCode != http.StatusOK || a.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("the stream is answered %d, %q", a.StatusCode, a.Header.Get("Content-Type"))
		}
		return bufio.NewReader(a.Body)
	}
	heard := func(b *bufio.Reader, want string) {
		t.Helper()
		for {
			line, err := b.ReadString('\n')
			if err != nil {
				t.Fatalf("no %q: %v", want, err)
			}
			if strings.TrimSpace(line) == want {
				return
			}
		}
	}
	began := time.Now()
	for range 10 { // hints of others, which go first
		w.console.streams.lineUp()
	}
	first := listen()
	heard(first, "retry: 3000")
	for range maxPersonStreams - 1 {
		heard(listen(), "retry: 3000")
	}
	heard(listen(), "event: full")
	w.pay("242061230003", 700, "ORDER-2", "coffee")
	heard(first, "event: hint")
	if took := time.Since(began); took < 10*minSpacing {
		t.Errorf("the hint came after %v, before its turn", took)
	}
}
