package api_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"till/api"
)

// lockedBuffer collects what several goroutines log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// serve starts a world behind the real server on a real socket. It waits for requests
// longer than any machine makes it wait.
func serve(t *testing.T) (*world, string) {
	t.Helper()
	return serveWithin(t, time.Minute, time.Minute)
}

// serveImpatient is serve for who sends too slowly, with less than the real seconds to wait.
func serveImpatient(t *testing.T) (*world, string) {
	t.Helper()
	return serveWithin(t, 400*time.Millisecond, 800*time.Millisecond)
}

// serveWithin is serve with these timeouts for headers and for whole requests.
func serveWithin(t *testing.T, headers, body time.Duration) (*world, string) {
	t.Helper()
	w := newWorld(t, options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := api.Server(w.handler)
	srv.ReadHeaderTimeout, srv.ReadTimeout = headers, body
	done := make(chan error, 1)
	go func() { done <- srv.Serve(api.Guard(l)) }()
	t.Cleanup(func() {
		srv.Close()
		<-done
		w.stop()
	})
	return w, l.Addr().String()
}

func TestServerHasLimits(t *testing.T) {
	t.Parallel()
	s := api.Server(nil)
	if s.ReadHeaderTimeout != 5*time.Second || s.ReadTimeout != 15*time.Second || s.WriteTimeout != 75*time.Second ||
		s.IdleTimeout != 75*time.Second || s.MaxHeaderBytes != 32<<10 {
		t.Errorf("limits: %+v", s)
	}
}

// talk sends raw bytes and returns the answer, which must be whole, and
// whether the server then hung up.
func talk(t *testing.T, addr string, chunks ...string) (*http.Response, []byte) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	go func() {
		for _, chunk := range chunks {
			if _, err := io.WriteString(c, chunk); err != nil {
				return
			}
		}
	}()
	return readAnswer(t, c)
}

func readAnswer(t *testing.T, c net.Conn) (*http.Response, []byte) {
	t.Helper()
	a, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatalf("half an answer: %v", err)
	}
	return a, body
}

// wantProblem checks an answer from the wire.
func wantProblem(t *testing.T, a *http.Response, body []byte, status int, code string) {
	t.Helper()
	id := a.Header.Get("X-Request-Id")
	if a.StatusCode != status || a.Header.Get("Content-Type") != "application/problem+json" || a.Header.Get("Api-Version") != "1.1" ||
		a.Header.Get("X-Content-Type-Options") != "nosniff" ||
		id == "" || !bytes.Contains(body, []byte(`"code":"`+code+`"`)) || !bytes.Contains(body, []byte(`"request_id":"`+id+`"`)) {
		t.Errorf("got %d %v %s, want %d %s", a.StatusCode, a.Header, body, status, code)
	}
	checkProblem(t, httptest.NewRequest(http.MethodGet, "/", nil), nil, status, id, body)
}

