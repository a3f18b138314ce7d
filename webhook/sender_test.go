package webhook

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// memory is a network without a machine: each dial is a pipe to a server.
type memory struct {
	conns  chan net.Conn
	closed chan struct{}
	dials  atomic.Int64
}

func newMemory() *memory { return &memory{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (m *memory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	m.dials.Add(1)
	ours, theirs := net.Pipe()
	select {
	case m.conns <- theirs:
		return ours, nil
	case <-m.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error   { close(m.closed); return nil }
func (m *memory) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// inMemory runs a story in virtual time between a sender and a handler.
func inMemory(t *testing.T, handler http.HandlerFunc, tell func(t *testing.T, s *Sender, m *memory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		server := &http.Server{Handler: handler}
		go server.Serve(m)
		s := NewSender(SenderConfig{Dial: m.dial})
		tell(t, s, m)
		s.Close()
		if err := server.Shutdown(context.Background()); err != nil { // waits for its handlers
			t.Error(err)
		}
	})
}

const memoryURL = "http://shop.example.com/hook"

func TestPost(t *testing.T) {
	t.Parallel()
	secret := NewSecret()
	body := []byte(`{"id":"e1"}`)
	var got *http.Request
	var verified error
	inMemory(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		b, _ := io.ReadAll(r.Body)
		verified = Verify(r.Header, b, time.Now(), Tolerance, secret)
		time.Sleep(3 * time.Second)
		w.Header().Set("Retry-After", "7")
		io.WriteString(w, "thank you")
	}, func(t *testing.T, s *Sender, _ *memory) {
		h := Sign("e1", time.Now(), body, secret)
		a := s.Post(t.Context(), memoryURL+"?a=1", h, body)
		if want := (Response{Status: 200, Body: "thank you", Took: 3 * time.Second}); a != want || !a.Delivered() || a.gone() {
			t.Errorf("got %+v, want %+v", a, want)
		}
		if verified != nil {
			t.Errorf("the receiver says: %v", verified)
		}
		if len(h) != 3 {
			t.Errorf("the caller's headers were changed: %v", h)
		}
	})
	if got.Method != "POST" || got.URL.RequestURI() != "/hook?a=1" || got.Host != "shop.example.com" || got.ContentLength != int64(len(body)) {
		t.Errorf("got %s %s %s", got.Method, got.Host, got.URL)
	}
	want := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"Till-Webhooks/1"}, "Content-Length": {"11"}}
	for _, name := range []string{HeaderID, HeaderTimestamp, HeaderSignature} {
		want[name] = got.Header[name]
	}
	if fmt.Sprint(got.Header) != fmt.Sprint(want) {
		t.Errorf("got the headers %v, want %v", got.Header, want)
	}
}

// F41: what every answer means.
func TestAnswers(t *testing.T) {
	t.Parallel()
	var status int
	var after string
	inMemory(t, func(w http.ResponseWriter, _ *http.Request) {
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
	}, func(t *testing.T, s *Sender, _ *memory) {
		for code := 200; code <= 599; code++ {
			status = code
			a := s.Post(t.Context(), memoryURL, nil, []byte("{}"))
			want := Response{Status: code}
			if code >= 300 && code <= 399 {
				want.Problem = ProblemRedirect
			}
			if a != want || a.Delivered() != (code <= 299) || a.gone() != (code == 410) {
				t.Errorf("%d: got %+v", code, a)
			}
		}
		for _, c := range []struct {
			status int
			text   string
			want   time.Duration
		}{
			{429, "120", 2 * time.Minute},
			{503, "0", 0},
			{503, "-5", 0},
			{503, "1.5", 0},
			{503, "soon", 0},
			{429, "86400", 24 * time.Hour},
			{429, "86401", maxRetryAfter},
			{429, "99999999999999999999999999", maxRetryAfter},
			{429, time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat), 90 * time.Second},
			{429, time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), 0},
			{429, time.Now().Add(90 * 24 * time.Hour).UTC().Format(http.TimeFormat), maxRetryAfter},
			{301, "60", time.Minute},
			{200, "60", 0},
		} {
			status, after = c.status, c.text
			if a := s.Post(t.Context(), memoryURL, nil, nil); a.RetryAfter != c.want {
				t.Errorf("%d with Retry-After %s: wait %s, want %s", c.status, c.text, a.RetryAfter, c.want)
			}
		}
	})
}

