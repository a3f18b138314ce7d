package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"till/api"
	"till/store/storetest"
)

type loggedEvent struct {
	ID, Type string
	Sequence int64
	Data     struct{ Payment json.RawMessage }
}

// events reads a log in small pieces, to its end.
func (w *world) events(key string) (out []loggedEvent) {
	w.t.Helper()
	for after := "0"; ; {
		a := w.do(http.MethodGet, "/v1/events?limit=2&after="+after, w.keys[key], "")
		var page struct {
			Items     []loggedEvent
			NextAfter json.Number `json:"next_after"`
		}
		if err := json.Unmarshal(a.Body.Bytes(), &page); err != nil || a.Code != http.StatusOK {
			w.t.Fatalf("events: %d %s", a.Code, a.Body)
		}
		if len(page.Items) == 0 {
			return out
		}
		out, after = append(out, page.Items...), page.NextAfter.String()
	}
}

// I6: every event holds the payment as it was shown after the change, byte for
// byte, and the log has no gap.
func TestAnEventIsThePaymentAsItWas(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			database := e.Config(t)
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, options{database: database})
				defer w.stop()
				for _, story := range []string{"0001", "0002", "0003", "0005", "0011", "0013", "0019"} {
					body := strings.Replace(goodBody("00000000-0000-4000-8000-00000000"+story), "242064000001", "24206400"+story, 1)
					body = strings.Replace(body, `"reference"`, `"description":"\"quoted\" é \u2028 </b>","metadata":{"n":1.50,"a":[true,null,"x"]},"reference"`, 1)
					w.follow(w.do(http.MethodPost, "/v1/payments", w.keys["test"], body))
				}
				for i, e := range w.events("test") {
					if e.Sequence != int64(i+1) {
						t.Errorf("the %dth event is number %d", i+1, e.Sequence)
					}
				}
				storetest.CheckInvariants(t, w.store)
			})
		})
	}
}

// steady returns a payment as it is shown, without how often and when its
// operator was asked: a read that changes nothing else is no event.
func steady(payment string) string {
	before, _, _ := strings.Cut(payment, `,"last_checked_at"`)
	return before
}

// follow watches a payment through its life and holds what was shown of it
// against its events.
func (w *world) follow(created *httptest.ResponseRecorder) {
	w.t.Helper()
	var p struct{ ID string }
	if err := json.Unmarshal(created.Body.Bytes(), &p); err != nil {
		w.t.Fatalf("create: %d %s", created.Code, created.Body)
	}
	shown := map[string]bool{}
	for range 300 { // 30 s of virtual time, far past the window and the late reads
		synctest.Wait()
		shown[steady(w.do(http.MethodGet, "/v1/payments/"+p.ID, w.keys["test"], "").Body.String())] = true
		time.Sleep(100 * time.Millisecond)
	}
	a := w.do(http.MethodGet, "/v1/payments/"+p.ID+"/events", w.keys["test"], "")
	var list struct{ Items []loggedEvent }
	if err := json.Unmarshal(a.Body.Bytes(), &list); err != nil || len(list.Items) < 2 {
		w.t.Fatalf("its events: %d %s", a.Code, a.Body)
	}
	if first := list.Items[0].Data.Payment; string(first) != created.Body.String() {
		w.t.Errorf("it was created as\n%s\nand its first event shows\n%s", created.Body, first)
	}
	for _, e := range list.Items[1:] {
		if !shown[steady(string(e.Data.Payment))] {
			w.t.Errorf("%s shows a payment that was never shown:\n%s\nof %d states", e.Type, e.Data.Payment, len(shown))
		}
		one := w.do(http.MethodGet, "/v1/events/"+e.ID, w.keys["test"], "")
		if !bytes.Contains(a.Body.Bytes(), one.Body.Bytes()) {
			w.t.Errorf("the event alone is %s", one.Body)
		}
	}
}

// A key that is revoked while it waits is shown nothing.
func TestAPollEndsWithItsKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{})
		defer w.stop()
		answer := make(chan *httptest.ResponseRecorder, 1)
		go func() { answer <- w.do(http.MethodGet, "/v1/events?wait=60", w.keys["reader"], "") }()
		time.Sleep(10 * time.Second)
		if _, err := w.accounts.RevokeKey(context.Background(), w.clients["test"].ID, strings.Split(w.keys["reader"], "_")[2], false, "a test"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		w.created("test", "00000000-0000-4000-8000-000000000001", "242064000001")
		if a := <-answer; a.Code != http.StatusUnauthorized || strings.Contains(a.Body.String(), "payment") {
			t.Errorf("%d %s", a.Code, a.Body)
		}
	})
}

