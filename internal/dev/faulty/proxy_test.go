package faulty

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const text = "0123456789 0123456789"

// world is a service behind a proxy.
type world struct {
	*testing.T
	asked   atomic.Int32
	reached chan struct{} // has a place for each request that the service got
	proxy   *Proxy
	address string
}

func newWorld(t *testing.T, rules ...Rule) *world {
	t.Helper()
	w := &world{T: t, reached: make(chan struct{}, 10)}
	service := httptest.NewServer(http.HandlerFunc(func(res http.ResponseWriter, r *http.Request) {
		w.asked.Add(1)
		w.reached <- struct{}{}
		body, _ := io.ReadAll(r.Body)
		res.Header().Set("X-Echo", r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("X-Api-Key")+" "+string(body))
		res.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(res, text)
	}))
	t.Cleanup(service.Close)
	var err error
	if w.proxy, err = New(service.URL+"/base/", 7, rules...); err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(w.proxy)
	t.Cleanup(func() { front.CloseClientConnections(); front.Close(); w.proxy.Close() })
	w.address = front.URL
	return w
}

// post sends a request and returns what came of it.
func (w *world) post(ctx context.Context, path string) (*http.Response, string, error) {
	w.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.address+path, strings.NewReader("hello"))
	if err != nil {
		w.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "k")
	client := &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res, string(body), err
}

// Bodies are kept only if somebody asks for them.
func TestBodiesAreKeptIfAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.proxy.KeepBodies()
	if _, _, err := w.post(t.Context(), "/payments"); err != nil {
		t.Fatal(err)
	}
	if seen := w.proxy.Seen(); len(seen) != 1 || string(seen[0].Body) != "hello" {
		t.Errorf("%+v", seen)
	}
}

// A service on this machine sees the name under which it was asked: a page of another
// site, whose name points here, must not become localhost on the way. A service elsewhere
// is asked under its own.
func TestTheNameIsForwarded(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Host }))
	defer service.Close()
	p, err := New(service.URL, 7)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	r := httptest.NewRequest(http.MethodGet, "http://evil.example/console/", nil)
	p.ServeHTTP(httptest.NewRecorder(), r)
	if got := <-asked; got != "evil.example" {
		t.Errorf("the service is asked as %s", got)
	}
	for address, want := range map[string]bool{"http://127.0.0.1:1": true, "http://[::1]:1": true, "http://localhost:1": true, "https://pay.example.com": false, "http://10.0.0.1": false} {
		u, _ := url.Parse(address)
		if onThisMachine(u) != want {
			t.Errorf("%s is on this machine: %t", address, !want)
		}
	}
}

func TestForwards(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	res, body, err := w.post(t.Context(), "/payments?a=1")
	if err != nil || res.StatusCode != 202 || body != text || res.Header.Get("X-Echo") != "POST /base/payments?a=1 k hello" {
		t.Errorf("%v, %q, %v", res, body, err)
	}
	if seen := w.proxy.Seen(); len(seen) != 1 || seen[0].Method != "POST" || seen[0].Path != "/payments?a=1" || seen[0].Body != nil || seen[0].Status != 202 {
		t.Errorf("%+v", seen)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule   Rule
		asked  int32
		fails  bool
		status int
		body   string
	}{
		{Rule{Do: LoseRequest}, 0, true, 0, ""},
		{Rule{Do: LoseAnswer}, 1, true, 0, ""},
		{Rule{Do: Reset}, 1, true, 0, ""},
		{Rule{Do: Cut}, 1, true, 202, text[:10]},
		{Rule{Do: Hang}, 0, true, 0, ""},
		{Rule{Do: HangAnswer}, 1, true, 0, ""},
		{Rule{Do: Slow, Wait: Duration(time.Millisecond)}, 1, false, 202, text},
		{Rule{Do: SlowAnswer, Wait: Duration(time.Millisecond)}, 1, false, 202, text},
		{Rule{Do: Status, Status: 429, Body: "no", Header: map[string]string{"Retry-After": "3"}}, 0, false, 429, "no"},
		{Rule{Do: StatusAfter, Status: 502}, 1, false, 502, "<html><body><h1>502 Bad Gateway</h1></body></html>\n"},
		{Rule{Do: Redirect}, 0, false, 307, ""},
		{Rule{Do: Repeat}, 2, false, 202, text},
		{Rule{Do: Rewrite, From: "012", To: "X"}, 1, false, 202, "X3456789 X3456789"},
		{Rule{Do: SetHeader, Header: map[string]string{"X-Echo": "none"}}, 1, false, 202, text},
	} {
		t.Run(string(c.rule.Do), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.rule)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if c.rule.Do == Hang || c.rule.Do == HangAnswer {
				go func() {
					if c.asked > 0 {
						<-w.reached // the wait for an answer begins here, however slow the machine is
					}
					time.Sleep(200 * time.Millisecond)
					cancel()
				}()
			}
			res, body, err := w.post(ctx, "/payments")
			if (err != nil) != c.fails || body != c.body || w.asked.Load() != c.asked {
				t.Errorf("%q, %v, asked %d times", body, err, w.asked.Load())
			}
			if res != nil && res.StatusCode != c.status {
				t.Errorf("status %d", res.StatusCode)
			}
			if c.rule.Do == SetHeader && res.Header.Get("X-Echo") != "none" || c.rule.Do == Status && res.Header.Get("Retry-After") != "3" {
				t.Errorf("%v", res.Header)
			}
		})
	}
}

