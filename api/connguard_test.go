package api

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"till"
)

func TestCannedAnswersAreKnown(t *testing.T) {
	t.Parallel()
	const plain = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
	for text, want := range map[string]till.Code{
		"HTTP/1.1 431 Request Header Fields Too Large" + plain + "431":                          till.CodeHeadersTooLarge,
		"HTTP/1.1 400 Bad Request" + plain + "400 Bad Request":                                  till.CodeMalformedBody,
		"HTTP/1.1 400 Bad Request: missing required Host header" + plain + "400":                till.CodeMalformedBody,
		"HTTP/1.1 501 Not Implemented" + plain + "Unsupported transfer encoding":                till.CodeMalformedBody,
		"HTTP/1.1 505 HTTP Version Not Supported: unsupported protocol version" + plain + "505": till.CodeMalformedBody,
		"HTTP/1.1 417 Expectation Failed\r\nConnection: close\r\nContent-Length: 0\r\n\r\n":     till.CodeMalformedBody,
		"HTTP/1.1 400 Bad Request\r\nApi-Version: 1.1\r\n\r\n{}":                                "",
		"HTTP/1.1 200 OK\r\n\r\n":   "",
		"HTTP/1.1 100 Continue\r\n": "",
		"HTTP/1.1 ":                 "",
		"HTTP/1.1 400":              "",
		"":                          "",
		`{"metadata":{"x":"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"}}`: "",
		`HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n`:                      "",
	} {
		if got := cannedCode([]byte(text)); got != want {
			t.Errorf("%.50q: got %q, want %q", text, got, want)
		}
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := Server(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "served") }))
	defer srv.Close()
	go srv.Serve(&guard{Listener: l, max: 2})

	ask := func(c net.Conn) string {
		c.SetDeadline(time.Now().Add(time.Minute))
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		a, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return err.Error()
		}
		b, _ := io.ReadAll(a.Body)
		return a.Status + " " + a.Header.Get("Retry-After") + " " + string(b)
	}
	dial := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first, second := dial(), dial()
	defer second.Close()
	if a, b := ask(first), ask(second); !strings.HasSuffix(a, "served") || !strings.HasSuffix(b, "served") {
		t.Fatal(a, b)
	}
	third := dial()
	defer third.Close()
	third.SetDeadline(time.Now().Add(time.Minute))
	said, _ := io.ReadAll(third) // it is answered before it asks
	if !strings.HasPrefix(string(said), "HTTP/1.1 503 ") || !strings.Contains(string(said), "Retry-After: 1\r\n") || !strings.Contains(string(said), "service_unavailable") {
		t.Errorf("one too many was told %q", said)
	}
	first.Close()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) { // until the server has noticed
		c := dial()
		answer := ask(c)
		c.Close()
		if strings.HasSuffix(answer, "served") {
			return
		}
	}
	t.Error("a closed connection did not make room")
}
