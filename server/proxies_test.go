package server_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"till/config"
)

// The proxies of docs/guide/production.md, with the configurations that stand there, in
// front of a real server: long polls up to 60 s, an export that is not collected, a body of
// 64 KiB, the client's address, and a POST that is sent once. 'make soak' installs them.
func TestTheProxiesOfTheGuide(t *testing.T) {
	if os.Getenv("TILL_PROXIES") == "" {
		t.Skip("make soak runs it: it waits for a minute, and needs nginx and HAProxy")
	}
	page, err := os.ReadFile("../docs/guide/production.md")
	if err != nil {
		t.Fatal(err)
	}
	behindOne := func(t *testing.T) (*running, *syncBuffer) {
		c, log := testConfig(t), &syncBuffer{}
		c.Log = slog.New(slog.NewTextHandler(log, nil))
		var err error
		if c.Operators, err = config.Parse("till.toml", []byte(`trusted_proxies = ["127.0.0.1/32"]`), config.Options{}); err != nil {
			t.Fatal(err)
		}
		return start(t, c), log
	}
	for name, begin := range map[string]func(*testing.T, string, proxied) string{"nginx": beginNginx, "haproxy": beginHAProxy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, log := behindOne(t)
			front := begin(t, string(page), proxied{api: r.Addr().String(), admin: r.AdminAddr().String()})
			client := from(t, "127.0.0.2")
			url := "https://" + front + "/v1"

			asked := time.Now()
			answer, body := fetch(t, client, url+"/events?wait=60", r.Demo().APIKey)
			if took := time.Since(asked); answer.StatusCode != http.StatusOK || took < 59*time.Second {
				t.Errorf("a long poll: %s after %v: %s", answer.Status, took, body)
			}

			// A poll that something happens to is answered at once, not when its time is over.
			polled := make(chan time.Duration, 1)
			go func() {
				begun := time.Now()
				answer, body := fetch(t, client, url+"/events?wait=60", r.Demo().APIKey)
				if answer.StatusCode != http.StatusOK || !strings.Contains(body, "payment.pending") {
					t.Errorf("a poll beside a payment: %s %s", answer.Status, body)
				}
				polled <- time.Since(begun)
			}()
			for end := time.Now().Add(time.Minute); r.metrics()["till_polls_waiting"] != "1"; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the poll does not wait")
				}
			}
			r.create("242061234567")
			if took := <-polled; took > 40*time.Second {
				t.Errorf("a poll was answered after %v", took)
			}

			long := []byte(order("242061234567"))
			long = append(long, bytes.Repeat([]byte(" "), 64<<10-len(long))...)
			if answer := post(t, client, url+"/payments", r.Demo().APIKey, long); answer.StatusCode != http.StatusAccepted {
				t.Errorf("a body of 64 KiB: %s", answer.Status)
			}

			if answer, _ := fetch(t, client, url+"/wallets", "till_test_wrong"); answer.StatusCode != http.StatusUnauthorized {
				t.Errorf("a wrong key: %s", answer.Status)
			}
			for end := time.Now().Add(time.Minute); !strings.Contains(log.String(), "from=127.0.0.2"); time.Sleep(50 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("the log does not know the client's address\n%s", log.String())
				}
			}
			if answer, _ := fetch(t, client, "https://"+front+"/healthz", ""); answer.StatusCode != http.StatusNotFound {
				t.Errorf("a path that is not the API's: %s", answer.Status)
			}
		})
		t.Run(name+" passes an export on while it is written", func(t *testing.T) {
			t.Parallel()
			received := make(chan bool)
			lines := beginStreaming(t, received)
			r, _ := behindOne(t)
			front := begin(t, string(page), proxied{api: lines, admin: r.AdminAddr().String()})
			for _, path := range []string{"/v1/transactions", "/console/c/shop/live"} {
				readStream(t, "https://"+front+path, received)
			}
		})
		t.Run(name+" shows the console", func(t *testing.T) {
			t.Parallel()
			c := testConfig(t)
			c.BaseURL = "https://pay.example.com/v1"
			r := start(t, c)
			front := begin(t, string(page), proxied{api: r.Addr().String(), admin: r.AdminAddr().String()})
			for path, text := range map[string]string{"/console/enter": "till person invite", "/console/join/x": "<main", "/phone/x": "<main", "/docs/": "<main", "/sdk/": "npm install"} {
				answer, body := fetch(t, from(t, "127.0.0.2"), "https://"+front+path, "")
				if answer.Header.Get("Content-Security-Policy") == "" || !strings.Contains(body, text) {
					t.Errorf("%s is answered by the proxy, or without %s: %s\n%s", path, text, answer.Status, body)
				}
			}
		})
		t.Run(name+" sends a POST once", func(t *testing.T) {
			t.Parallel()
			var posts atomic.Int64
			cuts := beginCutting(t, &posts)
			r, _ := behindOne(t)
			front := begin(t, string(page), proxied{api: cuts, admin: r.AdminAddr().String()})
			if answer := post(t, from(t, "127.0.0.2"), "https://"+front+"/v1/payments", "key", []byte("{}")); answer.StatusCode != http.StatusBadGateway || posts.Load() != 1 {
				t.Errorf("%d posts, answered %s", posts.Load(), answer.Status)
			}
		})
	}
}

