package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"till/provider"
	"till/provider/wire"
)

func do(t *testing.T, c *wire.Client, method, url string, body []byte) (*wire.Reply, error) {
	t.Helper()
	return c.Do(t.Context(), method, url, http.Header{"X-Test": {"1"}}, body)
}

func TestACallIsMadeOnceAsItIs(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Back", "yes")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, r.Method, " ", r.Proto, " ", r.Header.Get("X-Test"), " ", r.UserAgent(), " ", r.Header.Get("Accept-Encoding"), "|", string(body))
	}))
	defer server.Close()
	got, err := do(t, wire.NewClient(0), http.MethodPost, server.URL, []byte(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if got.Status != http.StatusTeapot || string(got.Body) != `POST HTTP/1.1 1 till |{"a":1}` || got.Header.Get("X-Back") != "yes" {
		t.Errorf("got %d %q %v", got.Status, got.Body, got.Header)
	}
}

func TestARedirectIsAnAnswer(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	got, err := do(t, wire.NewClient(0), http.MethodPost, server.URL, []byte("x"))
	if err != nil || got.Status != http.StatusTemporaryRedirect || calls.Load() != 1 {
		t.Errorf("got %+v, %v after %d calls", got, err, calls.Load())
	}
}

// dropper answers the first request of each connection and drops the second
// after it was read: what a gateway does to a connection that it is tired of.
func dropper(t *testing.T) (url string, requests *atomic.Int64) {
	t.Helper()
	requests = &atomic.Int64{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buf := make([]byte, 4096)
				if n, _ := conn.Read(buf); n == 0 {
					return
				}
				requests.Add(1)
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				if n, _ := conn.Read(buf); n > 0 {
					requests.Add(1)
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String(), requests
}

// The standard library repeats what can be repeated on a connection that died.
// A request for money must not be.
func TestNothingIsSentTwice(t *testing.T) {
	for _, c := range []struct {
		name   string
		method string
		body   []byte
	}{
		{"POST with a body", http.MethodPost, []byte(`{"amount":"1"}`)},
		{"POST without", http.MethodPost, nil},
		{"PUT with a body", http.MethodPut, []byte("x")},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, requests := dropper(t)
			client := wire.NewClient(1)
			if _, err := do(t, client, http.MethodGet, url, nil); err != nil {
				t.Fatal(err)
			}
			got, err := do(t, client, c.method, url, c.body)
			if err == nil {
				t.Fatalf("the dropped call is answered %d", got.Status)
			}
			if errors.Is(err, provider.ErrNotSent) {
				t.Error("it says that nothing was sent")
			}
			if n := requests.Load(); n != 2 {
				t.Errorf("%d requests came, want two: the first and the dropped one", n)
			}
		})
	}
}

func TestErrNotSentIsCertain(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + listener.Addr().String()
	listener.Close()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range map[string]func() error{
		"nobody listens": func() error { _, err := do(t, wire.NewClient(0), "POST", closed, []byte("x")); return err },
		"no address":     func() error { _, err := do(t, wire.NewClient(0), "POST", "http://[::1", nil); return err },
		"no such host": func() error {
			_, err := do(t, wire.NewClient(0), "POST", "http://no-such-host.invalid/", []byte("x"))
			return err
		},
		"cancelled before": func() error {
			_, err := wire.NewClient(0).Do(cancelled, "POST", closed, nil, []byte("x"))
			return err
		},
	} {
		if err := call(); !errors.Is(err, provider.ErrNotSent) {
			t.Errorf("%s: the error is %v, want ErrNotSent", name, err)
		}
	}

	// A server that takes the connection and not one byte: we cannot know.
	hang := make(chan struct{})
	ctx, end := context.WithCancelCause(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		end(context.DeadlineExceeded) // not before it is there, however slow the machine is
		<-hang
	}))
	defer server.Close()
	defer close(hang)
	_, err = wire.NewClient(0).Do(ctx, "POST", server.URL, nil, []byte("x"))
	if err == nil || errors.Is(err, provider.ErrNotSent) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v, want that the time is over", err)
	}
}

func TestErrorsDoNotTellTheAddress(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer server.Close()
	_, err := do(t, wire.NewClient(0), "POST", server.URL+"/secret-path?key=secret-key", []byte("x"))
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error is %v", err)
	}
}

func TestConnectionsAreLimited(t *testing.T) {
	const conns, calls = 3, 30
	var now, most atomic.Int64
	entered, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		entered <- struct{}{}
		<-release
	}))
	defer server.Close()
	client := wire.NewClient(conns)
	done := make(chan error, calls)
	for range calls {
		go func() {
			_, err := client.Do(context.Background(), "POST", server.URL, nil, []byte("x"))
			done <- err
		}()
	}
	for i := range calls {
		<-entered
		if i >= conns-1 {
			release <- struct{}{}
		}
	}
	close(release)
	for range calls {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if most.Load() > conns {
		t.Errorf("%d calls were made at once, want at most %d", most.Load(), conns)
	}
}

func TestAnswersAreLimited(t *testing.T) {
	size := wire.MaxAnswer
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/header" {
			w.Header().Set("X-Long", strings.Repeat("x", 2*wire.MaxAnswer))
			return
		}
		w.Write(bytes.Repeat([]byte{'x'}, size))
	}))
	defer server.Close()
	if got, err := do(t, wire.NewClient(0), "GET", server.URL, nil); err != nil || len(got.Body) != wire.MaxAnswer {
		t.Errorf("the longest answer is an error: %v", err)
	}
	size++
	if _, err := do(t, wire.NewClient(0), "GET", server.URL, nil); err == nil {
		t.Error("a longer one is read")
	}
	if _, err := do(t, wire.NewClient(0), "GET", server.URL+"/header", nil); err == nil {
		t.Error("headers without end are read")
	}
}

