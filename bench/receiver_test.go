package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"till"
	"till/webhook"
)

// The receiver counts what it has seen already apart, refuses what is no
// webhook, and tells times from the event and between arrivals.
func TestReceiver(t *testing.T) {
	t.Parallel()
	r := &receiver{seen: map[till.ID]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hooks", r.take)
	mux.HandleFunc("GET /book", r.show)
	mux.HandleFunc("DELETE /book", r.forget)
	server := httptest.NewServer(mux)
	defer server.Close()
	p := &process{addr: strings.TrimPrefix(server.URL, "http://")}
	ctx := t.Context()

	made := till.TimeOf(time.Now().Add(-time.Minute))
	event := &till.Event{ClientID: till.NewID(made), Sequence: 1, Kind: till.EndpointDisabled, CreatedAt: made, Document: `{"id":"x"}`}
	body := event.AppendJSON(nil, nil)
	body = append(body[:len(body)-1], `,"more":"`+strings.Repeat("x", 2*bodyHead)+`"}`...)
	post := func(id string, body []byte) (status int) {
		req := httptest.NewRequest(http.MethodPost, "/hooks", strings.NewReader(string(body)))
		req.Header.Set(webhook.HeaderID, id)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, req)
		return w.Code
	}
	first, second := till.NewID(made).String(), till.NewID(made).String()
	for _, c := range []struct {
		id   string
		body []byte
		want int
	}{{first, body, 200}, {first, body, 200}, {second, body, 200}, {"no id", body, 400}, {second, []byte("{}"), 400}} {
		if got := post(c.id, c.body); got != c.want {
			t.Errorf("id %s, body %.40s: answer %d, want %d", c.id, c.body, got, c.want)
		}
	}

	r.mu.Lock()
	r.at[1] = r.at[0] + 500
	r.mu.Unlock()
	b, err := p.awaitArrivals(ctx, 2)
	if err != nil || b.Count != 2 || b.Again != 1 || b.Span != 500 {
		t.Fatalf("book %+v, error %v", b, err)
	}
	if _, err := p.awaitArrivals(ctx, 1); err == nil {
		t.Error("a webhook too many was not noticed")
	}
	if err := p.call(ctx, http.MethodGet, "/book?waits=1", nil, http.StatusOK, &b); err != nil || len(b.Waits) != 2 {
		t.Fatalf("book %+v, error %v", b, err)
	}
	for _, w := range b.Waits {
		if w < int(time.Minute.Microseconds()) || w > int(time.Hour.Microseconds()) {
			t.Errorf("a webhook was %d µs on its way, where its event is a minute old", w)
		}
	}
	if err := p.resetArrivals(ctx); err != nil {
		t.Fatal(err)
	}
	if b, err := p.awaitArrivals(ctx, 0); err != nil || b.Again != 0 {
		t.Errorf("a new book has %+v, error %v", b, err)
	}
	if err := p.call(ctx, http.MethodGet, "/nothing", nil, http.StatusOK, nil); err == nil {
		t.Error("an answer 404 was taken")
	}
}

func TestBookRate(t *testing.T) {
	b := arrivals{Span: 500_000} // from the 10th to the 100th
	if got := b.rate(100); got != 180 {
		t.Errorf("%v per second, want 180", got)
	}
	if deadEvents(10_000) != 10_000 || deadEvents(10_000_000) != maxDeadEvents {
		t.Errorf("events of a dead endpoint: %d and %d", deadEvents(10_000), deadEvents(10_000_000))
	}
}
