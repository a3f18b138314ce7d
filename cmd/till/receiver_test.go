package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"till"
	"till/store"
	"till/store/webhooks"
	"till/webhook"
)

// receiver is the client's server: it keeps a book of the events that it was
// sent, and refuses some of them the first time.
type receiver struct {
	t      *testing.T
	server *httptest.Server
	path   string // of its address, no other's
	id     string // of its endpoint
	from   int64  // what is up to here, another received

	mu      sync.Mutex
	secret  webhook.Secret
	book    map[int64]int // sequence → times
	refused map[int64]bool
}

// receive registers an address for all events, and listens there.
func (k *killing) receive() *receiver {
	k.t.Helper()
	r := &receiver{t: k.t, path: "/hooks/" + till.NewID(till.TimeOf(time.Now())).String(), book: map[int64]int{}, refused: map[int64]bool{}}
	r.server = httptest.NewServer(r)
	k.t.Cleanup(r.server.Close)
	var made struct{ ID, Secret string }
	k.call(http.MethodPost, "/webhook-endpoints", `{"url":"`+r.server.URL+r.path+`","events":["*"]}`, &made)
	secret, err := webhook.ParseSecret(made.Secret)
	if err != nil {
		k.t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.id, r.secret = made.ID, secret
	return r
}

// call makes a request that must work.
func (k *killing) call(method, path, body string, answer any) {
	k.t.Helper()
	req, _ := http.NewRequest(method, k.base()+path, bytes.NewReader([]byte(body)))
	req.Header.Set("X-Api-Key", k.key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		k.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode > 299 || json.Unmarshal(b, answer) != nil {
		k.t.Fatalf("%s %s: %d %s %v", method, path, res.StatusCode, b, err)
	}
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.URL.Path != r.path { // another test's, to an endpoint that had this port before
		http.NotFound(w, req)
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var event struct {
		ID       string
		Sequence int64
	}
	if err := json.Unmarshal(body, &event); err != nil || event.ID != req.Header.Get(webhook.HeaderID) {
		r.t.Errorf("a body of another event: %s", body)
	}
	if err := webhook.Verify(req.Header, body, time.Now(), webhook.Tolerance, r.secret); err != nil {
		r.t.Errorf("event %d: %v", event.Sequence, err)
	}
	if event.Sequence%50 == 7 && !r.refused[event.Sequence] {
		r.refused[event.Sequence] = true
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	r.book[event.Sequence]++
}

// await waits until the endpoint has been sent everything.
func (r *receiver) await(k *killing) {
	deadline := time.Now().Add(90 * time.Second)
	for {
		var e struct {
			Backlog int
			Status  string
		}
		k.call(http.MethodGet, "/webhook-endpoints/"+r.id, "", &e)
		var open struct{ Items []any }
		k.call(http.MethodGet, "/webhook-endpoints/"+r.id+"/deliveries?status=pending", "", &open)
		if e.Backlog == 0 && len(open.Items) == 0 {
			return
		}
		if time.Now().After(deadline) {
			k.t.Errorf("the endpoint is %s, with a backlog of %d and %d deliveries pending", e.Status, e.Backlog, len(open.Items))
			return
		}
		<-time.After(200 * time.Millisecond)
	}
}

// compare holds the log against the receiver's book (I7): every event arrived
// at least once, or was superseded by a newer state that did.
func (r *receiver) compare(k *killing) {
	k.t.Helper()
	ctx := context.Background()
	s, err := store.Open(ctx, store.Config{Path: k.database})
	if err != nil {
		k.t.Fatal(err)
	}
	defer s.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	twice, superseded := 0, 0
	err = s.View(ctx, func(tx *store.Tx) error {
		clients, err := tx.Clients(ctx, till.ID{}, 1)
		if err != nil {
			return err
		}
		id, err := till.ParseID(r.id)
		if err != nil {
			return err
		}
		ref := store.Ref{Client: clients[0].ID, ID: id}
		e, err := webhooks.ReadEndpoint(ctx, tx, ref)
		if err != nil {
			return err
		}
		rows, err := webhooks.DeliveriesBetween(ctx, tx, ref, 0, e.LastEvent)
		if err != nil {
			return err
		}
		gone := map[int64]bool{}
		for _, d := range rows {
			gone[d.Sequence] = gone[d.Sequence] || d.Status == webhooks.DeliverySuperseded
		}
		events, err := tx.Events(ctx, ref.Client, max(e.Start, r.from), int(e.LastEvent))
		newest := map[till.ID]int64{}
		for _, ev := range events {
			if r.book[ev.Sequence] > 0 {
				newest[ev.SubjectID] = ev.Sequence
			}
		}
		for _, ev := range events {
			switch n := r.book[ev.Sequence]; {
			case n > 1:
				twice++
			case n == 1:
			case gone[ev.Sequence] && newest[ev.SubjectID] > ev.Sequence:
				superseded++
			default:
				k.t.Errorf("event %d, %s, never arrived", ev.Sequence, ev.Kind)
			}
		}
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Logf("%d events arrived, %d of them more than once, %d were superseded", len(r.book), twice, superseded)
}
