package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"till/internal/dev/remote"
	"till/webhook"
)

// world is an event log that a test writes, and a handler. The real service is in
// TestListen of cmd/till; here a test decides what the log is.
type world struct {
	*testing.T
	service, handler *httptest.Server
	file             string

	mu     sync.Mutex
	log    string
	events []string
	status func(sequence int64, n int) int // what the handler answers to the nth post of an event
	posts  map[int64]int
	order  []int64
	grew   chan struct{}
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, log: "log-1", posts: map[int64]int{}, file: filepath.Join(t.TempDir(), "data", "listen-cursor.json"), grew: make(chan struct{}),
		status: func(int64, int) int { return 204 }}
	w.service = httptest.NewServer(http.HandlerFunc(w.serveLog))
	w.handler = httptest.NewServer(http.HandlerFunc(w.handle))
	t.Cleanup(func() { w.service.CloseClientConnections(); w.service.Close(); w.handler.Close() })
	return w
}

// add appends an event of a payment.
func (w *world) add(kind, payment string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.events) + 1
	w.events = append(w.events, fmt.Sprintf(`{"id":"e-%d","type":%q,"sequence":%d,  "data":{"payment":{"id":%q,"reference":"R"}}}`, n, kind, n, payment))
	close(w.grew)
	w.grew = make(chan struct{})
}

func (w *world) serveLog(res http.ResponseWriter, r *http.Request) {
	var after, wait int
	fmt.Sscan(r.FormValue("after"), &after)
	fmt.Sscan(r.FormValue("wait"), &wait)
	w.mu.Lock()
	if grew := w.grew; after == len(w.events) && wait > 0 {
		w.mu.Unlock()
		select {
		case <-grew:
		case <-r.Context().Done():
		}
		w.mu.Lock()
	}
	defer w.mu.Unlock()
	if after > len(w.events) {
		res.WriteHeader(409)
		io.WriteString(res, `{"code":"cursor_ahead"}`)
		return
	}
	next := min(len(w.events), after+200)
	if r.FormValue("limit") == "1" {
		next = min(next, after+1)
	}
	fmt.Fprintf(res, `{"items":[%s],"next_after":%d,"log_id":%q}`, strings.Join(w.events[after:next], ","), next, w.log)
}

func (w *world) handle(res http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if err := webhook.Verify(r.Header, body, time.Now(), webhook.Tolerance, Secret("k")); err != nil {
		w.Errorf("%v: %s", err, body)
	}
	var e struct{ Sequence int64 }
	if json.Unmarshal(body, &e) != nil || !strings.Contains(string(body), `,  "data"`) {
		w.Errorf("not the body of the log: %s", body)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.posts[e.Sequence]++
	status := w.status(e.Sequence, w.posts[e.Sequence])
	if status < 300 {
		w.order = append(w.order, e.Sequence)
	}
	res.WriteHeader(status)
}

// run relays until so many events were accepted, and returns what was reported.
func (w *world) run(n int, change func(*Config)) (out []Report) {
	w.Helper()
	service, err := remote.New(w.service.URL, "k")
	if err != nil {
		w.Fatal(err)
	}
	defer service.Close()
	allow, _ := webhook.ParseAllowed(webhook.Loopback)
	ctx, cancel := context.WithTimeout(w.Context(), 20*time.Second)
	defer cancel()
	c := Config{Service: service, To: w.handler.URL, Secret: Secret("k"), CursorFile: w.file, Allow: allow, Seed: 1, Delays: []time.Duration{time.Millisecond}}
	c.Report = func(r Report) {
		out = append(out, r)
		if r.Accepted && !r.Copy || r.Lost {
			n--
		}
		if n == 0 {
			cancel()
		}
	}
	if change != nil {
		change(&c)
	}
	if n == 0 {
		c.Started = func(int64) { cancel() }
	}
	if err := Run(ctx, c); err != nil {
		w.Fatal(err)
	}
	if n != 0 {
		w.Errorf("%d events are missing", n)
	}
	return out
}

// The first run begins with what is to come, the second where the first one ended, and a
// payment's second event waits for its first.
func TestOrderAndCursor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 1500 {
		w.add("payment.pending", "old")
	}
	w.run(0, func(c *Config) {
		c.Started = nil
	})
	if p := w.position(); p.Read != 1500 {
		t.Errorf("it begins after %d", p.Read)
	}
	w.add("payment.pending", "a")
	w.add("payment.pending", "b")
	w.add("payment.success", "a")
	w.status = func(n int64, try int) int {
		if n == 1501 && try < 4 {
			return 500
		}
		return 204
	}
	reports := w.run(3, nil)
	if a, b := slices.Index(w.order, 1501), slices.Index(w.order, 1503); a < 0 || b < a || w.posts[1501] != 4 || w.posts[1503] != 1 {
		t.Errorf("order %v, posts %v", w.order, w.posts)
	}
	if first := reports[slices.IndexFunc(reports, func(r Report) bool { return r.Sequence == 1501 })]; first.Next == 0 || first.Response.Status != 500 || first.Reference != "R" || first.Subject != "a" {
		t.Errorf("%+v", first)
	}
	w.add("payment.failed", "b")
	w.run(1, nil)
	if w.posts[1504] != 1 || w.posts[1503] != 1 {
		t.Errorf("%v", w.posts)
	}
}