// tokens gives "one", then "two", and so on.
type tokens struct {
	n     int
	err   error
	after error // once one was refused
}

func (k *tokens) Token(_ context.Context, _, stale string, _ func(context.Context) (string, time.Duration, error)) (string, error) {
	if k.err != nil {
		return "", k.err
	}
	if stale != "" && k.after != nil {
		return "", k.after
	}
	if stale != "" || k.n == 0 {
		k.n++
	}
	return fmt.Sprint("token ", k.n), nil
}

func refused(r *wire.Reply) bool { return r.Status == 401 }

func isRefusal(err error) bool {
	_, ok := errors.AsType[*provider.Refusal](err)
	return ok
}

func TestAccess(t *testing.T) {
	call := func(k *tokens, statuses ...int) (got *wire.Reply, used []string, err error) {
		a := wire.Access{Tokens: k, Name: "x"}
		got, err = a.Call(t.Context(), refused, func(token string) (*wire.Reply, error) {
			used = append(used, token)
			switch statuses[len(used)-1] {
			case 0:
				return nil, fmt.Errorf("%w: x", provider.ErrNotSent)
			case -1:
				return nil, errors.New("the connection broke")
			}
			return &wire.Reply{Status: statuses[len(used)-1]}, nil
		})
		return got, used, err
	}
	if got, used, err := call(&tokens{}, 200); err != nil || got.Status != 200 || len(used) != 1 {
		t.Errorf("taken: %v %v %v", got, used, err)
	}
	if got, used, err := call(&tokens{}, 401, 202); err != nil || got.Status != 202 || fmt.Sprint(used) != "[token 1 token 2]" {
		t.Errorf("refused once: %v %v %v", got, used, err)
	}
	if _, used, err := call(&tokens{}, 401, 401); !errors.Is(err, provider.ErrCredentials) || !isRefusal(err) || len(used) != 2 {
		t.Errorf("refused twice: %v %v", used, err)
	}
	if _, used, err := call(&tokens{err: provider.ErrCredentials}); !errors.Is(err, provider.ErrNotSent) || !errors.Is(err, provider.ErrCredentials) || len(used) != 0 {
		t.Errorf("no token: %v %v", used, err)
	}
	// The first call was sent, but refused, whatever became of the second.
	if _, _, err := call(&tokens{}, 401, 0); !isRefusal(err) || errors.Is(err, provider.ErrNotSent) {
		t.Errorf("the second call could not be made: %v", err)
	}
	if _, _, err := call(&tokens{}, 401, -1); err == nil || isRefusal(err) || errors.Is(err, provider.ErrNotSent) {
		t.Errorf("nobody knows what became of the second call: %v", err)
	}
	if _, _, err := call(&tokens{}, -1); err == nil || isRefusal(err) {
		t.Errorf("nobody knows what became of the first call: %v", err)
	}
	for _, err := range []error{provider.ErrCredentials, fmt.Errorf("%w: %w", provider.ErrNotSent, context.DeadlineExceeded), errors.New("x")} {
		if _, used, got := call(&tokens{after: err}, 401); !isRefusal(got) || errors.Is(got, provider.ErrNotSent) || len(used) != 1 ||
			errors.Is(got, provider.ErrCredentials) != errors.Is(err, provider.ErrCredentials) {
			t.Errorf("refused, and no other token (%v): %v %v", err, used, got)
		}
	}
	if _, _, err := call(&tokens{}, 0); !errors.Is(err, provider.ErrNotSent) {
		t.Errorf("the first call could not be made: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	a := wire.Access{Tokens: &tokens{}}
	_, err := a.Call(cancelled, refused, func(string) (*wire.Reply, error) {
		t.Error("it was sent after its caller had given up")
		return nil, nil
	})
	if !errors.Is(err, provider.ErrNotSent) {
		t.Errorf("given up: %v", err)
	}
}

func TestLife(t *testing.T) {
	for text, want := range map[string]time.Duration{"3600": 50 * time.Minute, "180": 150 * time.Second, "180.0": 150 * time.Second,
		"": 0, "0": 0, "-5": 0, "1e9": 0, "soon": 0, "99999999999": 0} {
		r := &wire.Reply{Status: http.StatusOK, Body: []byte(`{"access_token":"t","expires_in":"` + text + `"}`)}
		if token, got, err := wire.ParseToken(r, false); got != want || (err == nil) != (want != 0) || (token == "t") != (want != 0) {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
}

// A network in memory: nothing was sent where there is no connection, and whatever became of
// a call that had one, nobody knows.
func TestANetworkInMemory(t *testing.T) {
	ours, theirs := net.Pipe()
	dialed := []func() (net.Conn, error){
		func() (net.Conn, error) { return nil, errors.New("nobody listens") },
		func() (net.Conn, error) { return ours, nil },
	}
	n := 0
	client := wire.ClientOf(provider.Deps{Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
		if addr != "operator.test:80" {
			t.Errorf("dialed is %s", addr)
		}
		n++
		return dialed[n-1]()
	}})
	if _, err := do(t, client, http.MethodPost, "http://operator.test/", []byte("x")); !errors.Is(err, provider.ErrNotSent) {
		t.Errorf("nobody listens: %v", err)
	}
	go func() {
		theirs.Read(make([]byte, 1))
		theirs.Close()
	}()
	if _, err := do(t, client, http.MethodPost, "http://operator.test/", []byte("x")); err == nil || errors.Is(err, provider.ErrNotSent) {
		t.Errorf("a byte was read: %v", err)
	}
}
