package simulator_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/provider/simulator"
)

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newClock() *clock { return &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func open(t *testing.T, path string, now func() time.Time) *simulator.Book {
	t.Helper()
	b, err := simulator.OpenBook(path, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func add(t *testing.T, b *simulator.Book, e simulator.Entry) simulator.Entry {
	t.Helper()
	got, fresh, err := b.Add(e)
	if err != nil || !fresh {
		t.Fatalf("%s was not added: %v", e.Reference, err)
	}
	return got
}

func TestAReferenceIsTakenOncePerKind(t *testing.T) {
	b := open(t, "", nil)
	first := add(t, b, simulator.Entry{Kind: "payment", Reference: "r", Amount: "1", Plan: simulator.Plan{State: simulator.Success}})
	again, fresh, err := b.Add(simulator.Entry{Kind: "payment", Reference: "r", Amount: "2"})
	if err != nil || fresh || again != first {
		t.Errorf("the second is %+v, fresh %v, %v", again, fresh, err)
	}
	add(t, b, simulator.Entry{Kind: "payout", Reference: "r"})
	// Where the operator takes no reference, every request is another.
	one, two := add(t, b, simulator.Entry{Kind: "payment"}), add(t, b, simulator.Entry{Kind: "payment"})
	if one.Handle == two.Handle || one.Handle == "" {
		t.Errorf("the handles are %q and %q", one.Handle, two.Handle)
	}
	if got, ok := b.FindHandle(one.Handle); !ok || got != one {
		t.Errorf("by its handle it is %+v, %v", got, ok)
	}
	if _, ok := b.Find("payment", "nobody"); ok {
		t.Error("a reference that nobody sent is found")
	}
	if n := len(b.Entries()); n != 4 {
		t.Errorf("%d requests are in the book, want 4", n)
	}
	if n := b.Moved("payment", "r"); n != 1 {
		t.Errorf("money moved %d times, want once", n)
	}
}

func TestConcurrentRequestsOfOneReferenceAreOne(t *testing.T) {
	b := open(t, filepath.Join(t.TempDir(), "book"), nil)
	var fresh atomic.Int64
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if _, ok, err := b.Add(simulator.Entry{Kind: "payment", Reference: "r"}); err != nil {
				t.Error(err)
			} else if ok {
				fresh.Add(1)
			}
		})
	}
	wg.Wait()
	if fresh.Load() != 1 {
		t.Errorf("%d were taken, want one", fresh.Load())
	}
}

func TestTimeDecides(t *testing.T) {
	c := newClock()
	b := open(t, "", c.Now)
	for name, x := range map[string]struct {
		plan simulator.Plan
		want string // at 0 s, 2 s, 5 s
	}{
		"success": {simulator.Plan{After: 2 * time.Second, State: simulator.Success}, "open success success"},
		"failed":  {simulator.Plan{After: 2 * time.Second, State: simulator.Failed, Code: "X"}, "open failed failed"},
		"late":    {simulator.Plan{After: 2 * time.Second, State: simulator.Expired, Code: "X", Late: 3 * time.Second}, "open expired success"},
		"stuck":   {simulator.Plan{After: 2 * time.Second, State: simulator.Open}, "open open open"},
		"at once": {simulator.Plan{State: simulator.Success}, "success success success"},
	} {
		e := add(t, b, simulator.Entry{Kind: "payment", Reference: name, Plan: x.plan})
		var got []string
		for _, d := range []time.Duration{0, 2 * time.Second, 5 * time.Second} {
			s, code := e.StateAt(e.At.Add(d))
			got = append(got, string(s))
			if (s == simulator.Failed || s == simulator.Expired) != (code == "X") {
				t.Errorf("%s after %v: the code is %q", name, d, code)
			}
		}
		if strings.Join(got, " ") != x.want {
			t.Errorf("%s: %v, want %s", name, got, x.want)
		}
	}
	if b.Moved("payment", "late") != 0 {
		t.Error("late money has moved early")
	}
	c.Advance(5 * time.Second)
	if b.Moved("payment", "late") != 1 {
		t.Error("late money has not moved")
	}
}

func TestABookRemembers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book")
	c := newClock()
	b := open(t, path, c.Now)
	first := add(t, b, simulator.Entry{Kind: "payment", Reference: "a", Plan: simulator.Plan{After: time.Second, State: simulator.Success}})
	b.Close()

	// Killed while it wrote: half a line stays.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(f, `{"kind":"payment","refere`)
	f.Close()

	b = open(t, path, c.Now)
	if got, ok := b.Find("payment", "a"); !ok || got.Handle != first.Handle || got.Receipt != first.Receipt || !got.At.Equal(first.At) {
		t.Errorf("after a restart it is %+v, %v", got, ok)
	}
	add(t, b, simulator.Entry{Kind: "payment", Reference: "b"})
	b.Close()

	b = open(t, path, c.Now)
	if n := len(b.Entries()); n != 2 {
		t.Errorf("after another restart there are %d requests, want 2", n)
	}
	b.Close()

	// A line that is broken in the middle is no accident of ours.
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append([]byte("nonsense\n"), text...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := simulator.OpenBook(path, nil); err == nil {
		t.Error("a broken book is opened")
	}
}

