package server_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// Nothing that either address says may be taken for anything but what its
// Content-Type says, net/http's own answers included.
func TestEveryAnswerSaysNosniff(t *testing.T) {
	t.Parallel()
	r := start(t, testConfig(t))
	const host = " HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, requests := range map[string][]string{
		r.Addr().String(): {
			"GET /v1/openapi.yaml" + host, "GET /v1/payments" + host, "GET /nowhere" + host, "DELETE /v1/payments" + host, "GET //v1/payments" + host,
			"POST /v1/callbacks/sandbox/none" + host, "HEAD /v1/payments" + host, "OPTIONS *" + host, "hello\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
			"POST /v1/payments HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
		},
		r.AdminAddr().String(): {
			"GET /healthz" + host, "GET /readyz" + host, "GET /nowhere" + host, "POST /healthz" + host, "GET //healthz" + host, "hello\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
		},
	} {
		for _, request := range requests {
			c, err := net.Dial("tcp", name)
			if err != nil {
				t.Fatal(err)
			}
			c.SetDeadline(time.Now().Add(10 * time.Second))
			io.WriteString(c, request)
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatalf("%q: %v", request, err)
			}
			if got := res.Header.Values("X-Content-Type-Options"); len(got) != 1 || got[0] != "nosniff" {
				t.Errorf("%q: answered %d with X-Content-Type-Options %q", request, res.StatusCode, got)
			}
			c.Close()
		}
	}
}