// What net/http refuses by itself has our form too.
func TestEveryAnswerHasTheForm(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	for name, c := range map[string]struct {
		send   string
		status int
		code   string
	}{
		"not HTTP":              {"hello there\r\n\r\n", 400, "malformed_body"},
		"no host":               {"GET /v1/payments HTTP/1.1\r\n\r\n", 400, "malformed_body"},
		"two hosts":             {"GET /v1/payments HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "malformed_body"},
		"a bad host":            {"GET /v1/payments HTTP/1.1\r\nHost: a b\r\n\r\n", 400, "malformed_body"},
		"a bad header name":     {"GET /v1/payments HTTP/1.1\r\nHost: a\r\nX Y: 1\r\n\r\n", 400, "malformed_body"},
		"a bad header value":    {"GET /v1/payments HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n", 400, "malformed_body"},
		"a bad escape":          {"GET /v1/%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400, "malformed_body"},
		"an unknown version":    {"GET /v1/payments HTTP/3.7\r\nHost: a\r\n\r\n", 400, "malformed_body"},
		"an unknown encoding":   {"POST /v1/payments HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: zip\r\n\r\n", 400, "malformed_body"},
		"two lengths":           {"POST /v1/payments HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400, "malformed_body"},
		"an expectation":        {"POST /v1/payments HTTP/1.1\r\nHost: a\r\nExpect: tea\r\nContent-Length: 0\r\n\r\n", 400, "malformed_body"},
		"large headers":         {"GET /v1/payments HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", 431, "headers_too_large"},
		"a large URL":           {"GET /v1/" + strings.Repeat("x", 64<<10) + " HTTP/1.1\r\nHost: a\r\n\r\n", 431, "headers_too_large"},
		"a million headers":     {"GET /v1/payments HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: y\r\n", 1_000_000), 431, "headers_too_large"},
		"OPTIONS *":             {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 404, "not_found"},
		"CONNECT":               {"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 404, "not_found"},
		"an absolute URL":       {"GET http://a/v1/payments HTTP/1.1\r\nHost: a\r\n\r\n", 401, "missing_api_key"},
		"a path with a newline": {"GET /v1/payments/%0d%0aX:1 HTTP/1.1\r\nHost: a\r\n\r\n", 401, "missing_api_key"},
	} {
		a, body := talk(t, addr, c.send)
		if a.StatusCode != c.status {
			t.Logf("case %q", name)
		}
		wantProblem(t, a, body, c.status, c.code)
	}
}

// F46: bodies that are too large, in every disguise.
func TestHugeBodies(t *testing.T) {
	t.Parallel()
	w, addr := serve(t)
	head := "POST /v1/payments HTTP/1.1\r\nHost: a\r\nX-Api-Key: " + w.keys["test"] + "\r\nContent-Type: application/json\r\n"
	block := strings.Repeat("x", 64<<10)

	t.Run("announced", func(t *testing.T) {
		a, body := talk(t, addr, head+"Content-Length: 100000000\r\n\r\n")
		wantProblem(t, a, body, 413, "body_too_large")
		if !a.Close {
			t.Error("the connection goes on")
		}
	})
	t.Run("chunked without end", func(t *testing.T) {
		chunks := []string{head + "Transfer-Encoding: chunked\r\n\r\n"}
		for range 200 {
			chunks = append(chunks, "10000\r\n"+block+"\r\n")
		}
		a, body := talk(t, addr, chunks...)
		wantProblem(t, a, body, 413, "body_too_large")
	})
	t.Run("a gzip bomb", func(t *testing.T) {
		a, body := talk(t, addr, head+"Content-Encoding: gzip\r\nContent-Length: 60000\r\n\r\n", block[:60000])
		wantProblem(t, a, body, 415, "unsupported_media_type")
	})
	t.Run("expect 100", func(t *testing.T) {
		a, body := talk(t, addr, head+"Expect: 100-continue\r\nContent-Length: 100000000\r\n\r\n")
		wantProblem(t, a, body, 413, "body_too_large")
	})
	t.Run("bad chunks", func(t *testing.T) {
		a, body := talk(t, addr, head+"Transfer-Encoding: chunked\r\n\r\nzz\r\n")
		wantProblem(t, a, body, 400, "malformed_body")
	})
}

// raceDetector says that the tests run under the race detector.
var raceDetector bool

// F46: the ceiling holds while many attack at once. It must not run beside
// other tests, whose memory would count too.
func TestMemoryCeiling(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector's memory would be counted")
	}
	w, addr := serve(t)
	head := "POST /v1/payments HTTP/1.1\r\nHost: a\r\nX-Api-Key: " + w.keys["test"] + "\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
	headers := []byte("GET /v1/payments HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: y\r\n", 100_000))
	chunk := []byte("10000\r\n" + strings.Repeat("[", 64<<10) + "\r\n")
	runtime.GC()
	debug.FreeOSMemory()
	before, most := residentBytes(t), int64(0)
	over := make(chan struct{})
	var watch, wg sync.WaitGroup
	watch.Go(func() {
		for {
			most = max(most, residentBytes(t))
			select {
			case <-over:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	for i := range 64 {
		wg.Go(func() {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(time.Minute))
			if i%2 == 0 {
				c.Write(headers)
			} else {
				io.WriteString(c, head)
				for range 100 {
					if _, err := c.Write(chunk); err != nil {
						break
					}
				}
			}
			io.Copy(io.Discard, c)
		})
	}
	wg.Wait()
	close(over)
	watch.Wait()
	t.Logf("memory: %d MiB before, %d MiB at most", before>>20, most>>20)
	if most-before > 32<<20 {
		t.Errorf("memory grew by %d MiB", (most-before)>>20)
	}
}

// residentBytes returns the memory that the process holds.
func residentBytes(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc here")
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(b), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * int64(os.Getpagesize())
}

// F47: who sends too slowly gets an error and is hung up on; who sends nothing is
// only hung up on.
func TestSlowRequests(t *testing.T) {
	t.Parallel()
	w, addr := serveImpatient(t)
	head := "POST /v1/payments HTTP/1.1\r\nHost: a\r\nX-Api-Key: " + w.keys["test"] + "\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
	a, body := talk(t, addr, "GET /v1/payments HTTP/1.1\r\nHo")
	wantProblem(t, a, body, 408, "request_timeout")
	a, body = talk(t, addr, head+`{"method":`)
	wantProblem(t, a, body, 408, "request_timeout")
	a, body = talk(t, addr, strings.Replace(head, "Content-Length: 100", "Transfer-Encoding: chunked", 1)+"5\r\n{\"a")
	wantProblem(t, a, body, 408, "request_timeout")

	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	if said, err := io.ReadAll(c); err != nil || len(said) > 0 {
		t.Errorf("a silent client was told %q, %v", said, err)
	}

	// A second request on a connection that was fine before.
	_, addr = serveWithin(t, 3*time.Second, 3*time.Second)
	c, err = net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(c, "GET /v1/openapi.yaml HTTP/1.1\r\nHost: a\r\n\r\n")
	in := bufio.NewReader(c)
	first, err := http.ReadResponse(in, nil)
	if err != nil || first.StatusCode != 200 {
		t.Fatal(first, err)
	}
	io.Copy(io.Discard, first.Body)
	io.WriteString(c, "GET /v1/openapi.yaml HT")
	second, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ = io.ReadAll(second.Body)
	wantProblem(t, second, body, 408, "request_timeout")
}

// An answer that is out is the last word: a body that dribbles in afterwards
// must not be answered a second time.
func TestOneAnswerPerRequest(t *testing.T) {
	t.Parallel()
	_, addr := serveImpatient(t)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(c, "POST /v1/payments HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nabc")
	said, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(said, []byte("HTTP/1.1 ")); n != 1 {
		t.Errorf("%d answers: %s", n, said)
	}
}

// F47: half-open sockets do not keep others waiting, and are closed in the end.
func TestSlowloris(t *testing.T) {
	halfOpen := func(w *world, addr string) (conns []net.Conn) {
		for i := range 500 {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			if i%2 == 0 {
				io.WriteString(c, "GET /v1/payments HTTP/1.1\r\nHost: a\r\nX-Slow: ")
			} else {
				io.WriteString(c, "POST /v1/payments HTTP/1.1\r\nHost: a\r\nX-Api-Key: "+w.keys["test"]+"\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n{")
			}
			conns = append(conns, c)
		}
		return conns
	}
	w, addr := serve(t)
	conns := halfOpen(w, addr)
	for range 100 {
		r, _ := http.NewRequest(http.MethodGet, "http://"+addr+"/v1/payments?limit=1", nil)
		r.Header.Set("X-Api-Key", w.keys["test"])
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, a.Body)
		a.Body.Close()
		if a.StatusCode != http.StatusOK {
			t.Fatalf("a healthy client got %d", a.StatusCode)
		}
	}
	for _, c := range conns { // if the others had waited for one of them, it would have its answer by now
		c.SetDeadline(time.Now().Add(time.Millisecond))
		if n, err := c.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("healthy clients were answered after a half-open socket: %v", err)
		}
		c.Close()
	}

	for _, c := range halfOpen(serveImpatient(t)) {
		c.SetDeadline(time.Now().Add(time.Minute))
		a, body := readAnswer(t, c)
		wantProblem(t, a, body, 408, "request_timeout")
	}
}