// Rules are about some requests only, and count them.
func TestRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Rule{On: "POST /payments", Nth: 2, Do: Status, Status: 500}, Rule{On: "POST /payouts*", First: 2, Do: Status, Status: 501}, Rule{On: "GET /payments", Do: Status, Status: 504})
	for i, c := range []struct {
		path   string
		status int
	}{
		{"/payments", 202}, {"/events", 202}, {"/payments", 500}, {"/payments", 202}, {"/payouts/1/cancel", 501}, {"/payouts", 501}, {"/payouts", 202},
	} {
		res, _, err := w.post(t.Context(), c.path)
		if err != nil || res.StatusCode != c.status {
			t.Errorf("%d %s: %v, %v", i, c.path, res, err)
		}
	}
}

// The same seed makes the same choices, and about as many as the share says.
func TestSeed(t *testing.T) {
	t.Parallel()
	choices := func(seed uint64) (out string) {
		p, err := New("http://127.0.0.1:1", seed, Rule{Do: LoseAnswer, Share: 0.2})
		if err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			rule, _ := p.choose(httptest.NewRequest("POST", "/payments", nil), nil)
			out += map[bool]string{true: "x", false: "."}[rule != nil]
		}
		return out
	}
	first := choices(1)
	if first != choices(1) || first == choices(2) {
		t.Error("the seed does not decide")
	}
	if n := strings.Count(first, "x"); n < 150 || n > 250 {
		t.Errorf("%d of 1000 for 20%%", n)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	if s, err := ParseShare("20%"); s != 0.2 || err != nil {
		t.Errorf("%v, %v", s, err)
	}
	if r, err := ParseSlow("2s:5%"); r.Do != Slow || time.Duration(r.Wait) != 2*time.Second || r.Share != 0.05 || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := ParseStatus("503:3%"); r.Do != Status || r.Status != 503 || r.Share != 0.03 || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	for _, bad := range []string{"", "20", "%", "0%", "101%", "-1%", "NaN%", "2s", "2s:", ":5%", "x:5%", "99:5%", "700:5%", "-2s:5%"} {
		if _, err := ParseShare(bad); err == nil {
			t.Errorf("share %q", bad)
		}
		if _, err := ParseSlow(bad); err == nil {
			t.Errorf("slow %q", bad)
		}
		if _, err := ParseStatus(bad); err == nil {
			t.Errorf("status %q", bad)
		}
	}
	for _, bad := range []Rule{{}, {Do: "x"}, {Do: Slow}, {Do: Status}, {Do: Rewrite}, {Do: SetHeader}, {Do: Cut, Share: 2}} {
		if _, err := New("http://127.0.0.1:1", 1, bad); err == nil {
			t.Errorf("%+v", bad)
		}
	}
	for _, bad := range []string{"", "127.0.0.1:1", "ftp://a", "http://"} {
		if _, err := New(bad, 1); err == nil {
			t.Errorf("%q", bad)
		}
	}
}
