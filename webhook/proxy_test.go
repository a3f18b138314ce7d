package webhook

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// A proxy that the operator named is used, and gets no forbidden
// address.
func TestProxy(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Method+" "+r.RequestURI+" "+r.Header.Get("Proxy-Authorization"))
		if r.Method == http.MethodConnect {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer server.Close()
	proxy, err := ParseProxy(strings.Replace(server.URL, "://", "://till:pass@", 1))
	if err != nil {
		t.Fatal(err)
	}
	s := NewSender(SenderConfig{Resolver: openZone(t).resolver(), Proxy: proxy})
	defer s.Close()
	for _, r := range corpus(t, "testdata/forbidden.txt") {
		if r.first == "text" || r.first == "name" {
			if a := s.Post(t.Context(), r.url, nil, nil); a.Problem != ProblemAddressRefused {
				t.Errorf("%s: got %+v", r.url, a)
			}
		}
	}
	if len(asked) != 0 {
		t.Errorf("the proxy was asked for %v", asked)
	}
	for _, c := range []struct{ url, problem string }{
		{"http://shop.example.com/hook", ""},
		{"https://shop.example.com/hook", ProblemConnect}, // the proxy refuses
		{"http://nowhere.example.com/", ProblemDNS},
	} {
		if a := s.Post(t.Context(), c.url, nil, nil); a.Problem != c.problem || a.Delivered() != (c.problem == "") {
			t.Errorf("%s: got %+v", c.url, a)
		}
	}
	const auth = " Basic dGlsbDpwYXNz"
	if got, want := strings.Join(asked, "\n"), "POST http://shop.example.com/hook"+auth+"\nCONNECT shop.example.com:443"+auth; got != want {
		t.Errorf("the proxy was asked\n%s\nwant\n%s", got, want)
	}

	proxy, err = ParseProxy("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	s = NewSender(SenderConfig{Resolver: openZone(t).resolver(), Proxy: proxy})
	for _, url := range []string{"http://shop.example.com/hook", "https://shop.example.com/hook"} {
		if a := s.Post(t.Context(), url, nil, nil); a.Problem != ProblemConnect {
			t.Errorf("the proxy is away: got %+v", a)
		}
	}
}

func TestParseProxy(t *testing.T) {
	t.Parallel()
	if u, err := ParseProxy(""); u != nil || err != nil {
		t.Errorf("nothing is read as %v, %v", u, err)
	}
	for _, bad := range []string{"proxy:3128", "socks5://proxy", "http://", "http://proxy/path", "http://proxy?x", "http://till:secret@proxy/#x", "://"} {
		if _, err := ParseProxy(bad); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}
