package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"till"
)

// nodeShop is a client of the service.
type nodeShop struct {
	c    *cluster
	id   till.ID
	key  string
	node int

	mu         sync.Mutex
	answered   map[string]string    // idempotency key → payment id
	created    map[string]time.Time // payment id → when it was answered
	told       map[string]time.Time // payment id → when a webhook said that it has succeeded
	unsure     []string             // bodies without an answer
	lastCreate time.Time            // the last answer to a create
	paid       time.Time            // the last answer to a payout
	gap        time.Duration        // the longest time between two answers to creates since reset
	reset      time.Time
}

// open registers the shop's webhook endpoint.
func (s *nodeShop) open() {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var e struct {
			Data struct {
				Payment struct{ ID, Status string }
			}
		}
		json.Unmarshal(body, &e)
		s.mu.Lock()
		defer s.mu.Unlock()
		if p := e.Data.Payment; p.Status == "success" {
			s.told[p.ID] = time.Now()
		}
	}))
	s.c.t.Cleanup(server.Close)
	status, body := s.post("/webhook-endpoints", `{"url":"`+server.URL+`/hooks","events":["*"]}`)
	if status != http.StatusCreated {
		s.c.t.Fatalf("%d: %s", status, body)
	}
}

func (s *nodeShop) post(path, body string) (status int, answer []byte) {
	req, _ := http.NewRequest("POST", s.c.base()+path, bytes.NewReader([]byte(body)))
	req.Header.Set("X-Api-Key", s.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	if err != nil {
		return 0, nil
	}
	return res.StatusCode, answer
}

// buy creates payments and payouts until ctx ends.
func (s *nodeShop) buy(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		key := till.NewID(till.TimeOf(time.Now())).String()
		answered := s.create(fmt.Sprintf(`{"method":"mtn_momo","country":"CG","amount":{"value":"5000","currency":"XAF"},"idempotency_key":"%s","customer":{"phone":"242061234567"}}`, key), key)
		if n%5 == 4 {
			s.payOut()
		}
		if pause(ctx, 60*time.Millisecond); !answered {
			pause(ctx, time.Second) // each is tried again at the end
		}
	}
}

func (s *nodeShop) create(body, key string) bool {
	status, answer := s.post("/payments", body)
	s.mu.Lock()
	defer s.mu.Unlock()
	var p struct{ ID string }
	switch {
	case status == http.StatusAccepted && json.Unmarshal(answer, &p) == nil:
		now := time.Now()
		s.gap = max(s.gap, now.Sub(later(s.lastCreate, s.reset)))
		s.answered[key], s.created[p.ID], s.lastCreate = p.ID, now, now
		return true
	case status == 0 || status == http.StatusServiceUnavailable:
		s.unsure = append(s.unsure, body)
	default:
		s.c.t.Errorf("status %d: %s", status, answer)
	}
	return false
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// payOut sends money to a customer. A wallet that has too little is an answer too.
func (s *nodeShop) payOut() {
	key := till.NewID(till.TimeOf(time.Now())).String()
	status, answer := s.post("/payouts", fmt.Sprintf(`{"method":"mtn_momo","country":"CG","amount":{"value":"100","currency":"XAF"},"idempotency_key":"%s","recipient":{"phone":"242061234567"}}`, key))
	s.mu.Lock()
	defer s.mu.Unlock()
	switch status {
	case http.StatusAccepted, http.StatusUnprocessableEntity:
		s.paid = time.Now()
	case 0, http.StatusServiceUnavailable:
	default:
		s.c.t.Errorf("status %d: %s", status, answer)
	}
}

// servedSince reports whether a payment and a payout were answered, and a webhook has reported
// a success, since a moment.
func (s *nodeShop) servedSince(from time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := false
	for id, at := range s.told {
		told = told || at.After(from) && s.created[id].After(from)
	}
	return told && s.lastCreate.After(from) && s.paid.After(from)
}

// watch measures gaps between answers from a moment on.
func (s *nodeShop) watch(from time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gap, s.reset = 0, from
}

// longestGap returns the longest time without an answer to a create since a moment.
func (s *nodeShop) longestGap(from time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.gap, time.Since(later(s.lastCreate, from)))
}

// expectServed fails if the shop was not served since a moment, although something happened
// to others.
func (s *nodeShop) expectServed(from time.Time, what string) {
	t := s.c.t
	t.Helper()
	gap := s.longestGap(from)
	s.mu.Lock()
	defer s.mu.Unlock()
	var slowest time.Duration
	whole := 0
	for id, at := range s.told {
		if made := s.created[id]; made.After(from) {
			whole++
			slowest = max(slowest, at.Sub(made))
		}
	}
	if gap > maxWait || whole == 0 || s.paid.Before(from) {
		t.Errorf("while %s, a client of node %d waited %s for a create, saw %d lives end, the last payout was answered %s ago",
			what, s.node, gap, whole, time.Since(s.paid))
	}
	t.Logf("%s: a client of node %d waited at most %s between two creates; %d whole lives, told in at most %s", what, s.node, gap.Round(time.Millisecond), whole, slowest.Round(time.Millisecond))
}

func (s *nodeShop) retryAll() {
	open := s.unsure
	s.unsure = nil
	retryCreates(s.c.t, open, s.create)
}
