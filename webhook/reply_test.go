package webhook

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// F38: a reply that drips, never ends or is endless costs the deadline and
// four KiB. In virtual time, so that fifteen seconds are none.
func TestSlowAndEndlessReplies(t *testing.T) {
	t.Parallel()
	drip := func(pause time.Duration) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				io.WriteString(w, "a")
				w.(http.Flusher).Flush()
				select {
				case <-time.After(pause):
				case <-r.Context().Done():
				}
			}
		}
	}
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    Response
	}{
		{"one byte in ten seconds", drip(10 * time.Second), Response{Status: 200, Body: "aa", Took: 15 * time.Second, Problem: ProblemTimeout}},
		{"never closes", drip(time.Hour), Response{Status: 200, Body: "a", Took: 15 * time.Second, Problem: ProblemTimeout}},
		{"answers after the deadline", func(w http.ResponseWriter, r *http.Request) { time.Sleep(16 * time.Second) }, Response{Took: 15 * time.Second, Problem: ProblemTimeout}},
		{"answers in time", func(w http.ResponseWriter, r *http.Request) { time.Sleep(14 * time.Second) }, Response{Status: 200, Took: 14 * time.Second}},
		{"a byte under the limit", reply(maxReply), Response{Status: 200, Body: strings.Repeat("x", 1024)}},
		{"a byte over the limit", reply(maxReply + 1), Response{Status: 200, Body: strings.Repeat("x", 1024)}},
		{"a gigabyte", reply(1 << 30), Response{Status: 200, Body: strings.Repeat("x", 1024)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, c.handler, func(t *testing.T, s *Sender, m *memory) {
				if a := s.Post(t.Context(), memoryURL, nil, []byte("{}")); a != c.want {
					t.Errorf("got %+v, want %+v", a, c.want)
				}
			})
		})
	}
}

// reply answers with n bytes, or as many as are taken.
func reply(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		page := []byte(strings.Repeat("x", min(n, 4<<10)))
		for ; n > 0; n -= len(page) {
			if _, err := w.Write(page[:min(n, len(page))]); err != nil {
				return
			}
		}
	}
}

// F38 with a real network: the receiver's side sees the connection end.
func TestSlowAndEndlessRepliesOnARealNetwork(t *testing.T) {
	t.Parallel()
	sent, begun := make(chan int, 1), make(chan bool, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/huge" {
			n := 0
			for n < 1<<30 {
				m, err := w.Write(make([]byte, 64<<10))
				n += m
				if err != nil {
					break
				}
			}
			sent <- n
			return
		}
		io.WriteString(w, "a")
		w.(http.Flusher).Flush()
		begun <- true
		<-r.Context().Done()
		sent <- 1
	}))
	defer server.Close()
	allow, _ := ParseAllowed(Loopback)
	s := NewSender(SenderConfig{Allow: allow})
	defer s.Close()
	ctx, giveUp := context.WithCancel(t.Context())
	go func() {
		<-begun
		giveUp() // the deadline does the same; it is shown in virtual time
	}()
	if a := s.Post(ctx, server.URL+"/drip", nil, nil); a.Problem != ProblemCancelled || <-sent != 1 {
		t.Errorf("drip: got %+v", a)
	}
	if a := s.Post(t.Context(), server.URL+"/huge", nil, nil); !a.Delivered() {
		t.Errorf("huge: got %+v", a)
	}
	if n := <-sent; n > 64<<20 { // the system's buffers hold some
		t.Errorf("%d bytes were taken", n)
	}
}

// F59: what is kept of a reply is short and text.
func TestRepliesAreKeptAsText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                              "",
		" ok\r\n":                       "ok",
		"line\n\ttabbed":                "line\n\ttabbed",
		"caf\xe9":                       "caf",
		"café 你好":                       "café 你好",
		"\x1b[31mred\x1b[0m":            "[31mred[0m",
		"abc\u202ecba\u200b":            "abccba",
		"\x7fELF\x00\x01\x02":           "",
		"bell\a\b\v":                    "bell",
		"\xff\xfe\xfd":                  "",
		strings.Repeat("y", 5000):       strings.Repeat("y", 1024),
		strings.Repeat("é", 1000):       strings.Repeat("é", 512),
		"a" + strings.Repeat("é", 1000): "a" + strings.Repeat("é", 511),
	} {
		if got := cleanText([]byte(in)); got != want {
			t.Errorf("%.20q: got %.40q, want %.40q", in, got, want)
		}
	}
	inMemory(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" {
			t.Error("asks for a compressed reply")
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Write([]byte("\x1f\x8b\x08\x00\x00\x00"))
	}, func(t *testing.T, s *Sender, _ *memory) {
		if a := s.Post(t.Context(), memoryURL, nil, nil); a.Body != "" || !a.Delivered() {
			t.Errorf("got %+v", a)
		}
	})
}
