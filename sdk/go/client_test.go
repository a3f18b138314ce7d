package till

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	testKey   = "till_test_abc_secretsecretsecret"
	testPhone = "242061234567"
	uuid1     = "6f1c1a52-0d0c-4d5a-9a62-51f9a6f0a3c1"
)

// script is a service that answers one thing after the other, and the last one
// for ever.
type script struct {
	*testing.T
	mu      sync.Mutex
	answers []http.HandlerFunc
	asked   []string // method, path and key of each request
	bodies  []string
	url     string
}

func newScript(t *testing.T, answers ...http.HandlerFunc) *script {
	t.Helper()
	s := &script{T: t, answers: answers}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL + "/v1"
	return s
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.asked = append(s.asked, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("X-Api-Key"))
	s.bodies = append(s.bodies, string(body))
	answer := s.answers[min(len(s.asked), len(s.answers))-1]
	s.mu.Unlock()
	answer(w, r)
}

func (s *script) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func (s *script) sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies)
}

// client is a client of the script that does not really wait.
func (s *script) client(options ...Option) (*Client, *[]time.Duration) {
	s.Helper()
	c, err := New(s.url, Key(testKey), options...)
	if err != nil {
		s.Fatal(err)
	}
	var waited []time.Duration
	c.sleep = func(ctx context.Context, d time.Duration) error { waited = append(waited, d); return ctx.Err() }
	c.random = func() float64 { return 0 }
	return c, &waited
}

func says(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func problem(status int, code string, headers ...string) http.HandlerFunc {
	return says(status, fmt.Sprintf(`{"code":%q,"status":%d,"detail":"d","request_id":"r-1"}`, code, status), headers...)
}

// hangUp closes the connection without an answer.
func hangUp(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

func payment(status string) string {
	return fmt.Sprintf(`{"id":"p-1","status":%q,"idempotency_key":%q,"created_at":"2026-11-15T05:51:53.123456Z","resolution":{"state":"waiting"}}`, status, uuid1)
}

func wish() CreatePayment {
	return CreatePayment{Method: "mtn_momo", Country: Ptr("CG"), Amount: Minor("5000", "XAF"), IdempotencyKey: uuid1, Customer: CreatePaymentCustomer{Phone: testPhone}}
}

// A create is repeated with the same bytes, and its key.
func TestCreateIsRepeated(t *testing.T) {
	t.Parallel()
	s := newScript(t, hangUp, says(502, "<html>"), problem(500, CodeInternalError), says(202, payment(Pending)))
	var tries []Try
	c, waited := s.client(WithOnTry(func(t Try) { tries = append(tries, t) }))
	p, err := c.Payments.Create(t.Context(), wish())
	if err != nil || p.ID != "p-1" {
		t.Fatalf("%v, %v", p, err)
	}
	if len(s.sent()) != 4 || s.sent()[0] != s.sent()[3] || !strings.Contains(s.sent()[0], uuid1) {
		t.Errorf("bodies %q", s.sent())
	}
	if want := []time.Duration{125 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond}; !slices.Equal(*waited, want) {
		t.Errorf("waited %v, want %v", *waited, want)
	}
	if len(tries) != 4 || tries[0].Status != 0 || tries[0].Reason == "" || tries[1].Status != 502 || tries[3].Status != 202 || tries[3].Delay == 0 {
		t.Errorf("%+v", tries)
	}
}

// Errors are told apart, and hold nothing secret.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		answers []http.HandlerFunc
		as      string
		code    string
		tries   int
	}{
		{"refused", []http.HandlerFunc{problem(422, CodeValidationFailed)}, "refused", CodeValidationFailed, 1},
		{"unavailable", []http.HandlerFunc{problem(429, CodeRateLimited, "Retry-After", "3600")}, "unavailable", CodeRateLimited, 1},
		{"unclear", []http.HandlerFunc{problem(500, CodeInternalError)}, "unclear", CodeInternalError, 5},
		{"no answer", []http.HandlerFunc{hangUp}, "unclear", "", 5},
		{"401 after no answer", []http.HandlerFunc{hangUp, problem(401, CodeInvalidAPIKey)}, "unclear", CodeInvalidAPIKey, 2},
		{"conflict", []http.HandlerFunc{problem(409, "conflict")}, "refused", "conflict", 1},
		{"redirect", []http.HandlerFunc{says(302, "", "Location", "http://127.0.0.1:1/")}, "refused", "", 1},
		{"another thing", []http.HandlerFunc{says(200, `{"ok":true}`)}, "unclear", "", 1},
		{"an echo", []http.HandlerFunc{says(400, `{"code":"bad","detail":"X-Api-Key: `+testKey+`"}`)}, "refused", "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, c.answers...)
			client, _ := s.client()
			_, err := client.Payments.Create(t.Context(), wish())
			var (
				refused     *Refused
				unavailable *Unavailable
				unclear     *Unclear
				failure     *Failure
			)
			as := map[bool]string{errors.As(err, &refused): "refused"}[true] + map[bool]string{errors.As(err, &unavailable): "unavailable"}[true] + map[bool]string{errors.As(err, &unclear): "unclear"}[true]
			if as != c.as || !errors.As(err, &failure) || failure.Code != c.code || failure.IdempotencyKey != uuid1 || len(s.requests()) != c.tries {
				t.Errorf("%s: %v (%+v), asked %d times", as, err, failure, len(s.requests()))
			}
			for _, secret := range []string{testKey, "secretsecret", testPhone, "mtn_momo"} {
				if text := fmt.Sprintf("%v %+v %#v", err, failure, failure); strings.Contains(text, secret) {
					t.Errorf("%s is in %s", secret, text)
				}
			}
		})
	}
}

