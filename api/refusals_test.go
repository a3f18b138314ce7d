package api_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"till/api"
	"till/store"
	"till/store/storetest"
)

// said returns the lines of the log that the default level shows.
func (w *world) said(words ...string) (lines []string) {
next:
	for line := range strings.Lines(w.log.String()) {
		if strings.Contains(line, "level=DEBUG") {
			continue
		}
		for _, word := range words {
			if !strings.Contains(line, word) {
				continue next
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// Each refused caller leaves a line: one a second for each reason and address,
// with their number, and never his key.
func TestRefusalsLeaveCountedLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{rate: 5})
		defer w.stop()
		ended := w.keys["reader"]
		for _, name := range []string{"test", "reader"} {
			if got := w.do("GET", "/v1/payments", w.keys[name], "").Code; got != http.StatusOK {
				t.Fatal(got)
			}
		}
		_, id, _ := w.accounts.KnownKey(ended)
		if _, err := w.accounts.RevokeKey(t.Context(), w.clients["test"].ID, id, false, "a test"); err != nil {
			t.Fatal(err)
		}
		var tried []string
		for range 100 {
			tried = append(tried, invented())
			w.from(w.handler, "192.0.2.7", "", "/v1/payments", tried[len(tried)-1])
		}
		for range 3 {
			w.from(w.handler, "192.0.2.8", "", "/v1/payments", ended)
			w.from(w.handler, "192.0.2.9", "", "/v1/payments", w.keys["hooks"])
			r := httptest.NewRequest(http.MethodPost, "/v1/callbacks/sandbox/guess", strings.NewReader("{}"))
			w.handler.ServeHTTP(httptest.NewRecorder(), r)
		}
		for range 20 {
			w.from(w.handler, "192.0.2.10", "", "/v1/payments", w.keys["test"])
		}
		time.Sleep(1500 * time.Millisecond)
		for _, c := range []struct {
			reason, from string
			count        int
			more         string
		}{
			{"unknown_key", "192.0.2.7", 20, "status=401"},
			{"address_limited", "192.0.2.7", 80, "status=429"},
			{"ended_key", "192.0.2.8", 3, "key=" + id},
			{"insufficient_scope", "192.0.2.9", 3, "client=" + w.clients["test"].ID.String()},
			{"callback_token", "192.0.2.1", 3, `route="POST /callbacks/{connection}/{token}"`},
			{"rate_limited", "192.0.2.10", 0, "client=" + w.clients["test"].ID.String()},
		} {
			lines := w.said("reason="+c.reason, "level=WARN", "from="+c.from, c.more)
			if len(lines) != 1 || c.count > 0 && !strings.Contains(lines[0], fmt.Sprintf(" count=%d ", c.count)) {
				t.Errorf("%s: the log has %q, want one line with count %d", c.reason, lines, c.count)
			}
		}
		for _, key := range append(tried, ended) {
			if strings.Contains(w.log.String(), key) {
				t.Fatal("a key stands in the log")
			}
		}

		// However many addresses there are, the log has few lines of a second.
		before := len(w.said())
		for n := range 3000 {
			w.from(w.handler, fmt.Sprintf("198.51.%d.%d", n/250, n%250), "", "/v1/payments", "nonsense")
		}
		time.Sleep(1500 * time.Millisecond)
		sum, seconds := -20, map[string]int{} // without those from above
		for _, line := range w.said("reason=unknown_key") {
			n, _ := strconv.Atoi(regexp.MustCompile(`count=(\d+)`).FindStringSubmatch(line)[1])
			sum += n
			seconds[line[:len("time=2000-01-01T00:00:00")]]++
		}
		if sum != 3000 {
			t.Errorf("the lines count %d of 3000", sum)
		}
		for second, n := range seconds {
			if n > 21 {
				t.Errorf("%d lines at %s", n, second)
			}
		}
		if got := len(w.said()) - before; got < 21 {
			t.Errorf("only %d lines", got)
		}
	})
}

