package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"till"
	"till/books"
	"till/cmd/till/internal/money"
	"till/provider/sandbox"
	"till/store"
)

// killWindow is the customers' time in the test: long enough for a send that
// was lost with a process to be made again after its lease.
const killWindow = 20 * time.Second

// TestKill ends the server without a word, under load, many times in a row,
// and after each time opens the books: every create that was answered is
// there, every invariant holds, and no payment has two debits in the
// operator's own book. TILL_KILLS says how many times.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("make quick leaves it out: it starts and kills servers")
	}
	t.Parallel()
	kills := asked("TILL_KILLS", 5)
	k := newKilling(t)
	var told *receiver
	for n := range kills {
		if n > 0 && n%50 == 0 {
			t.Logf("%d of %d kills, %d payments answered", n, kills, len(k.answered))
		}
		s := k.start()
		if n == 0 {
			told = k.receive()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(100+rand.IntN(400))*time.Millisecond)
		// The kill comes while requests are on their way.
		context.AfterFunc(ctx, func() { s.cmd.Process.Kill() })
		k.load(ctx, 3, loadPause)
		<-ctx.Done()
		cancel()
		k.end(s, syscall.SIGKILL)
		k.verify()
	}
	// Once more, in peace: what was left lying is picked up, and a stop by
	// SIGTERM leaves everything in order.
	s := k.start()
	k.retryAll()
	k.settle()
	told.await(k)
	k.end(s, syscall.SIGTERM)
	k.verify()
	k.compareBooks()
	told.compare(k)
	t.Logf("%d kills, %d payments answered, %d creates without an answer tried again", kills, len(k.answered), k.retried)
}

// killing is a service that is treated badly, and what its client knows.
type killing struct {
	t        *testing.T
	dir      string
	database string        // a file or a URL
	book     string        // the sandbox operator's
	window   time.Duration // the customers' time; 0 means killWindow
	program  string        // another program than this one; "" means this one
	admin    string        // where 'till serve' shows its health; "" means 'till dev'

	mu       sync.Mutex
	servers  []*instance
	key      string
	answered map[string]string // idempotency key → payment id
	open     []string          // bodies whose answer was lost
	retried  int
}

// instance is one running server.
type instance struct {
	cmd  *exec.Cmd
	base string
}

// log returns what an instance that has ended has logged.
func (s *instance) log() string { return s.cmd.Stderr.(*bytes.Buffer).String() }

// newKilling is one on a file in a folder of its own.
func newKilling(t *testing.T) *killing {
	t.Helper()
	dir := t.TempDir()
	return &killing{t: t, dir: dir, database: filepath.Join(dir, "till.db"), book: filepath.Join(dir, "sandbox.db"), answered: map[string]string{}}
}

