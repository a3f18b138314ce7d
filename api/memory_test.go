package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"till"
	"till/api"
	"till/store"
	"till/store/storetest"
)

// large is the body of a payment of so many bytes, about.
func large(key till.ID, bytes int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"method":"mtn_momo","country":"CG","amount":{"value":"5000","currency":"XAF"},"idempotency_key":"%s","customer":{"phone":"242061230000"},"metadata":{"note":"%s"},"charge":{"items":[`,
		key, strings.Repeat("m", 15<<10))
	for n := 0; b.Len() < bytes-300; n++ {
		if n > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"%s","quantity":1,"unit_price":"10","total":"10"}`, strings.Repeat("bread ", 30))
	}
	b.WriteString(`]}}`)
	return b.String()
}

func newKey() till.ID { return till.NewID(till.TimeOf(time.Now())) }

// holdHeads keeps everybody from writing for some clients until it is let go.
func (w *world) holdHeads(clients ...string) (letGo func()) {
	w.t.Helper()
	held, free, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var ids []till.ID
	for _, name := range clients {
		ids = append(ids, w.clients[name].ID)
	}
	go func() {
		defer close(done)
		err := w.store.Update(w.t.Context(), func(tx *store.Tx) error {
			_, err := tx.LockHeads(w.t.Context(), ids)
			close(held)
			for err == nil {
				select {
				case <-free:
					return nil
				case <-time.After(time.Second): // a server ends a transaction that does nothing
					_, err = tx.LockHeads(w.t.Context(), ids)
				}
			}
			return err
		})
		if err != nil {
			w.t.Error(err)
		}
	}()
	<-held
	return sync.OnceFunc(func() { close(free); <-done })
}

// F45: a client that floods with large bodies while the database is slow has
// only so many bytes in the queue. It is refused with a time to come back, before anything is
// written; others are served; and what was refused can be sent again.
func TestBodiesInTheQueueAreBoundedByBytes(t *testing.T) {
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			w := newWorld(t, options{database: e.Config(t), quiet: true})
			defer w.stop()
			const sent = 100
			bodies := make([]string, sent)
			for i := range bodies {
				bodies[i] = large(newKey(), 48<<10)
			}
			letGo := w.holdHeads("test", "other")
			defer letGo()
			answers := make(chan *httptest.ResponseRecorder, sent)
			refused := make([]bool, sent)
			for i, body := range bodies {
				go func() {
					a := w.do("POST", "/v1/payments", w.keys["test"], body)
					refused[i] = a.Code == http.StatusTooManyRequests
					answers <- a
				}()
			}
			fit := api.MaxClientBodies / len(bodies[0])
			for range sent - fit {
				select {
				case a := <-answers:
					if a.Code != http.StatusTooManyRequests || a.Header().Get("Retry-After") == "" {
						t.Errorf("while the queue is full: %d %s", a.Code, a.Body)
					}
				case <-time.After(time.Minute):
					t.Fatalf("more than %d bodies of %d bytes wait for the database", fit, len(bodies[0]))
				}
			}
			if held := api.HeldBodies(w.handler, w.clients["test"].ID); held > api.MaxClientBodies || held == 0 {
				t.Errorf("%d bytes are held, of %d", held, api.MaxClientBodies)
			}
			other := make(chan *httptest.ResponseRecorder)
			go func() { other <- w.do("POST", "/v1/payments", w.keys["other"], large(newKey(), 60<<10)) }()
			letGo()
			if a := <-other; a.Code != http.StatusAccepted {
				t.Errorf("another client: %d %s", a.Code, a.Body)
			}
			for range fit {
				if a := <-answers; a.Code != http.StatusAccepted && a.Code != http.StatusTooManyRequests {
					t.Errorf("when the database is back: %d %s", a.Code, a.Body)
				}
			}
			for i, body := range bodies {
				if a := w.do("POST", "/v1/payments", w.keys["test"], body); a.Code != http.StatusAccepted || (a.Header().Get("Idempotent-Replayed") == "") != refused[i] {
					t.Errorf("again, after it was refused (%v): %d, replayed %q", refused[i], a.Code, a.Header().Get("Idempotent-Replayed"))
				}
			}
			for _, name := range []string{"test", "other"} {
				if held := api.HeldBodies(w.handler, w.clients[name].ID); held != 0 {
					t.Errorf("%d bytes of %s are held after all was answered", held, name)
				}
			}
		})
	}
}

// slow is an answer that nobody reads until it is let go.
type slow struct {
	*httptest.ResponseRecorder
	writing chan struct{}
	free    chan struct{}
}

func (s *slow) Write(b []byte) (int, error) {
	s.writing <- struct{}{}
	<-s.free
	return s.ResponseRecorder.Write(b)
}

// Pages of large payments are bounded by bytes, also while their readers are
// slow: the client is refused with a time to come back, others are served.
func TestPagesUnderWayAreBoundedByBytes(t *testing.T) {
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			w := newWorld(t, options{database: e.Config(t), quiet: true})
			defer w.stop()
			for range 200 {
				if a := w.do("POST", "/v1/payments", w.keys["test"], large(newKey(), 60<<10)); a.Code != http.StatusAccepted {
					t.Fatalf("%d %s", a.Code, a.Body)
				}
			}
			test := w.clients["test"].ID
			for _, path := range []string{"/v1/payments?limit=200", "/v1/events?limit=200"} {
				s := &slow{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
				done := make(chan struct{})
				go func() {
					defer close(done)
					r := httptest.NewRequest("GET", path, nil)
					r.Header.Set("X-Api-Key", w.keys["test"])
					w.handler.ServeHTTP(s, r)
				}()
				<-s.writing
				if held := api.HeldAnswers(w.handler, test); held > api.MaxClientAnswers || held < 2*200*59<<10 {
					t.Errorf("%s: %d bytes are held, of %d", path, held, api.MaxClientAnswers)
				}
				if a := w.do("GET", path, w.keys["test"], ""); a.Code != http.StatusTooManyRequests || a.Header().Get("Retry-After") == "" {
					t.Errorf("%s, a second time while the first is under way: %d", path, a.Code)
				}
				if a := w.do("GET", "/v1/payments?limit=5", w.keys["test"], ""); a.Code != http.StatusOK {
					t.Errorf("a short page beside it: %d %s", a.Code, a.Body)
				}
				if a := w.do("GET", path, w.keys["other"], ""); a.Code != http.StatusOK {
					t.Errorf("%s of another client: %d %s", path, a.Code, a.Body)
				}
				close(s.free)
				<-done
				if a := w.do("GET", path, w.keys["test"], ""); s.Code != http.StatusOK || a.Code != http.StatusOK || a.Body.Len() < 200*59<<10 {
					t.Errorf("%s: %d, and %d with %d bytes after it", path, s.Code, a.Code, a.Body.Len())
				}
				if held := api.HeldAnswers(w.handler, test); held != 0 {
					t.Errorf("%d bytes are held after all was answered", held)
				}
			}
		})
	}
}