// Every error answer is found in the log by its request_id, at the level that
// a server logs at by default.
func TestARequestIDIsFoundInTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{})
		defer w.stop()
		ids := map[string]string{}
		for _, c := range []struct {
			verb, target, key, body string
			status                  int
		}{
			{"POST", "/v1/payments", "test", `{`, 400},
			{"GET", "/v1/payments?no=such", "test", "", 400},
			{"GET", "/v1/payments", "", "", 401},
			{"GET", "/v1/payments", "reader", "", 200},
			{"GET", "/v1/wallets", "reader", "", 403},
			{"GET", "/v1/payments/nothing", "test", "", 404},
			{"GET", "/v1/nothing", "", "", 404},
			{"DELETE", "/v1/payments", "test", "", 405},
			{"POST", "/v1/payments", "test", `{"method": 1}`, 400},
			{"POST", "/v1/payments", "test", `{}`, 422},
		} {
			a := w.do(c.verb, c.target, w.keys[c.key], c.body)
			if a.Code != c.status {
				t.Fatalf("%s %s: %d %s", c.verb, c.target, a.Code, a.Body)
			}
			if c.status != 200 {
				ids[a.Header().Get("X-Request-Id")] = fmt.Sprint(c.verb, " ", c.target, " ", c.status)
			}
		}
		w.unready.Store(true)
		a := w.do("GET", "/v1/payments", w.keys["test"], "")
		ids[a.Header().Get("X-Request-Id")] = "503"
		w.unready.Store(false)
		time.Sleep(1500 * time.Millisecond)
		for id, what := range ids {
			if got := len(w.said(id)); got != 1 {
				t.Errorf("%s: %d lines have its request_id", what, got)
			}
		}
	})
}

// What net/http refuses by itself has an id too, and the log knows it.
func TestWhatNeverBecameARequestIsFoundInTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{})
		defer w.stop()
		ours, theirs := net.Pipe()
		srv := api.Server(w.handler)
		served := make(chan error)
		go func() { served <- srv.Serve(api.Guard(&oneConn{conn: theirs, closed: make(chan struct{})})) }()
		if _, err := ours.Write([]byte("GET / HTTP/9.9\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(ours)
		if err != nil {
			t.Fatal(err)
		}
		id := regexp.MustCompile(`X-Request-Id: (\S+)`).FindStringSubmatch(string(answer))
		if id == nil {
			t.Fatalf("answered %s", answer)
		}
		time.Sleep(1500 * time.Millisecond)
		if got := w.said(id[1]); len(got) != 1 {
			t.Errorf("the log says %q", got)
		}
		srv.Close()
		<-served
	})
}

// oneConn is a listener that one connection comes to.
type oneConn struct {
	conn   net.Conn
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error   { close(l.closed); return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// A proxy that nobody has named makes one address of all clients: the line that
// reports it says what to do.
func TestAProxyThatNobodyNamedIsHintedAt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{})
		defer w.stop()
		for n := range 22 {
			w.from(w.handler, "10.0.0.1", fmt.Sprintf("203.0.113.%d", n), "/v1/payments", invented())
			w.from(w.handler, "192.0.2.7", "", "/v1/payments", invented())
		}
		time.Sleep(1500 * time.Millisecond)
		for from, want := range map[string]int{"10.0.0.1": 1, "192.0.2.7": 0} {
			if got := len(w.said("reason=address_limited", "from="+from, "trusted_proxies")); got != want {
				t.Errorf("%s: %d hints, want %d", from, got, want)
			}
		}
	})
}

// Where no reader is free in time, the log does not say that the database is
// unreachable.
func TestBusyReadersAreNotADatabaseThatIsAway(t *testing.T) {
	if storetest.Engines()[0].Name == "citus" {
		t.Skip("a cluster has readers for each node, and the test takes one")
	}
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{database: store.Config{Readers: 1}})
		defer w.stop()
		if got := w.do("GET", "/v1/payments", w.keys["test"], "").Code; got != http.StatusOK {
			t.Fatal(got)
		}
		taken, free := make(chan struct{}), make(chan struct{})
		go w.store.View(context.Background(), func(*store.Tx) error {
			close(taken)
			<-free
			return nil
		})
		<-taken
		a := w.do("GET", "/v1/payments", w.keys["test"], "")
		if a.Code != http.StatusServiceUnavailable {
			t.Errorf("%d %s", a.Code, a.Body)
		}
		close(free)
		time.Sleep(1500 * time.Millisecond)
		if id := a.Header().Get("X-Request-Id"); len(w.said("reason=readers_busy", id)) != 1 || len(w.said("database unavailable", id)) != 0 {
			t.Errorf("the log says %q", w.said(id))
		}
	})
}