// A refusal after a lost answer is one only if a read by the key finds nothing.
func TestRefusedIfAbsent(t *testing.T) {
	t.Parallel()
	refusal := problem(422, CodeValidationFailed)
	for name, c := range map[string]struct {
		read http.HandlerFunc
		want string
	}{
		"absent":  {says(200, `{"items":[],"total":0,"limit":50,"offset":0}`), "refused"},
		"there":   {says(200, `{"items":[`+payment(Processing)+`],"total":1,"limit":50,"offset":0}`), "taken"},
		"unknown": {problem(403, CodeInsufficientScope), "unclear"},
		"portal":  {says(200, `{"ok":true}`), "unclear"},
	} {
		s := newScript(t, hangUp, refusal, c.read)
		client, _ := s.client()
		p, err := client.Payments.Create(t.Context(), wish())
		got := "taken"
		var refused *Refused
		var unclear *Unclear
		if errors.As(err, &refused) {
			got = "refused"
		} else if errors.As(err, &unclear) {
			got = "unclear"
		}
		if got != c.want || (p != nil) != (got == "taken") || !strings.Contains(s.requests()[2], "idempotency_key="+uuid1) {
			t.Errorf("%s: %s, %v, %v", name, got, err, s.requests())
		}
	}
}

func checkout(state string) string {
	return `{"id":"c-1","url":"https://pay.example.com/p/X","state":"` + state + `","idempotency_key":"` + uuid1 + `","created_at":"2026-11-15T05:51:53.123456Z","return_secret":"r-1"}`
}

