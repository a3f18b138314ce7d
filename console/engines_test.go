package console

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"till"
	"till/console/shell"
	"till/people"
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

// Tabs hear that something has changed, one after the other, and a fifth tab of a
// person is told to ask at intervals.
func TestLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	s := httptest.NewServer(w.console)
	defer s.Close()
	defer w.console.Stop() // it must not wait for who listens
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	persons := map[string]people.Session{}
	for i := range 5 {
		w.be(till.RoleOwner, "en")
		persons[strconv.Itoa(i)] = w.visitor
	}
	w.console.SessionOf = func(_ *shell.Visit, token string) (*people.Session, error) { s := persons[token]; return &s, nil }
	listen := func(person int) *bufio.Reader {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+w.path("/live"), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Cookie", "till="+strconv.Itoa(person))
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
	var tabs []*bufio.Reader
	for person := range len(persons) {
		for range 4 {
			tabs = append(tabs, listen(person))
			heard(tabs[len(tabs)-1], "retry: 3000")
		}
	}
	heard(listen(0), "event: full")
	began := time.Now()
	w.pay("242061230003", 700, "ORDER-2", "coffee")
	for _, tab := range tabs {
		heard(tab, "event: hint")
	}
	if took := time.Since(began); took < time.Second { // a change of before may have given some of them theirs
		t.Errorf("%d tabs heard a hint in %v, before their turns", len(tabs), took)
	}
}
