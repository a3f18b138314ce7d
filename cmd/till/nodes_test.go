package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"till"
	"till/store"
	"till/store/storetest"
)

// maxWait is how long a client may wait because of a node that it is not on.
const maxWait = 5 * time.Second

// TestNodesDie kills nodes of Citus under load: the clients of the others are served all the
// time, with payments, payouts and webhooks, and nothing that was answered is lost. It
// needs a cluster (TILL_TEST_CITUS_URL) and a command that can end and start its nodes:
// TILL_TEST_CITUS_NODE is run with "kill N" or "start N", where 0 is the coordinator and 1
// and 2 are the others, in the order of their groups. TILL_KILLS says how often each
// of node 1 and of the coordinator is killed.
func TestNodesDie(t *testing.T) {
	command := os.Getenv("TILL_TEST_CITUS_NODE")
	engines := storetest.Engines()
	if engine := engines[len(engines)-1]; engine.Name != "citus" || command == "" {
		t.Skip("TILL_TEST_CITUS_URL and TILL_TEST_CITUS_NODE name no cluster whose nodes can be killed")
	}
	kills := 1
	if n, err := strconv.Atoi(os.Getenv("TILL_KILLS")); err == nil {
		kills = n
	}
	dir := t.TempDir()
	c := &cluster{command: command, killing: &killing{t: t, dir: dir, database: engines[len(engines)-1].Config(t).Path,
		book: filepath.Join(dir, "operator.db"), answered: map[string]string{}}}
	server := c.start()
	c.makeShops(8)
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for _, s := range c.shops {
		load.Go(func() { s.buy(ctx) })
	}
	c.allServed("at the beginning")
	for n := range 2 * kills {
		node := 1 - n%2
		began := time.Now()
		for _, s := range c.shops {
			s.watch(began)
		}
		c.do("kill", node)
		pause(ctx, 7*time.Second)
		for _, s := range c.shops {
			if node != 0 && s.node != c.groups[node] {
				s.expectServed(began, node)
			}
		}
		c.do("start", node)
		c.allServed(fmt.Sprintf("after node %d was killed", node))
	}
	stop()
	load.Wait()
	for _, s := range c.shops {
		s.retryAll()
	}
	c.settleAll()
	c.end(server, syscall.SIGTERM)
	c.verify()
	c.compareShops()
}

// cluster is a service on a cluster whose nodes are killed.
type cluster struct {
	*killing
	command string
	groups  []int // of the nodes, the coordinator's first
	shops   []*nodeShop
}

// do kills or starts a node, and tries for a while: the remains of the killed one may still
// be there.
func (c *cluster) do(what string, node int) {
	c.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		out, err := exec.Command("sh", "-c", c.command+" "+what+" "+strconv.Itoa(node)).CombinedOutput()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s %d: %v\n%s", what, node, err, out)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// makeShops makes clients until there are some on each node.
func (c *cluster) makeShops(n int) {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Config{Path: c.database})
	if err != nil {
		c.t.Fatal(err)
	}
	defer s.Close()
	c.groups = []int{0}
	on := map[int]int{}
	for i := 0; len(c.shops) < n; i++ {
		var out, errs bytes.Buffer
		if code := run(ctx, []string{"client", "create", "--database", c.database, "--name", fmt.Sprint("shop ", i), "--json"}, &out, &errs); code != 0 {
			c.t.Fatal(errs.String())
		}
		var made struct {
			ID     string `json:"client_id"`
			APIKey string `json:"api_key"`
		}
		if err := json.Unmarshal(out.Bytes(), &made); err != nil || made.APIKey == "" {
			c.t.Fatalf("%v: %s", err, out.String())
		}
		id, err := till.ParseID(made.ID)
		if err != nil {
			c.t.Fatal(err)
		}
		out.Reset()
		if code := run(ctx, []string{"key", "create", "--database", c.database, "--client", made.ID, "--json",
			"--scopes", "payments:read,payments:write,payouts:write,webhooks:manage"}, &out, &errs); code != 0 {
			c.t.Fatal(errs.String())
		}
		if err := json.Unmarshal(out.Bytes(), &made); err != nil {
			c.t.Fatal(err)
		}
		node := s.Node(ctx, id)
		if on[node]++; on[node] > n/2 {
			continue
		}
		if on[node] == 1 {
			c.groups = append(c.groups, node)
		}
		h := &nodeShop{c: c, id: id, key: made.APIKey, node: node, answered: map[string]string{}, created: map[string]time.Time{}, told: map[string]time.Time{}}
		h.open()
		c.shops = append(c.shops, h)
	}
	if len(c.groups) < 3 {
		c.t.Fatalf("all clients are on one node: %v", on)
	}
	if c.groups[1] > c.groups[2] {
		c.groups[1], c.groups[2] = c.groups[2], c.groups[1]
	}
}

