package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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
	command := nodeCommand(t)
	kills := asked("TILL_KILLS", 1)
	c := startCluster(t)
	for n := range 2 * kills {
		node := 1 - n%2
		began := c.watch()
		c.do(command, "kill", node)
		pause(t.Context(), 7*time.Second)
		for _, s := range c.shops {
			if node != 0 && s.node != c.groups[node] {
				s.expectServed(began, fmt.Sprintf("node %d was away", node))
			}
		}
		c.do(command, "start", node)
		c.allServed(fmt.Sprintf("after node %d was killed", node))
	}
	c.finish()
}

// TestANodeFreezes stops all processes of a node for a while, which then neither answers nor
// refuses: the clients of the other node are served, and nothing is lost. It needs the same
// command as TestNodesDie, which is run with "freeze N" and "thaw N".
func TestANodeFreezes(t *testing.T) {
	command := nodeCommand(t)
	c := startCluster(t)
	thaw := sync.OnceFunc(func() { c.do(command, "thaw", 1) })
	t.Cleanup(thaw)
	began := c.watch()
	c.do(command, "freeze", 1)
	pause(t.Context(), 20*time.Second)
	for _, s := range c.shops {
		if s.node != c.groups[1] {
			s.expectServed(began, "node 1 was frozen")
		}
	}
	thaw()
	c.allServed("after node 1 was frozen")
	c.finish()
}

// nodeCommand returns the command that ends and starts nodes.
func nodeCommand(t *testing.T) string {
	t.Helper()
	command := os.Getenv("TILL_TEST_CITUS_NODE")
	if command == "" {
		t.Skip("TILL_TEST_CITUS_NODE names no command that kills nodes")
	}
	return command
}

// cluster is a service on a cluster, with shops that buy all the time.
type cluster struct {
	*killing
	server *instance
	groups []int // of the nodes, the coordinator's first
	shops  []*nodeShop
	stop   func() // the load
}

// startCluster starts the service and the load. It skips the test if there is no cluster.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	dir := t.TempDir()
	c := &cluster{killing: &killing{t: t, dir: dir, database: citusEngine(t).Config(t).Path, book: filepath.Join(dir, "operator.db"), answered: map[string]string{}}}
	c.begin()
	c.allServed("at the beginning")
	return c
}

// citusEngine returns the engine of the cluster. It skips the test if there is none.
func citusEngine(t *testing.T) storetest.Engine {
	t.Helper()
	engines := storetest.Engines()
	engine := engines[len(engines)-1]
	if engine.Name != "citus" {
		t.Skip("TILL_TEST_CITUS_URL names no cluster")
	}
	return engine
}

// begin starts the service, and shops that buy.
func (c *cluster) begin() {
	c.t.Helper()
	c.server = c.start()
	c.makeShops(8)
	ctx, cancel := context.WithCancel(c.t.Context())
	var load sync.WaitGroup
	for _, s := range c.shops {
		load.Go(func() { s.buy(ctx) })
	}
	c.stop = func() { cancel(); load.Wait() }
}

// finish ends the load and the service. Nothing that was answered is lost, and the books are
// right, also beside the operator's.
func (c *cluster) finish() {
	c.t.Helper()
	c.settleShops()
	c.compareBooks()
}

// settleShops is finish without a check of the operator's books.
func (c *cluster) settleShops() {
	c.t.Helper()
	c.stop()
	var retries sync.WaitGroup
	for _, s := range c.shops {
		retries.Go(s.retryAll)
	}
	retries.Wait()
	c.settleAll()
	c.end(c.server, syscall.SIGTERM)
	c.verify()
	c.compareShops()
}

// watch measures gaps between answers from now on.
func (c *cluster) watch() time.Time {
	now := time.Now()
	for _, s := range c.shops {
		s.watch(now)
	}
	return now
}

// do kills or starts a node, and tries for a while: the remains of the killed one may still
// be there.
func (c *cluster) do(command, what string, node int) {
	c.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		out, err := exec.Command("sh", "-c", command+" "+what+" "+strconv.Itoa(node)).CombinedOutput()
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

// compareShops checks all that was answered.
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
