package api_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"till/api"
)

// A proxy that goes by the length where we go by the chunks would take the rest
// of one client's request for the next one's: such a request is refused, and
// nothing that follows on its connection is read.
func TestARequestWithBothLengthAndChunksIsRefused(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	const (
		post     = "POST /v1/payments HTTP/1.1\r\nHost: a\r\n"
		chunks   = "\r\n2\r\n{}\r\n0\r\n\r\n"
		smuggled = "GET /v1/openapi.yaml HTTP/1.1\r\nHost: a\r\n\r\n"
		good     = "GET /v1/openapi.yaml HTTP/1.1\r\nHost: a\r\n\r\n"
	)
	for name, c := range map[string]struct {
		send string
		good int // answers before the refusal
	}{
		"length first":           {post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n" + chunks, 0},
		"chunks first":           {post + "Transfer-Encoding: chunked\r\nContent-Length: 12\r\n" + chunks, 0},
		"other letters":          {post + "tRANSFER-eNCODING: chunked\r\ncONTENT-lENGTH: 0\r\n" + chunks, 0},
		"bare line feeds":        {"POST /v1/payments HTTP/1.1\nHost: a\nContent-Length: 2\nTransfer-Encoding: chunked\n\n2\r\n{}\r\n0\r\n\r\n", 0},
		"the length twice":       {post + "Content-Length: 2\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n" + chunks, 0},
		"HTTP/1.0":               {"POST /v1/payments HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", 0},
		"a folded encoding":      {post + "Content-Length: 2\r\nTransfer-Encoding:\r\n chunked\r\n" + chunks, 0},
		"a folded length":        {post + "Transfer-Encoding: chunked\r\nContent-Length:\r\n\t2\r\n" + chunks, 0},
		"a route without a body": {"GET /v1/openapi.yaml HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n" + chunks, 0},
		"behind a good one":      {good + post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n" + chunks, 1},
		"behind a length": {"GET /v1/openapi.yaml HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n\r\n\r\nx" +
			post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n" + chunks, 1},
		"behind chunks": {"GET /v1/openapi.yaml HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;x=y\r\na\r\nB\r\nContent-Len\r\n0\r\nContent-Length: 3\r\n\r\n" +
			post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n" + chunks, 1},
	} {
		for _, dribble := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dribble %v", name, dribble), func(t *testing.T) {
				t.Parallel()
				conn, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				conn.SetDeadline(time.Now().Add(20 * time.Second))
				go func() {
					all := c.send + smuggled
					for step := len(all); len(all) > 0; all = all[step:] {
						if dribble {
							step = 1
						}
						if _, err := io.WriteString(conn, all[:step]); err != nil {
							return
						}
					}
				}()
				in := bufio.NewReader(conn)
				for range c.good {
					a, err := http.ReadResponse(in, nil)
					if err != nil || a.StatusCode != 200 {
						t.Fatalf("a good request was answered %v, %v", a, err)
					}
					io.Copy(io.Discard, a.Body)
				}
				a, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(a.Body)
				wantProblem(t, a, body, 400, "malformed_body")
				if rest, _ := io.ReadAll(in); len(rest) > 0 || !a.Close {
					t.Errorf("the connection goes on: %.100s", rest)
				}
			})
		}
	}
}

// What is framed one way is answered, however it is cut into packets and
// however many requests share a connection.
func TestRequestsFramedOneWayAreAnswered(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := api.Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Echo", fmt.Sprint(len(b)))
	}))
	defer srv.Close()
	go srv.Serve(api.Guard(l))

	random := rand.New(rand.NewPCG(1, 18))
	for range 20 {
		var send strings.Builder
		var want []int
		for range 50 {
			n := random.IntN(6000)
			body := strings.Repeat("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", n/40+1)[:n]
			switch random.IntN(4) {
			case 0:
				send.WriteString("GET / HTTP/1.1\r\nHost: a\r\nX-Long: " + strings.Repeat("x", n) + "\r\n\r\n")
				n = 0
			case 1:
				fmt.Fprintf(&send, "POST / HTTP/1.1\r\nHost: a\r\ncontent-length:%d \r\n\r\n%s\r\n", n, body) // and a line break that net/http lets pass
			case 2:
				fmt.Fprintf(&send, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\nContent-Length: %d\r\n\r\n%s", n, n, body)
			default:
				send.WriteString("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n")
				for left := body; left != ""; {
					part := left[:1+random.IntN(len(left))]
					fmt.Fprintf(&send, "%x;e=f\r\n%s\r\n", len(part), part)
					left = left[len(part):]
				}
				send.WriteString("0\r\nX: y\r\n\r\n")
			}
			want = append(want, n)
		}
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		go func() {
			for all := send.String(); len(all) > 0; {
				n := 1 + rand.IntN(min(len(all), 3000))
				io.WriteString(conn, all[:n])
				all = all[n:]
			}
		}()
		in := bufio.NewReader(conn)
		for i, n := range want {
			a, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, a.Body)
			if a.StatusCode != 200 || a.Header.Get("Echo") != fmt.Sprint(n) {
				t.Fatalf("request %d of %d bytes was answered %d %s", i, n, a.StatusCode, a.Header.Get("Echo"))
			}
		}
		conn.Close()
	}
}
