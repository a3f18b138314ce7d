package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"till"
	"till/webhook"
)

// The receiver of webhooks is a process of its own: every sender pays the
// same for it. It answers at once, verifies nothing, and notes when what was
// posted arrived for the first time.

const (
	arrivalsTimeout      = 2 * time.Minute       // for the last webhook of a round
	arrivalsPollInterval = 20 * time.Millisecond // between two checks whether it has come
	bodyHead             = 256                   // bytes of a body that hold its time
)

// arrivals is what the receiver reports.
type arrivals struct {
	Count int   `json:"count"` // distinct webhooks
	Again int   `json:"again"` // came once more
	Span  int64 `json:"span"`  // microseconds between the two arrivals that were asked for
	Waits []int `json:"waits"` // microseconds from the event's time to the arrival
}

// receiver keeps the book.
type receiver struct {
	mu    sync.Mutex
	seen  map[till.ID]bool
	again int
	at    []int64 // microseconds of Unix time, in the order of arrival
	made  []int64
}

// serveReceiver is the hidden subcommand.
func serveReceiver(ctx context.Context, args []string) error {
	r := &receiver{seen: map[till.ID]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hooks", r.take)
	mux.HandleFunc("GET /book", r.show)
	mux.HandleFunc("DELETE /book", r.forget)
	mux.HandleFunc("GET /v1/payments", emptyList)
	return serveUntil(ctx, args, mux)
}

func (r *receiver) take(w http.ResponseWriter, q *http.Request) {
	now := time.Now().UnixMicro()
	var head [bodyHead]byte
	n, err := io.ReadFull(q.Body, head[:])
	if err == nil {
		_, err = io.Copy(io.Discard, q.Body)
	}
	made := madeAt(head[:n])
	id, bad := till.ParseID(q.Header.Get(webhook.HeaderID))
	if err != nil || bad != nil || made == 0 {
		http.Error(w, "not a webhook", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.seen[id]:
		r.again++
	case len(r.seen) >= maxHeld:
		http.Error(w, "too many", http.StatusServiceUnavailable)
	default:
		r.seen[id] = true
		r.at, r.made = append(r.at, now), append(r.made, made)
	}
}

// madeAt returns when an event was made, 0 if its body does not say.
func madeAt(head []byte) int64 {
	_, rest, _ := bytes.Cut(head, []byte(`"created_at":"`))
	text, _, found := bytes.Cut(rest, []byte(`"`))
	t, err := time.Parse(time.RFC3339Nano, string(text))
	if !found || err != nil {
		return 0
	}
	return t.UnixMicro()
}

// show returns the book; with from and to, also the time between these two
// arrivals, and with waits how long each webhook was on its way.
func (r *receiver) show(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	b := arrivals{Count: len(r.at), Again: r.again, Waits: []int{}}
	from, _ := strconv.Atoi(q.FormValue("from"))
	to, _ := strconv.Atoi(q.FormValue("to"))
	if from >= 1 && to > from && to <= len(r.at) {
		b.Span = r.at[to-1] - r.at[from-1]
	}
	if q.FormValue("waits") != "" {
		for i := range r.at {
			b.Waits = append(b.Waits, int(r.at[i]-r.made[i]))
		}
	}
	r.mu.Unlock()
	json.NewEncoder(w).Encode(b)
}

// forget begins a new book.
func (r *receiver) forget(http.ResponseWriter, *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.seen)
	r.again, r.at, r.made = 0, r.at[:0], r.made[:0]
}

// hooksURL is where a receiver takes webhooks.
func hooksURL(addr string) string { return "http://" + addr + "/hooks" }

// call asks a process for something that is not a payment. An answer of
// another status than want is an error.
func (p *process) call(ctx context.Context, method, path string, body []byte, want int, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+p.addr+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("X-Api-Key", p.apiKey)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	switch {
	case err != nil:
		return err
	case resp.StatusCode != want:
		return fmt.Errorf("%s %s: answer %s: %.300s", method, path, resp.Status, answer)
	case into == nil:
		return nil
	}
	return json.Unmarshal(answer, into)
}

// resetArrivals makes a receiver begin a new book.
func (p *process) resetArrivals(ctx context.Context) error {
	return p.call(ctx, http.MethodDelete, "/book", nil, http.StatusOK, nil)
}

// awaitArrivals waits until a receiver has got so many distinct webhooks and
// returns its book, with the time from the tenth part of them to the last:
// the sender has begun by then.
func (p *process) awaitArrivals(ctx context.Context, want int) (b arrivals, err error) {
	path := fmt.Sprintf("/book?from=%d&to=%d", firstTimed(want), want)
	for end := time.Now().Add(arrivalsTimeout); ; {
		if err := p.call(ctx, http.MethodGet, path, nil, http.StatusOK, &b); err != nil {
			return b, err
		}
		switch {
		case b.Count > want:
			return b, fmt.Errorf("the receiver got %d webhooks, where there are %d events", b.Count, want)
		case b.Count == want:
			return b, nil
		case time.Now().After(end):
			return b, fmt.Errorf("the receiver got %d of %d webhooks in %v", b.Count, want, arrivalsTimeout)
		}
		select {
		case <-ctx.Done():
			return b, ctx.Err()
		case <-time.After(arrivalsPollInterval):
		}
	}
}

func firstTimed(want int) int { return max(1, want/10) }

// rate returns how many arrived in a second, of so many.
func (b *arrivals) rate(want int) float64 {
	return float64(want-firstTimed(want)) / max(float64(b.Span), 1) * 1e6
}