// readStream reads lines that a server writes one by one, each after the one before has come.
func readStream(t *testing.T, url string, received chan<- bool) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := from(t, "127.0.0.2").Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text := bufio.NewReader(answer.Body)
	for n := range streamedLines {
		if line, err := text.ReadString('\n'); err != nil || line != streamedLine(n) {
			t.Fatalf("%s: line %d: %q %v", url, n, line, err)
		}
		received <- true
	}
	if rest, err := io.ReadAll(text); err != nil || len(rest) > 0 {
		t.Errorf("%s: after the last line: %q %v", url, rest, err)
	}
}

// proxied is what stands behind a proxy.
type proxied struct{ api, admin string }

// from returns a client with an address of its own, which believes any certificate.
func from(t *testing.T, address string) *http.Client {
	d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{DialContext: d.DialContext, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 3 * time.Minute}
}

func post(t *testing.T, c *http.Client, url, key string, body []byte) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Forwarded-For", "203.0.113.7") // a forgery, which the proxy must not pass on as the last one
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return answer
}

// beginCutting accepts requests, counts them, and closes the connection without an answer.
func beginCutting(t *testing.T, posts *atomic.Int64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		posts.Add(1)
		panic(http.ErrAbortHandler)
	})}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return l.Addr().String()
}

const streamedLines = 5

func streamedLine(n int) string { return fmt.Sprintf("{\"line\":%d}\n", n) }

// beginStreaming answers with lines as an export does, each after the one before was
// received. A proxy that collects them passes none on, and the answer breaks off.
func beginStreaming(t *testing.T, received <-chan bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/jsonl")
		for n := range streamedLines {
			io.WriteString(w, streamedLine(n))
			http.NewResponseController(w).Flush()
			select {
			case <-received:
			case <-time.After(30 * time.Second):
				panic(http.ErrAbortHandler)
			}
		}
	})}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return l.Addr().String()
}

// block returns the block of a page that holds a text.
func block(t *testing.T, page, holds string) string {
	t.Helper()
	for _, m := range regexp.MustCompile("(?s)```[a-z]+\n(.*?)```").FindAllStringSubmatch(page, -1) {
		if strings.Contains(m[1], holds) {
			return m[1]
		}
	}
	t.Fatalf("the page has no block with %q", holds)
	return ""
}

// replaced replaces texts, each of which must be there.
func replaced(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the configuration has no %q", pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

func beginNginx(t *testing.T, page string, behind proxied) string {
	dir, front := t.TempDir(), freeAddress(t)
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePair(t, cert, key, 1)
	server := replaced(t, block(t, page, "proxy_pass"), "listen 443", "listen "+front, "http://127.0.0.1:8080", "http://"+behind.api,
		"/etc/letsencrypt/live/pay.example.com/fullchain.pem", cert, "/etc/letsencrypt/live/pay.example.com/privkey.pem", key)
	text := fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log stderr; events {}
http { access_log off; client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;
%[2]s }`, dir, server)
	return beginProxy(t, front, filepath.Join(dir, "nginx.conf"), text, func(path string) []string { return []string{"nginx", "-c", path, "-e", "stderr"} })
}

func beginHAProxy(t *testing.T, page string, behind proxied) string {
	dir, front := t.TempDir(), freeAddress(t)
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePair(t, cert, key, 1)
	both := filepath.Join(dir, "both.pem")
	var pem []byte
	for _, path := range []string{cert, key} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		pem = append(pem, b...)
	}
	if err := os.WriteFile(both, pem, 0o600); err != nil {
		t.Fatal(err)
	}
	_, admin, _ := net.SplitHostPort(behind.admin)
	text := replaced(t, block(t, page, "option httpchk"), "bind :443", "bind "+front, "/etc/haproxy/pay.example.com.pem", both,
		"10.1.0.11:8080 check port 8081", behind.api+" check port "+admin, "10.1.0.12:8080 check port 8081", behind.api+" check port "+admin)
	return beginProxy(t, front, filepath.Join(dir, "haproxy.cfg"), text, func(path string) []string { return []string{"haproxy", "-db", "-f", path} })
}

// freeAddress returns an address that was free a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// beginProxy runs a proxy until the test ends, and waits until it accepts.
func beginProxy(t *testing.T, front, path, text string, command func(path string) []string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	args := command(path)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	said := &syncBuffer{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		cmd.Wait()
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		c, err := net.Dial("tcp", front)
		if err == nil {
			c.Close()
			return front
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not accept: %v\n%s\n%s", args[0], err, said.String(), text)
		}
	}
}