// allServed waits until each shop has been served from now on.
func (c *cluster) allServed(when string) {
	c.t.Helper()
	from := time.Now()
	for deadline := from.Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		waiting := 0
		for _, s := range c.shops {
			if !s.servedSince(from) {
				waiting++
			}
		}
		if waiting == 0 {
			c.t.Logf("all served %s %s", time.Since(from).Round(time.Millisecond), when)
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%d of %d clients are not served %s", waiting, len(c.shops), when)
		}
	}
}

// settleAll waits until nothing is open.
func (c *cluster) settleAll() {
	for _, s := range c.shops {
		c.key = s.key
		c.settle()
	}
}

// compareShops looks for all that was answered.
func (c *cluster) compareShops() {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Config{Path: c.database})
	if err != nil {
		c.t.Fatal(err)
	}
	defer s.Close()
	payments := 0
	for _, h := range c.shops {
		err := s.View(ctx, func(tx *store.Tx) error {
			for key, id := range h.answered {
				k, _ := till.ParseID(key)
				p, err := tx.PaymentByKey(ctx, h.id, k)
				if err != nil {
					return err
				}
				if p == nil || p.ID.String() != id {
					c.t.Errorf("payment %s was answered and is not there", id)
				}
				payments++
			}
			return nil
		})
		if err != nil {
			c.t.Fatal(err)
		}
	}
	c.t.Logf("%d payments answered, all there", payments)
}

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
		s.create(fmt.Sprintf(`{"method":"mtn_momo","country":"CG","amount":{"value":"5000","currency":"XAF"},"idempotency_key":"%s","customer":{"phone":"242061234567"}}`, key), key)
		if n%5 == 4 {
			s.payOut()
		}
		pause(ctx, 60*time.Millisecond)
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

// servedSince reports whether a payment and a payout were answered, and a webhook has told of
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

// expectServed fails if the shop was not served since a node that it is not on was killed.
func (s *nodeShop) expectServed(from time.Time, node int) {
	t := s.c.t
	t.Helper()
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
	gap := max(s.gap, time.Since(later(s.lastCreate, from)))
	if gap > maxWait || whole == 0 || s.paid.Before(from) {
		t.Errorf("while node %d was away, a client of another waited %s for a create, saw %d lives end, the last payout was answered %s ago",
			node, gap, whole, time.Since(s.paid))
	}
	t.Logf("node %d away: a client of node %d waited at most %s between two creates; %d whole lives, told in at most %s", node, s.node, gap.Round(time.Millisecond), whole, slowest.Round(time.Millisecond))
}

func (s *nodeShop) retryAll() {
	open := s.unsure
	s.unsure = nil
	for _, body := range open {
		var b struct {
			Key string `json:"idempotency_key"`
		}
		json.Unmarshal([]byte(body), &b)
		if !s.create(body, b.Key) {
			s.c.t.Errorf("a retry got no answer")
		}
	}
}