// asked returns the number that the environment has under a name, or else another.
func asked(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// start starts a server with further arguments.
func (k *killing) start(args ...string) *instance {
	k.t.Helper()
	path, err := exec.LookPath(cmp.Or(k.program, "till"))
	if err != nil {
		k.t.Fatal(err)
	}
	var log bytes.Buffer
	command := []string{"dev", "--data", k.dir}
	if k.admin != "" {
		command = []string{"serve", "--admin-listen", k.admin, "--secret-file", filepath.Join(k.dir, "till.secret")}
	}
	s := &instance{cmd: exec.Command(path, slices.Concat(command, []string{"--json", "--database", k.database, "--sandbox", k.book, "--listen", "127.0.0.1:0",
		"--approval-window", cmp.Or(k.window, killWindow).String(), "--rate-limit", "0"}, args)...)}
	s.cmd.Stderr = &log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { s.cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var ready struct {
		BaseURL string `json:"base_url"`
		Key     string `json:"api_key"`
	}
	if err != nil || json.Unmarshal(line, &ready) != nil {
		s.cmd.Wait()
		k.t.Fatalf("the server did not start: %v\n%s", err, log.String())
	}
	s.base = ready.BaseURL
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key == "" { // it stays the same, and is read without the lock
		k.key = ready.Key
	}
	k.servers = slices.DeleteFunc(append(k.servers, s), func(x *instance) bool { return x.cmd.ProcessState != nil })
	return s
}

// end ends a server and waits until it is gone.
func (k *killing) end(s *instance, sig syscall.Signal) {
	t := k.t
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil && sig != syscall.SIGKILL {
		t.Fatal(err)
	}
	err := s.cmd.Wait()
	if sig == syscall.SIGTERM && err != nil {
		t.Errorf("SIGTERM: %v, want exit 0", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.servers) > 1 { // requests to the last one fail until there is another
		k.servers = slices.DeleteFunc(k.servers, func(x *instance) bool { return x == s })
	}
}

// base returns the address of one of the servers.
func (k *killing) base() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.servers[rand.IntN(len(k.servers))].base
}

// nasty are the stories in which something goes wrong on the way.
var nasty = []string{"4567", "4568", "0002", "0005", "0011", "0012", "0015", "0016", "0017", "0018"}

// loadPause is what a connection usually lets pass between two payments.
const loadPause = 15 * time.Millisecond

// load creates payments from several connections until ctx ends, with a
// pause between two: the books of thousands of payments are opened often.
func (k *killing) load(ctx context.Context, connections int, between time.Duration) {
	var wg sync.WaitGroup
	for range connections {
		wg.Go(func() {
			for ; ctx.Err() == nil; pause(ctx, between) {
				key := till.NewID(till.TimeOf(time.Now())).String()
				k.send(ctx, fmt.Sprintf(`{"method":"mtn_momo","country":"CG","amount":{"value":"%d","currency":"XAF"},"idempotency_key":"%s","customer":{"phone":"24206123%s"}}`,
					100+rand.IntN(10_000), key, nasty[rand.IntN(len(nasty))]), key)
			}
		})
	}
	wg.Wait()
}

func (k *killing) send(ctx context.Context, body, key string) bool {
	req, _ := http.NewRequestWithContext(context.WithoutCancel(ctx), "POST", k.base()+"/payments", bytes.NewReader([]byte(body)))
	req.Header.Set("X-Api-Key", k.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	var p struct {
		ID string `json:"id"`
	}
	if err == nil {
		defer resp.Body.Close()
		var b []byte
		if b, err = io.ReadAll(resp.Body); err == nil {
			err = json.Unmarshal(b, &p)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.open = append(k.open, body)
		return false
	}
	if resp.StatusCode == http.StatusServiceUnavailable {
		k.open = append(k.open, body) // it said so: try again
		return false
	}
	if resp.StatusCode != http.StatusAccepted {
		k.t.Errorf("status %d for %s", resp.StatusCode, body)
		return false
	}
	if first, ok := k.answered[key]; ok && first != p.ID {
		k.t.Errorf("key %s made two payments, %s and %s", key, first, p.ID)
	}
	k.answered[key] = p.ID
	return true
}

// retryAll sends again what got no answer.
func (k *killing) retryAll() {
	open := k.open
	k.open = nil
	retryCreates(k.t, open, func(body, key string) bool { return k.send(context.Background(), body, key) })
	k.retried += len(open)
}

// retryCreates does what a client does that got no answer: the same again, with the same key.
func retryCreates(t *testing.T, bodies []string, send func(body, key string) bool) {
	t.Helper()
	for _, body := range bodies {
		var b struct {
			Key string `json:"idempotency_key"`
		}
		if err := json.Unmarshal([]byte(body), &b); err != nil || !send(body, b.Key) {
			t.Errorf("a retry got no answer: %v", err)
		}
	}
}

// settle waits until no payment is open any more.
func (k *killing) settle() {
	deadline := time.Now().Add(killWindow + 2*time.Minute) // the machine may be busy
	for {
		open := k.total("pending") + k.total("processing")
		if open == 0 {
			return
		}
		if time.Now().After(deadline) {
			k.t.Errorf("%d payments are still open", open)
			return
		}
		<-time.After(200 * time.Millisecond)
	}
}

// withStore opens the database beside the servers.
func (k *killing) withStore(f func(s *store.Store) error) {
	k.t.Helper()
	onStore(k.t, k.database, f)
}

// onStore opens a database, which a server may use, for a function that must work.
func onStore(t *testing.T, database string, f func(s *store.Store) error) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Path: database, Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := f(s); err != nil {
		t.Fatal(err)
	}
}

func (k *killing) total(status string) int {
	req, _ := http.NewRequest("GET", k.base()+"/payments?limit=1&status="+status, nil)
	req.Header.Set("X-Api-Key", k.key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		k.t.Fatal(err)
	}
	defer resp.Body.Close()
	var page struct {
		Total int `json:"total"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
		k.t.Fatal(err)
	}
	return page.Total
}

// verify opens the database that the dead server left and proves the books.
func (k *killing) verify() {
	k.t.Helper()
	ctx := context.Background()
	s, err := store.Open(ctx, store.Config{Path: k.database})
	if err != nil {
		k.t.Fatal(err)
	}
	defer s.Close()
	key, err := money.AuditKey(ctx, s, k.database, "")
	if err != nil {
		k.t.Fatal(err)
	}
	report, err := books.Verify(ctx, s, books.Options{Key: key})
	if err != nil {
		k.t.Fatal(err)
	}
	for _, p := range report.Problems {
		k.t.Errorf("%s: %s (%s)", p.Invariant, p.Detail, p.Subject)
	}
	if k.t.Failed() {
		k.t.FailNow()
	}
	err = s.View(ctx, func(tx *store.Tx) error {
		clients, err := tx.Clients(ctx, till.ID{}, 1)
		if err != nil {
			return err
		}
		for key, id := range k.answered {
			parsed, _ := till.ParseID(id)
			keyID, _ := till.ParseID(key)
			p, err := tx.PaymentByKey(ctx, clients[0].ID, keyID)
			if err != nil {
				return err
			}
			if p == nil || p.ID != parsed {
				k.t.Errorf("payment %s was answered and is not there", id)
			}
		}
		return nil
	})
	if err != nil {
		k.t.Fatal(err)
	}
}

// compareBooks holds our books against the operator's (I8).
func (k *killing) compareBooks() {
	ctx := context.Background()
	o, err := sandbox.Open(ctx, sandbox.Config{Path: k.book})
	if err != nil {
		k.t.Fatal(err)
	}
	defer o.Close()
	all, err := o.Debits(ctx)
	if err != nil {
		k.t.Fatal(err)
	}
	debits := map[till.ID]int{}
	for _, d := range all {
		if debits[d.Payment]++; debits[d.Payment] > 1 {
			k.t.Errorf("payment %s was debited %d times", d.Payment, debits[d.Payment])
		}
	}
	s, err := store.Open(ctx, store.Config{Path: k.database})
	if err != nil {
		k.t.Fatal(err)
	}
	defer s.Close()
	credited := 0
	err = s.View(ctx, func(tx *store.Tx) error {
		clients, err := tx.Clients(ctx, till.ID{}, 1000)
		for _, c := range clients {
			for offset := 0; err == nil; offset += 200 {
				var rows []*store.PaymentRow
				if rows, _, err = tx.ListPayments(ctx, c.ID, store.PaymentFilter{}, store.Page{Limit: 200, Offset: offset}); len(rows) == 0 {
					break
				}
				for _, p := range rows {
					got := 0
					if p.Status == till.Success || p.LateEvent != 0 {
						got = 1
						credited++
					}
					if debits[p.ID] != got {
						k.t.Errorf("payment %s (%s %s) has %d debits at the operator and %d credits here", p.ID, p.Phone, p.Status, debits[p.ID], got)
					}
				}
			}
		}
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Logf("%d debits at the operator, %d credits here", len(all), credited)
}