func (w *world) position() position {
	w.Helper()
	f, err := openCursorFile(w.file)
	if err != nil {
		w.Fatal(err)
	}
	defer f.close()
	return f.known[len(f.known)-1]
}

// What one payment's event waits for keeps no other payment waiting, and is not passed.
func TestAStuckEventIsNotPassed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.status = func(n int64, _ int) int {
		if n == 1 {
			return 500
		}
		return 200
	}
	w.add("payment.pending", "a")
	for range 20 {
		w.add("payment.pending", "b")
	}
	w.run(20, func(c *Config) { c.Since = new(int64) })
	if p := w.position(); p.Read != 21 || !slices.Equal(p.Pending, []int64{1}) {
		t.Errorf("%+v", p)
	}
	w.status = func(int64, int) int { return 200 }
	w.run(1, nil)
	if p := w.position(); len(p.Pending) != 0 || w.posts[2] != 1 {
		t.Errorf("%+v, %v", p, w.posts)
	}
}

// A log that is another one, or was set back, is read from its beginning.
func TestALogThatWasReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 5 {
		w.add("payment.pending", "a")
	}
	w.run(5, func(c *Config) { c.Since = new(int64) })
	w.mu.Lock()
	w.events, w.posts = w.events[:2], map[int64]int{}
	w.mu.Unlock()
	told := ""
	w.run(2, func(c *Config) { c.Notice = func(text string) { told = text } })
	if w.posts[1] != 1 || w.posts[2] != 1 || !strings.Contains(told, "set back") {
		t.Errorf("%v, %q", w.posts, told)
	}
}

func TestUnkind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 200 {
		w.add("payment.pending", "a")
	}
	lost := 0
	for _, r := range w.run(200, func(c *Config) { c.Since, c.Lose, c.Repeat = new(int64), 0.2, 0.1 }) {
		if r.Lost {
			lost++
		}
	}
	twice := 0
	for _, n := range w.posts {
		twice += n - 1
	}
	if lost < 20 || lost > 60 || twice < 5 || twice > 35 || len(w.posts) != 200-lost || !slices.IsSorted(w.order) {
		t.Errorf("%d lost, %d twice, %d arrived", lost, twice, len(w.posts))
	}
	w = newWorld(t)
	for range 20 {
		w.add("payment.pending", "a")
	}
	w.run(20, func(c *Config) { c.Since, c.Shuffle = new(int64), true })
	if slices.IsSorted(w.order) {
		t.Errorf("in order: %v", w.order)
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("payment.pending", "a")
	w.add("payment.success", "a")
	w.add("payout.success", "a")
	w.run(1, func(c *Config) { c.Since, c.Kinds = new(int64), []string{"payment.success"} })
	if len(w.posts) != 1 || w.posts[2] != 1 || len(w.position().Pending) != 0 {
		t.Errorf("%v, %+v", w.posts, w.position())
	}
	for pattern, ok := range map[string]bool{"*": true, "payment.*": true, "payout.success": true, "payment.paid": false, "refund.*": true, "order.*": false, ".*": false, "": false, "payment": false} {
		if err := CheckKinds([]string{pattern}); (err == nil) != ok {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

// Two commands never share a cursor, and a file that is damaged loses nothing.
func TestCursorFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.json")
	f, err := openCursorFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openCursorFile(path); !errors.Is(err, errHeld) {
		t.Errorf("%v", err)
	}
	for n := range maxCursors + 5 {
		if err := f.save(position{LogID: fmt.Sprint(n), To: "x", Read: 7}); err != nil {
			t.Fatal(err)
		}
	}
	f.close()
	if f, err = openCursorFile(path); err != nil || len(f.known) != maxCursors {
		t.Fatalf("%+v, %v", f, err)
	}
	if p, ok := f.find("36", "x"); !ok || p.Read != 7 {
		t.Errorf("%+v", p)
	}
	f.close()
	os.WriteFile(path, []byte(`[{"log_`), 0o600)
	if _, err := openCursorFile(path); err == nil || !strings.Contains(err.Error(), "--since") {
		t.Errorf("%v", err)
	}
}

// The secret is part of what people have put into their shops.
func TestSecretStaysTheSame(t *testing.T) {
	t.Parallel()
	if got := Secret("till_test_example").Reveal(); got != "whsec_ToZcziUaIAt8X1KKuVlShjz29q7WMn5g/GHtanUN+t8=" || Secret("b").Reveal() == got {
		t.Errorf("got %s", got)
	}
}