// F41: what goes wrong before there is an answer.
func TestProblems(t *testing.T) {
	t.Parallel()
	answer := func(text string) func(net.Conn) {
		return func(c net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				io.WriteString(c, text)
			}
		}
	}
	plain := func(c net.Conn) {
		c.Read(make([]byte, 4<<10))
		io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
	}
	for _, c := range []struct {
		name, url string
		serve     func(net.Conn)
		want      Response
	}{
		{"closed before the answer", memoryURL, answer(""), Response{Problem: ProblemReset}},
		{"closed inside the headers", memoryURL, answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"), Response{Problem: ProblemReset}},
		{"closed inside the body", memoryURL, answer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nthank"), Response{Status: 200, Body: "thank", Problem: ProblemReset}},
		{"closed inside a chunk", memoryURL, answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nthank"), Response{Status: 200, Body: "thank", Problem: ProblemReset}},
		{"not HTTP", memoryURL, answer("220 mail.example.com ESMTP\r\n"), Response{Problem: ProblemMalformed}},
		{"not a status", memoryURL, answer("HTTP/1.1 yes OK\r\n\r\n"), Response{Problem: ProblemMalformed}},
		{"headers without end", memoryURL, answer("HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Long: "+strings.Repeat("x", 1000)+"\r\n", 100)), Response{Problem: ProblemMalformed}},
		{"another protocol", memoryURL, answer("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"), Response{Status: 101, Problem: ProblemMalformed}},
		{"no TLS", "https://shop.example.com/", plain, Response{Problem: ProblemTLS}},
		{"silence", memoryURL, func(c net.Conn) { io.Copy(io.Discard, c) }, Response{Problem: ProblemTimeout, Took: 15 * time.Second}},
		{"silence instead of TLS", "https://shop.example.com/", func(c net.Conn) { io.Copy(io.Discard, c) }, Response{Problem: ProblemTimeout, Took: 10 * time.Second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				defer m.Close()
				go func() {
					for {
						conn, err := m.Accept()
						if err != nil {
							return
						}
						c.serve(conn)
						conn.Close()
					}
				}()
				s := NewSender(SenderConfig{Dial: m.dial})
				defer s.Close()
				if a := s.Post(t.Context(), c.url, nil, []byte("{}")); a != c.want || a.Delivered() {
					t.Errorf("got %+v, want %+v", a, c.want)
				}
			})
		})
	}
}