func TestFaults(t *testing.T) {
	none := func(*http.Request) bool { return false }
	for name, x := range map[string]struct {
		faults simulator.Faults
		acted  func(n int64) bool
		fails  bool
		status int
	}{
		"none":          {simulator.Faults{}, func(n int64) bool { return n == 1 }, false, 200},
		"lost request":  {simulator.Faults{LostRequest: 1}, func(n int64) bool { return n == 0 }, true, 0},
		"lost response": {simulator.Faults{LostResponse: 1}, func(n int64) bool { return n == 1 }, true, 0},
		"server error":  {simulator.Faults{ServerError: 1}, func(n int64) bool { return n <= 1 }, false, 503},
		"slow":          {simulator.Faults{Slow: 1, SlowBy: time.Millisecond}, func(n int64) bool { return n == 1 }, false, 200},
	} {
		t.Run(name, func(t *testing.T) {
			var acted atomic.Int64
			server := httptest.NewServer(simulator.NewFaultInjector(x.faults).Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				acted.Add(1)
				io.WriteString(w, "ok")
			}), none))
			defer server.Close()
			res, err := http.Post(server.URL, "application/json", strings.NewReader("{}"))
			if (err != nil) != x.fails || !x.acted(acted.Load()) {
				t.Fatalf("the answer is %v, and the operator acted %d times", err, acted.Load())
			}
			if err == nil {
				res.Body.Close()
				if res.StatusCode != x.status {
					t.Errorf("it is answered %d", res.StatusCode)
				}
			}
		})
	}
	// Tokens are left alone, unless it is said.
	token := func(*http.Request) bool { return true }
	for _, all := range []bool{false, true} {
		server := httptest.NewServer(simulator.NewFaultInjector(simulator.Faults{LostRequest: 1, Tokens: all}).Wrap(http.NotFoundHandler(), token))
		res, err := http.Get(server.URL)
		if (err != nil) != all {
			t.Errorf("tokens too %v: %v", all, err)
		}
		if err == nil {
			res.Body.Close()
		}
		server.Close()
	}
}

func TestServerErrorsComeBeforeAndAfterTheAct(t *testing.T) {
	var acted int
	h := simulator.NewFaultInjector(simulator.Faults{ServerError: 1, Seed: 7}).Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { acted++ }),
		func(*http.Request) bool { return false })
	for range 200 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", nil))
	}
	if acted < 50 || acted > 150 {
		t.Errorf("the operator acted %d times of 200, want about half", acted)
	}
}

func TestLateSuccessIsPlanned(t *testing.T) {
	d := simulator.NewFaultInjector(simulator.Faults{LateSuccess: 1})
	if p := d.Plan(simulator.Plan{State: simulator.Failed}, time.Second); p.Late != time.Second {
		t.Errorf("the plan is %+v", p)
	}
	for _, s := range []simulator.State{simulator.Open, simulator.Success} {
		if p := d.Plan(simulator.Plan{State: s}, time.Second); p.Late != 0 {
			t.Errorf("the plan of %s is %+v", s, p)
		}
	}
}

// received counts calls and refuses the first ones.
func received(t *testing.T, refuse int64) (url string, calls chan string) {
	t.Helper()
	calls = make(chan string, 100)
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if n.Add(1) <= refuse {
			w.WriteHeader(http.StatusInternalServerError)
		}
		calls <- r.Method + " " + string(b)
	}))
	t.Cleanup(server.Close)
	return server.URL, calls
}

func TestCallbacks(t *testing.T) {
	url, calls := received(t, 0)
	c := simulator.NewCallbackSender(simulator.NewFaultInjector(simulator.Faults{}), nil)
	c.Send(time.Millisecond, 0, func() *http.Request { return simulator.Post("PUT", url, []byte("{}")) })
	if got := <-calls; got != "PUT {}" {
		t.Errorf("the callback is %q", got)
	}
	c.Send(0, 0, func() *http.Request { return simulator.Post("POST", "", nil) }) // nowhere
	c.Send(time.Hour, 0, func() *http.Request {
		t.Error("it was made after the end")
		return nil
	})
	c.Stop()
	c.Send(0, 0, func() *http.Request { return simulator.Post("POST", url, []byte("late")) })
	if len(calls) != 0 {
		t.Errorf("%d more callbacks came", len(calls))
	}

	c = simulator.NewCallbackSender(simulator.NewFaultInjector(simulator.Faults{DuplicateCallback: 1}), nil)
	c.Send(0, 0, func() *http.Request { return simulator.Post("POST", url, []byte("x")) })
	for range 5 {
		<-calls
	}
	c.Stop()

	c = simulator.NewCallbackSender(simulator.NewFaultInjector(simulator.Faults{LostCallback: 1}), nil)
	c.Send(0, 0, func() *http.Request { return simulator.Post("POST", url, []byte("x")) })
	c.Stop()
	if len(calls) != 0 {
		t.Error("a lost callback came")
	}
}

func TestACallbackIsTriedAgain(t *testing.T) {
	url, calls := received(t, 1)
	c := simulator.NewCallbackSender(simulator.NewFaultInjector(simulator.Faults{}), nil)
	defer c.Stop()
	c.Send(0, 1, func() *http.Request { return simulator.Post("POST", url, []byte("x")) })
	<-calls
	<-calls
}

func TestABookNeedsItsFolder(t *testing.T) {
	if _, err := simulator.OpenBook(filepath.Join(t.TempDir(), "no", "such", "folder"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a book without a folder: %v", err)
	}
}

func TestDigits(t *testing.T) {
	for range 200 {
		if d := simulator.Digits(10); len(d) != 10 || d[0] == '0' || strings.Trim(d, "0123456789") != "" {
			t.Fatalf("the digits are %q", d)
		}
	}
	if simulator.Digits(0) != "" {
		t.Error("no digits are some")
	}
}
