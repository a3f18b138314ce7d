package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"till/store"
	"till/store/storetest"
)

// maxQueue is how many creates may wait for the database, as the guide says.
const maxQueue = 4096

// F43: while the database does not answer, more creates come than may wait, and
// their clients retry in step. Those too many are refused at once, with a time
// to come back; when the database goes on, so does everything, and each key has
// made one payment.
func TestAHerdOfCreatesIsToldToComeBack(t *testing.T) {
	if testing.Short() {
		t.Skip("make quick leaves it out: it makes thousands of requests")
	}
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			w := newWorld(t, options{database: e.Config(t), quiet: true})
			defer w.stop()
			const herd = maxQueue + 1500
			waiting := maxQueue + 512 // those queued, and a batch on its way
			if e.Name == "citus" {
				waiting += 512 // each of two nodes has one
			}
			bodies := make([]string, herd)
			for i := range bodies {
				bodies[i] = fmt.Sprintf(`{"method":"mtn_momo","country":"CG","amount":{"value":"5000","currency":"XAF"},"idempotency_key":"%s","customer":{"phone":"242061230000"}}`, newKey())
			}
			who := func(i int) string { return []string{"test", "other"}[i%2] }
			letGo := w.holdHeads("test", "other")
			defer letGo()
			answers := make(chan *httptest.ResponseRecorder, herd)
			refused := make([]bool, herd)
			for i, body := range bodies {
				go func() {
					a := w.do("POST", "/v1/payments", w.keys[who(i)], body)
					refused[i] = a.Code != http.StatusAccepted
					answers <- a
				}()
			}
			for n := range herd - waiting {
				select {
				case a := <-answers:
					if a.Code != http.StatusServiceUnavailable || a.Header().Get("Retry-After") == "" {
						t.Fatalf("while the queue is full: %d %s", a.Code, a.Body)
					}
				case <-time.After(20 * time.Second):
					t.Fatalf("%d were told to come back, want %d", n, herd-waiting)
				}
			}
			letGo()
			accepted := 0
			for range waiting {
				if a := <-answers; a.Code == http.StatusAccepted {
					accepted++
				}
			}
			if accepted == 0 {
				t.Error("of those who waited nobody was served")
			}
			var again sync.WaitGroup
			for part := range 16 {
				again.Go(func() { // who was refused, and some of the others
					for i := part; i < herd; i += 16 {
						if !refused[i] && i%10 > 0 {
							continue
						}
						if a := w.do("POST", "/v1/payments", w.keys[who(i)], bodies[i]); a.Code != http.StatusAccepted {
							t.Errorf("a retry: %d %s", a.Code, a.Body)
						}
					}
				})
			}
			again.Wait()
			var made int64
			err := w.store.View(t.Context(), func(tx *store.Tx) error {
				for _, name := range []string{"test", "other"} {
					_, n, err := tx.ListPayments(t.Context(), w.clients[name].ID, store.PaymentFilter{}, store.Page{Limit: 1})
					if err != nil {
						return err
					}
					made += n
				}
				return nil
			})
			if err != nil || made != herd {
				t.Errorf("%d payments were made by %d keys: %v", made, herd, err)
			}
		})
	}
}