func TestProblemsOfTheNetwork(t *testing.T) {
	t.Parallel()
	allow, err := ParseAllowed(Loopback)
	if err != nil {
		t.Fatal(err)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	stranger := httptest.NewTLSServer(http.NotFoundHandler())
	defer stranger.Close()
	stranger.Config.ErrorLog = discard()
	s := NewSender(SenderConfig{Allow: allow, Resolver: openZone(t).resolver()})
	defer s.Close()
	for url, want := range map[string]string{
		"https://nowhere.example.com/":         ProblemDNS, // NXDOMAIN
		"http://" + closed.Addr().String():     ProblemConnect,
		stranger.URL:                           ProblemTLS, // a certificate that nobody vouches for
		"http://10.0.0.1/":                     ProblemAddressRefused,
		"http://loopback.example.com:99999999": ProblemAddressRefused,
	} {
		if a := s.Post(t.Context(), url, nil, []byte("{}")); a.Problem != want || a.Status != 0 {
			t.Errorf("%s: got %+v, want %s", url, a, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a := s.Post(ctx, stranger.URL, nil, nil); a.Problem != ProblemCancelled {
		t.Errorf("given up: got %+v", a)
	}
}

// secure starts a server with HTTP/2 and a sender that trusts it.
func secure(t *testing.T, h http.HandlerFunc) (*Sender, string) {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = discard()
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	allow, err := ParseAllowed(Loopback)
	if err != nil {
		t.Fatal(err)
	}
	s := NewSender(SenderConfig{Allow: allow, Roots: roots})
	t.Cleanup(s.Close)
	return s, server.URL
}

func TestHTTP2(t *testing.T) {
	t.Parallel()
	s, url := secure(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/reset":
			panic(http.ErrAbortHandler)
		case "/reset-inside":
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case "/huge":
			for range 1 << 20 {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		}
		fmt.Fprint(w, r.Proto)
	})
	for path, want := range map[string]Response{
		"/":             {Status: 200, Body: "HTTP/2.0"},
		"/reset":        {Problem: ProblemReset},
		"/reset-inside": {Status: 200, Problem: ProblemReset},
		"/huge":         {Status: 200},
	} {
		a := s.Post(t.Context(), url+path, nil, []byte("{}"))
		a.Took = 0
		if a != want {
			t.Errorf("%s: got %+v, want %+v", path, a, want)
		}
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	server.Config.ErrorLog = discard()
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	allow, _ := ParseAllowed(Loopback)
	s := NewSender(SenderConfig{Allow: allow, Roots: roots})
	if a := s.Post(t.Context(), server.URL, nil, nil); a.Problem != ProblemTLS {
		t.Errorf("got %+v", a)
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	inMemory(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Second)
		io.WriteString(w, "ok")
	}, func(t *testing.T, s *Sender, m *memory) {
		const posts = 64
		for range 10 {
			var wg sync.WaitGroup
			for range posts {
				wg.Go(func() {
					if a := s.Post(t.Context(), memoryURL, nil, []byte("{}")); !a.Delivered() {
						t.Errorf("got %+v", a)
					}
				})
			}
			wg.Wait()
		}
		if n := m.dials.Load(); n != posts {
			t.Errorf("%d rounds of %d posts made %d connections", 10, posts, n)
		}
		time.Sleep(idleTimeout + time.Second)
		s.Post(t.Context(), memoryURL, nil, nil)
		if n := m.dials.Load(); n != posts+1 {
			t.Errorf("idle connections are kept: %d", n)
		}
	})
}

// A kept connection that the other side has closed meanwhile is no failure.
func TestAClosedConnectionIsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		defer m.Close()
		var bodies []string
		go func() {
			for n := 0; ; n++ {
				c, err := m.Accept()
				if err != nil {
					return
				}
				in := bufio.NewReader(c)
				for answers := 0; ; answers++ {
					r, err := http.ReadRequest(in)
					if err != nil {
						break
					}
					b, _ := io.ReadAll(r.Body)
					if n == 0 && answers == 1 {
						break // the request came as the connection was being closed
					}
					bodies = append(bodies, string(b))
					io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
				}
				c.Close()
			}
		}()
		s := NewSender(SenderConfig{Dial: m.dial})
		defer s.Close()
		for _, body := range []string{"first", "second"} {
			if a := s.Post(t.Context(), memoryURL, nil, []byte(body)); !a.Delivered() {
				t.Errorf("%s: got %+v", body, a)
			}
		}
		if fmt.Sprint(bodies) != "[first second]" || m.dials.Load() != 2 {
			t.Errorf("got %v over %d connections", bodies, m.dials.Load())
		}
	})
}

// F58 (D18): variables that name a proxy lead around no guard.
func TestProxyVariablesAreIgnored(t *testing.T) {
	proxied := make(chan string, 10)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { proxied <- r.RequestURI }))
	defer proxy.Close()
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	s := NewSender(SenderConfig{Resolver: openZone(t).resolver()})
	defer s.Close()
	connected := watch(s)
	s.Post(t.Context(), "http://shop6.example.com/", nil, nil)
	if seen := connected(); len(proxied) != 0 || len(seen) != 1 || !strings.HasPrefix(seen[0], "[2606:") {
		t.Errorf("connected to %v, the proxy saw %d requests", seen, len(proxied))
	}
	if s.transport.Proxy != nil {
		t.Error("the transport has a proxy")
	}
}

func TestALoopbackServerSeesNothing(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer server.Close()
	s := NewSender(SenderConfig{})
	if a := s.Post(t.Context(), server.URL, nil, nil); a.Problem != ProblemAddressRefused || hits.Load() != 0 {
		t.Errorf("got %+v, %d requests", a, hits.Load())
	}
	allow, _ := ParseAllowed([]string{"127.0.0.1"})
	s = NewSender(SenderConfig{Allow: allow})
	defer s.Close()
	if a := s.Post(t.Context(), server.URL, nil, nil); !a.Delivered() || hits.Load() != 1 {
		t.Errorf("allowed: got %+v, %d requests", a, hits.Load())
	}
}

func TestTheDeadlineOfTheCallerCounts(t *testing.T) {
	t.Parallel()
	inMemory(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(t *testing.T, s *Sender, _ *memory) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if a := s.Post(ctx, memoryURL, nil, nil); a.Problem != ProblemTimeout || a.Took != 2*time.Second {
			t.Errorf("got %+v", a)
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if a := s.Post(ctx, memoryURL, nil, nil); a.Problem != ProblemCancelled || a.Took != time.Second {
			t.Errorf("got %+v", a)
		}
	})
}

func discard() *log.Logger { return log.New(io.Discard, "", 0) }