// A poll waits its time and no longer, and is answered the moment that
// something happens.
func TestAPollTakesItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{})
		defer w.stop()
		begun := time.Now()
		w.do(http.MethodGet, "/v1/events?wait=60", w.keys["test"], "")
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("nothing took %s", took)
		}
		begun = time.Now()
		go func() {
			time.Sleep(7 * time.Second)
			w.created("test", "00000000-0000-4000-8000-000000000001", "242064000001")
		}()
		a := w.do(http.MethodGet, "/v1/events?wait=60", w.keys["test"], "")
		if took := time.Since(begun); took != 7*time.Second || !strings.Contains(a.Body.String(), "payment.pending") {
			t.Errorf("after %s: %s", took, a.Body)
		}
	})
}

// network serves a world over TCP, as the program does.
func (w *world) network(readTimeout time.Duration) (base string, hs *http.Server) {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	hs = api.Server(w.handler)
	hs.ReadTimeout = readTimeout
	go hs.Serve(api.Guard(l))
	w.t.Cleanup(func() { hs.Close() })
	return "http://" + l.Addr().String() + "/v1", hs
}

func (w *world) get(ctx context.Context, url string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("X-Api-Key", w.keys["test"])
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	return a.StatusCode, string(b), err
}

// The time that a request may take to arrive does not end a wait: net/http
// lifts that deadline when the request has been read, which is relied on here.
func TestAPollOutlivesTheReadTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	defer w.stop()
	base, _ := w.network(50 * time.Millisecond)
	for range 2 { // the same connection, a second time
		if status, body, err := w.get(t.Context(), base+"/events?wait=1"); status != http.StatusOK || !strings.Contains(body, `"items":[]`) {
			t.Errorf("%d %s %v", status, body, err)
		}
	}
}

// So many polls of a client wait, no more, and hold nothing of the database
// meanwhile; a caller that hangs up makes room; a stop answers them all.
func TestPollsAreBoundedAndEnd(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits as long as a poll does")
	}
	w := newWorld(t, options{})
	defer w.stop()
	base, hs := w.network(15 * time.Second)
	const places = 20 // maxClientPolls
	fill := func(ctx context.Context) func(status int) {
		var all sync.WaitGroup
		statuses := make(chan int, places)
		for range places {
			all.Go(func() {
				for {
					status, _, err := w.get(ctx, base+"/events?wait=60")
					if status != http.StatusTooManyRequests || err != nil {
						statuses <- status
						return
					}
					time.Sleep(10 * time.Millisecond) // who asks below, or has hung up, is still in its place
				}
			})
		}
		for status := 0; status != http.StatusTooManyRequests; { // until all of them wait
			var err error
			if status, _, err = w.get(t.Context(), base+"/events?wait=1"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Millisecond) // the caller refused because of this one comes back before it
		}
		return func(want int) {
			t.Helper()
			all.Wait()
			for range places {
				if status := <-statuses; status != want {
					t.Errorf("a waiting poll was answered %d, want %d", status, want)
				}
			}
		}
	}

	ctx, hangUp := context.WithCancel(t.Context())
	ended := fill(ctx)
	if status, body, err := w.get(t.Context(), base+"/payments"); status != http.StatusOK {
		t.Errorf("another call meanwhile: %d %s %v", status, body, err)
	}
	if a := w.do(http.MethodGet, "/v1/events?wait=1", w.keys["other"], ""); a.Code != http.StatusOK {
		t.Errorf("another client's poll: %d %s", a.Code, a.Body)
	}
	hangUp()
	ended(0)
	for vacant := false; !vacant; { // the server has yet to see that they are gone
		var refused atomic.Bool
		var all sync.WaitGroup
		for range places {
			all.Go(func() {
				if status, _, _ := w.get(t.Context(), base+"/events?wait=1"); status != http.StatusOK {
					refused.Store(true)
				}
			})
		}
		all.Wait()
		vacant = !refused.Load()
	}
	ended = fill(t.Context()) // there is room for as many again

	begun := time.Now()
	stopping, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := hs.Shutdown(stopping); err != nil {
		t.Errorf("the stop took %s: %v", time.Since(begun), err)
	}
	ended(http.StatusOK)
}

// What another process commits ends a wait, with hints and without.
func TestAPollHearsAnotherProcess(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		for _, notify := range []bool{true, false} {
			name := e.Name
			if !notify {
				name += "-plain"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				o := options{database: e.Config(t), notify: notify}
				w := newWorld(t, o)
				defer w.stop()
				answer := make(chan *httptest.ResponseRecorder, 1)
				go func() { answer <- w.do(http.MethodGet, "/v1/events?wait=60", w.keys["test"], "") }()
				there := storetest.Open(t, o.database)
				storetest.NewPayment(t, storetest.NewCollector(t, there), w.clients["test"], storetest.Body{})
				select {
				case a := <-answer:
					if !strings.Contains(a.Body.String(), `"payment.pending"`) {
						t.Errorf("%d %s", a.Code, a.Body)
					}
				case <-time.After(45 * time.Second):
					t.Error("it is not answered")
				}
			})
		}
	}
}