// A checkout is made again with the same bytes. No list finds it by its key: a refusal after
// a lost answer is unclear, and the same call is how to look.
func TestCheckouts(t *testing.T) {
	t.Parallel()
	order := CreateCheckout{Amount: Minor("5000", "XAF"), IdempotencyKey: strings.ToUpper(uuid1), Reference: Ptr("order-7")}
	s := newScript(t, hangUp, problem(500, CodeInternalError), says(201, checkout(CheckoutStateOpen)))
	c, _ := s.client()
	made, err := c.Checkouts.Create(t.Context(), order)
	if err != nil || made.ID != "c-1" || Value(made.URL) == "" || made.ReturnSecret != "r-1" {
		t.Fatalf("%+v, %v", made, err)
	}
	if sent := s.sent(); len(sent) != 3 || sent[0] != sent[2] || !strings.Contains(sent[0], `"reference":"order-7"`) {
		t.Errorf("bodies %q", sent)
	}
	for name, answers := range map[string][]http.HandlerFunc{
		"refused after a lost answer": {hangUp, problem(422, CodeValidationFailed)},
		"another thing":               {says(200, `{"ok":true}`)},
		"of another key":              {says(201, strings.ReplaceAll(checkout(CheckoutStateOpen), uuid1, "6f1c1a52-0d0c-4d5a-9a62-51f9a6f0a3c2"))},
	} {
		s := newScript(t, answers...)
		c, _ := s.client()
		var unclear *Unclear
		if made, err := c.Checkouts.Create(t.Context(), order); !errors.As(err, &unclear) || made != nil || unclear.IdempotencyKey != order.IdempotencyKey || len(s.requests()) != len(answers) {
			t.Errorf("%s: %v, %v, asked %q", name, made, err, s.requests())
		}
	}
	if _, err := c.Checkouts.Create(t.Context(), CreateCheckout{}); !errors.Is(err, ErrNoIdempotent) {
		t.Errorf("without a key: %v", err)
	}

	s = newScript(t, says(200, checkout(CheckoutStatePaid)), says(200, checkout(CheckoutStatePaid)), says(200, checkout(CheckoutStateCancelled)),
		says(200, `{"items":[`+checkout(CheckoutStatePaid)+`],"total":1,"limit":50,"offset":0}`))
	c, _ = s.client()
	if p, err := c.Checkouts.Get(t.Context(), "c-1"); err != nil || p.State != CheckoutStatePaid {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := c.Checkouts.Await(t.Context(), "c-1", time.Hour); err != nil || p.State != CheckoutStatePaid {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := c.Checkouts.Cancel(t.Context(), "c-1"); err != nil || p.State != CheckoutStateCancelled {
		t.Errorf("%+v, %v", p, err)
	}
	filter := CheckoutFilter{State: CheckoutStatePaid, Reference: "order-7", From: "2026-11-01T00:00:00Z", To: "2026-12-01T00:00:00Z", OldestFirst: true, Limit: 9, Offset: 1}
	if p, err := c.Checkouts.Page(t.Context(), filter); err != nil || p.Total != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	n := 0
	for p, err := range c.Checkouts.All(t.Context(), filter) {
		if n++; err != nil || p.ID != "c-1" {
			t.Errorf("%+v, %v", p, err)
		}
	}
	const narrowed = "from_date=2026-11-01T00%3A00%3A00Z&"
	const rest = "&order=asc&reference=order-7&state=paid&to_date=2026-12-01T00%3A00%3A00Z "
	want := []string{"GET /v1/checkouts/c-1 ", "GET /v1/checkouts/c-1?wait=30 ", "POST /v1/checkouts/c-1/cancel ",
		"GET /v1/checkouts?" + narrowed + "limit=9&offset=1" + rest, "GET /v1/checkouts?" + narrowed + "limit=200&offset=0" + rest}
	for i := range want {
		want[i] += testKey
	}
	if got := s.requests(); n != 1 || !slices.Equal(got, want) {
		t.Errorf("%d, asked %q, want %q", n, got, want)
	}
}

// What cannot be repeated is not, unless not one byte was written.
func TestNeverRepeated(t *testing.T) {
	t.Parallel()
	for _, answer := range []http.HandlerFunc{hangUp, says(502, "<html>"), problem(503, CodeServiceUnavailable, "Retry-After", "1")} {
		s := newScript(t, answer)
		c, _ := s.client()
		_, err := c.APIKeys.Create(t.Context(), CreateAPIKey{})
		var unclear *Unclear
		if !errors.As(err, &unclear) || len(s.requests()) != 1 {
			t.Errorf("%v, asked %d times", err, len(s.requests()))
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + l.Addr().String()
	_ = l.Close()
	tries := 0
	c, err := New(address, Key(testKey), WithOnTry(func(Try) { tries++ }))
	if err != nil {
		t.Fatal(err)
	}
	c.sleep = func(context.Context, time.Duration) error { return nil }
	_, err = c.APIKeys.Create(t.Context(), CreateAPIKey{})
	var unavailable *Unavailable
	if !errors.As(err, &unavailable) || tries != 5 || unavailable.Reason != reasonUnreachable {
		t.Errorf("%v after %d tries", err, tries)
	}
}

// brokenTransport fails as it likes, without a word about connections.
type brokenTransport struct{ err error }

func (b brokenTransport) RoundTrip(*http.Request) (*http.Response, error) { return nil, b.err }

// A failure proves that nothing was sent only if no connection was made.
func TestUnsent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		sent bool
	}{
		"unknown":   {errors.New("it did not work"), true},
		"cut":       {io.ErrUnexpectedEOF, true},
		"read":      {&net.OpError{Op: "read", Err: errors.New("reset")}, true},
		"dial":      {&net.OpError{Op: "dial", Err: errors.New("refused")}, false},
		"name":      {&net.DNSError{Err: "no such host", IsNotFound: true}, false},
		"our proxy": {&net.OpError{Op: "proxyconnect", Err: errors.New("refused")}, false},
	} {
		client, err := New("https://pay.example.com", Key(testKey), WithTries(1), WithTransport(brokenTransport{c.err}))
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Payments.Create(t.Context(), wish())
		var unclear *Unclear
		if errors.As(err, &unclear) != c.sent {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A delete that is gone when it is repeated was done.
func TestDeleteTwice(t *testing.T) {
	t.Parallel()
	s := newScript(t, hangUp, problem(404, CodeWebhookEndpointNotFound))
	c, _ := s.client()
	if err := c.Webhooks.Delete(t.Context(), "e-1"); err != nil {
		t.Error(err)
	}
	s = newScript(t, problem(404, CodeWebhookEndpointNotFound))
	c, _ = s.client()
	var refused *Refused
	if err := c.Webhooks.Delete(t.Context(), "e-1"); !errors.As(err, &refused) {
		t.Error(err)
	}
}

// Retry-After is the floor, and beyond the deadline the call gives up at once.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	s := newScript(t, problem(503, CodeServiceUnavailable, "Retry-After", "4"), says(200, payment(Success)))
	c, waited := s.client()
	if _, err := c.Payments.Get(t.Context(), "p-1"); err != nil || !slices.Equal(*waited, []time.Duration{4 * time.Second}) {
		t.Errorf("%v, waited %v", err, *waited)
	}
	s = newScript(t, problem(503, CodeServiceUnavailable, "Retry-After", "31"))
	c, waited = s.client()
	_, err := c.Payments.Get(t.Context(), "p-1")
	var unavailable *Unavailable
	if !errors.As(err, &unavailable) || unavailable.RetryAfter != 31*time.Second || len(*waited) != 0 || len(s.requests()) != 1 {
		t.Errorf("%v, waited %v", err, *waited)
	}
}

// With no tokens left the first failure is the answer; successes give them back.
func TestBudget(t *testing.T) {
	t.Parallel()
	s := newScript(t, says(500, ""))
	c, _ := s.client()
	for range 40 {
		_, _ = c.Payments.Get(t.Context(), "p-1")
	}
	if len(s.requests()) != 40+maxTokens/repeatCost {
		t.Errorf("%d requests for 40 calls", len(s.requests()))
	}
	s.mu.Lock()
	s.answers = []http.HandlerFunc{says(200, payment(Success))}
	s.mu.Unlock()
	for range 12 {
		if _, err := c.Payments.Get(t.Context(), "p-1"); err != nil {
			t.Fatal(err)
		}
	}
	if c.budget.tokens != 12 {
		t.Errorf("%d tokens after 12 successes", c.budget.tokens)
	}
}

// A call that is slow ends with its deadline, and says so.
func TestDeadline(t *testing.T) {
	t.Parallel()
	s := newScript(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(time.Minute):
		}
	})
	c, err := New(s.url, Key(testKey), WithDeadline(1500*time.Millisecond), WithTryTimeout(500*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err = c.Payments.Create(t.Context(), wish())
	var unclear *Unclear
	if !errors.As(err, &unclear) || unclear.Reason != reasonTimeout || time.Since(began) > 20*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Payments.Get(ctx, "p-1"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// The key is asked for each call, and once more after a 401.
func TestKeySource(t *testing.T) {
	t.Parallel()
	s := newScript(t, problem(401, CodeInvalidAPIKey), says(200, payment(Success)))
	var n atomic.Int32
	c, err := New(s.url, func(context.Context) (string, error) { return "till_test_k" + strconv.Itoa(int(n.Add(1))), nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Payments.Get(t.Context(), "p-1"); err != nil || len(s.requests()) != 2 || !strings.HasSuffix(s.requests()[1], "_k2") {
		t.Errorf("%v, %v", err, s.requests())
	}
	s = newScript(t, problem(401, CodeInvalidAPIKey))
	c, _ = s.client()
	if _, err := c.Payments.Get(t.Context(), "p-1"); err == nil || len(s.requests()) != 1 {
		t.Errorf("%v, %v", err, s.requests())
	}
	for key, want := range map[string]error{"": ErrNoKey, "till_live_x": ErrWrongMode, "till_test_x\n": ErrBadKey, "till_test_ x": ErrBadKey} {
		c, err := New(s.url, Key(key), WithExpect("test"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Payments.Get(t.Context(), "p-1"); !errors.Is(err, want) || key != "" && strings.Contains(err.Error(), key) {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func TestBaseURL(t *testing.T) {
	t.Parallel()
	for base, ok := range map[string]bool{
		"https://pay.example.com/v1": true, "http://127.0.0.1:8080/v1": true, "http://localhost:1/v1/": true, "http://[::1]:1/v1": true,
		"http://pay.example.com/v1": false, "http://10.0.0.1/v1": false, "ftp://127.0.0.1": false, "": false, "pay.example.com": false,
		"https://user:pass@pay.example.com": false, "https://pay.example.com/v1?key=1": false,
	} {
		if _, err := New(base, Key(testKey)); (err == nil) != ok {
			t.Errorf("%q: %v", base, err)
		}
	}
	if _, err := New("http://pay.example.com/v1", Key(testKey), WithPlainHTTP()); err != nil {
		t.Error(err)
	}
	if _, err := New("https://pay.example.com", nil); !errors.Is(err, ErrNoKey) {
		t.Error(err)
	}
	c, err := New("https://pay.example.com", Key(testKey))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Payments.Create(t.Context(), CreatePayment{}); !errors.Is(err, ErrNoIdempotent) {
		t.Error(err)
	}
}

// Every request says who it is, and nothing else about the machine.
func TestUserAgent(t *testing.T) {
	t.Parallel()
	var got http.Header
	s := newScript(t, func(w http.ResponseWriter, r *http.Request) { got = r.Header; says(200, payment(Success))(w, r) })
	c, _ := s.client()
	if _, err := c.Payments.Get(t.Context(), "p-1"); err != nil || got.Get("User-Agent") != "till-sdk-go/"+Version+" (api 1.1)" {
		t.Errorf("%v, %v", err, got)
	}
}

// fakeList is a list of payments that grows and changes while it is read.
type fakeList struct {
	mu    sync.Mutex
	items []Payment // oldest first
	reads int
	grow  func(l *fakeList)
}

func (l *fakeList) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := r.URL.Query()
	found := []Payment{}
	for _, p := range l.items {
		if at := string(p.CreatedAt); (q.Get("from_date") == "" || at >= q.Get("from_date")) && (q.Get("to_date") == "" || at <= q.Get("to_date")) && (q.Get("status") == "" || q.Get("status") == p.Status) {
			found = append(found, p)
		}
	}
	if q.Get("order") != "asc" {
		slices.Reverse(found)
	}
	total := len(found)
	offset, _ := strconv.Atoi(q.Get("offset"))
	limit, _ := strconv.Atoi(q.Get("limit"))
	found = found[min(offset, total):min(offset+limit, total)]
	_ = json.NewEncoder(w).Encode(PaymentPage{Items: found, Total: int64(total), Limit: int64(limit), Offset: int64(offset)})
	if l.reads++; l.grow != nil {
		l.grow(l)
	}
}

func (l *fakeList) add(n int, at func(i int) time.Time) {
	for i := range n {
		l.items = append(l.items, Payment{ID: fmt.Sprint("p-", len(l.items)), Status: Pending, CreatedAt: At(at(i))})
	}
}

// Lists go by time: what arrives or changes meanwhile neither repeats nor hides
// others, and a moment may have more records than a page.
func TestAll(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)
	each := func(i int) time.Time { return start.Add(time.Duration(i) * time.Microsecond) }
	same := func(int) time.Time { return start }
	for _, c := range []struct {
		name  string
		n     int
		at    func(int) time.Time
		asc   bool
		grow  func(*fakeList)
		where string
	}{
		{name: "nothing", n: 0, at: each},
		{name: "one page", n: 199, at: each},
		{name: "exactly a page", n: 200, at: each},
		{name: "many pages, newest first", n: 1001, at: each},
		{name: "many pages, oldest first", n: 1001, at: each, asc: true},
		{name: "all at one moment", n: 700, at: same},
		{name: "three at each moment", n: 1000, at: func(i int) time.Time { return each(i / 3) }, asc: true},
		{name: "while it grows", n: 1000, at: each, grow: func(l *fakeList) { l.add(50, func(i int) time.Time { return each(10_000*l.reads + i) }) }},
		{name: "while its status changes", n: 1000, at: each, where: Pending, grow: func(l *fakeList) {
			for i := range l.items[:min(len(l.items), 1000-l.reads*200)] {
				if i%7 == 0 {
					l.items[i].Status = Success
				}
			}
		}},
	} {
		l := &fakeList{grow: c.grow}
		l.add(c.n, c.at)
		server := httptest.NewServer(l)
		client, err := New(server.URL, Key(testKey))
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		for p, err := range client.Payments.All(t.Context(), PaymentFilter{OldestFirst: c.asc, Status: c.where}) {
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			seen[p.ID]++
		}
		server.Close()
		l.mu.Lock()
		for i := range c.n {
			id := fmt.Sprint("p-", i)
			changed := c.where != "" && l.items[i].Status != c.where
			if seen[id] > 1 || seen[id] == 0 && !changed {
				t.Errorf("%s: %s came %d times", c.name, id, seen[id])
			}
		}
		l.mu.Unlock()
	}
}

// An export that is cut is not taken for the whole.
func TestExport(t *testing.T) {
	t.Parallel()
	line := `{"id":"t-1","sequence":1,"amount":{"value":"999999999999999","currency":"XAF"}}` + "\n"
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		lines  int
		fails  bool
	}{
		"whole": {says(200, line+line+"\n"+line), 3, false},
		"empty": {says(200, ""), 0, false},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, line+line[:20])
		}, 1, true},
		"refused": {problem(403, CodeInsufficientScope), 0, true},
		"hangs": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, line)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, 1, true},
	} {
		s := newScript(t, c.answer)
		client, _ := s.client(WithTryTimeout(3 * time.Second))
		lines, failed := 0, false
		for row, err := range client.Transactions.Export(t.Context(), TransactionFilter{}) {
			if err != nil {
				failed = true
			} else if lines++; row.Amount.Value != "999999999999999" {
				t.Errorf("%s: %+v", name, row)
			}
		}
		if lines != c.lines || failed != c.fails || len(s.requests()) != 1 {
			t.Errorf("%s: %d lines, failed %v, asked %v", name, lines, failed, s.requests())
		}
	}
}

// Every operation of the table has its place, and no path is without its values.
func TestOperations(t *testing.T) {
	t.Parallel()
	c, err := New("https://pay.example.com/v1", Key(testKey))
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range operations {
		var params []string
		for range strings.Count(op.path, "{") {
			params = append(params, "a/b?c")
		}
		req, err := c.request(t.Context(), request{op: op, params: params}, testKey)
		if err != nil || strings.Contains(req.URL.String(), "{") || strings.Contains(req.URL.String(), "?") || req.Header.Get("X-Api-Key") != testKey {
			t.Errorf("%s: %v, %v", op.id, req, err)
		}
	}
}

// A certificate that is wrong is not met again: it does not pass by itself, and not one byte
// was written.
func TestCertificate(t *testing.T) {
	t.Parallel()
	asked := false
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	client, err := New(server.URL+"/v1", Key(testKey))
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Payments.Create(t.Context(), wish())
	var unavailable *Unavailable
	if !errors.As(err, &unavailable) || unavailable.Reason != reasonCertificate || unavailable.Tries != 1 || asked {
		t.Errorf("%v, asked %v", err, asked)
	}
}

// A read may wait for a change, as long as the service does at most; a service that cannot wait
// is not asked to again.
func TestAwait(t *testing.T) {
	t.Parallel()
	s := newScript(t, says(200, payment(Success)))
	c, _ := s.client()
	for _, wait := range []time.Duration{10 * time.Second, time.Hour, 0, -time.Second} {
		if p, err := c.Payments.Await(t.Context(), "p-1", wait); err != nil || p.Status != Success {
			t.Fatalf("waiting %s: %+v, %v", wait, p, err)
		}
	}
	key := " " + testKey
	if got, want := s.requests(), []string{"GET /v1/payments/p-1?wait=10" + key, "GET /v1/payments/p-1?wait=30" + key, "GET /v1/payments/p-1" + key, "GET /v1/payments/p-1" + key}; !slices.Equal(got, want) {
		t.Errorf("asked %q", got)
	}
	old := newScript(t, problem(400, CodeInvalidParameter), says(200, payment(Pending)))
	c, _ = old.client()
	for range 2 {
		if p, err := c.Payments.Await(t.Context(), "p-1", time.Minute); err != nil || p.Status != Pending {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	if got := old.requests(); len(got) != 3 || strings.Contains(got[1]+got[2], "wait") {
		t.Errorf("asked %q", got)
	}
}

func TestMoneyInLogs(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]Money{"50.00 KES": Minor("5000", "KES"), "5000 XAF": Minor("5000", "XAF"), "5000 minor units of QQQ": Minor("5000", "QQQ")} {
		if got := fmt.Sprint(m); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
