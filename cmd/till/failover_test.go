package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"till"
	"till/internal/db/pgtest"
	"till/provider/sandbox"
	"till/store"
)

// TestFailover kills the primary under load and promotes its standby (F31),
// once with each kind of standby. The operator keeps its own book and forgets
// nothing. TILL_FAILOVERS says how many times.
func TestFailover(t *testing.T) {
	t.Parallel()
	if os.Getenv("TILL_TEST_POSTGRES_URL") == "" {
		t.Skip("TILL_TEST_POSTGRES_URL names no server; make test starts one")
	}
	times := asked("TILL_FAILOVERS", 1)
	for range times {
		t.Run("what was answered survives with a synchronous standby", func(t *testing.T) {
			t.Parallel()
			f := newFailover(t, true)
			f.run(func() {})
			if len(f.lost()) > 0 {
				t.Errorf("%d payments were answered and are not there", len(f.lost()))
			}
			f.finish()
		})
		t.Run("what an asynchronous standby lost is never charged twice", func(t *testing.T) {
			t.Parallel()
			f := newFailover(t, false)
			f.run(f.detach)
			f.createLostAgain()
			f.finish()
		})
	}
}

// failover is one server on a primary with a standby, and what its client
// knows.
type failover struct {
	*killing
	primary, standby *pgtest.Cluster
	server           *instance

	mu     sync.Mutex
	bodies map[string]string // by idempotency key
}

func newFailover(t *testing.T, synchronous bool) *failover {
	t.Helper()
	// An answered commit is in the operating system's hands, so a kill loses
	// nothing that fsync would have saved.
	primary, err := pgtest.NewInMemory(t.Context(), "shared_buffers = 32MB")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(primary.Remove)
	standby, err := primary.Standby(t.Context(), "standby")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Remove)
	f := &failover{primary: primary, standby: standby, bodies: map[string]string{}}
	dir := t.TempDir()
	f.killing = &killing{t: t, dir: dir, book: filepath.Join(dir, "operator.db"), answered: map[string]string{},
		database: fmt.Sprintf("postgres://till@127.0.0.1:%d,127.0.0.1:%d/postgres?sslmode=disable&target_session_attrs=read-write", primary.Port, standby.Port)}
	if synchronous {
		f.exec(primary, "ALTER SYSTEM SET synchronous_standby_names = 'standby'", "SELECT pg_reload_conf()")
		f.await("the standby is synchronous", func() bool {
			return f.count(primary, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == 1
		})
	}
	f.server = f.start()
	f.doctor(synchronous)
	return f
}

// doctor asks 'till doctor' whether it sees what a failover would lose.
func (f *failover) doctor(synchronous bool) {
	f.t.Helper()
	var out, errs bytes.Buffer
	code := run(f.t.Context(), []string{"doctor", "--database", f.database, "--secret-file", filepath.Join(f.dir, "till.secret")}, &out, &errs)
	want := regexp.MustCompile(`warning +standbys +1 follow asynchronously`)
	if synchronous {
		want = regexp.MustCompile(`ok +standbys +1 of 1 are synchronous`)
	}
	if code != 0 || !want.Match(out.Bytes()) || !regexp.MustCompile(`warning +fsync`).Match(out.Bytes()) || !regexp.MustCompile(`ok +secret`).Match(out.Bytes()) {
		f.t.Errorf("till doctor ends with %d and does not say %q:\n%s%s", code, want, out.String(), errs.String())
	}
}

func (f *failover) exec(c *pgtest.Cluster, queries ...string) {
	f.t.Helper()
	conn, err := pgx.Connect(f.t.Context(), c.URL("postgres"))
	if err != nil {
		f.t.Fatal(err)
	}
	defer conn.Close(f.t.Context())
	for _, q := range queries {
		if _, err := conn.Exec(f.t.Context(), q); err != nil {
			f.t.Fatalf("%s: %v", q, err)
		}
	}
}

func (f *failover) count(c *pgtest.Cluster, query string) (n int) {
	f.t.Helper()
	conn, err := pgx.Connect(f.t.Context(), c.URL("postgres"))
	if err != nil {
		f.t.Fatal(err)
	}
	defer conn.Close(f.t.Context())
	if err := conn.QueryRow(f.t.Context(), query).Scan(&n); err != nil {
		f.t.Fatalf("%s: %v", query, err)
	}
	return n
}

// await waits for something that comes soon on a machine that is not busy.
func (f *failover) await(what string, done func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("after a minute still not: %s", what)
		}
	}
}

// answers returns how many creates were answered so far.
func (f *failover) answers() int {
	f.killing.mu.Lock()
	defer f.killing.mu.Unlock()
	return len(f.answered)
}

// run puts load on the service while the primary dies and the standby takes
// over; before is done in between, and more is answered after it.
func (f *failover) run(before func()) {
	f.t.Helper()
	ctx, stop := context.WithCancel(f.t.Context())
	defer stop()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for ; ctx.Err() == nil; pause(ctx, 25*time.Millisecond) {
				f.create(ctx)
			}
		})
	}
	more := func(what string) {
		f.t.Helper()
		n := f.answers() + 40
		f.await(what, func() bool { return f.answers() >= n })
	}
	more("creates are answered by the primary")
	before()
	more("creates are answered by the primary")
	f.primary.Kill()
	n := f.answers()
	if err := f.standby.Promote(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	promoted := time.Now()
	f.await("creates are answered by the new primary", func() bool { return f.answers() > n+4 })
	healed := time.Since(promoted)
	if healed > mostHealing() {
		f.t.Errorf("the first answers came %s after the standby was promoted, want at most %s", healed, mostHealing())
	}
	more("creates are answered by the new primary")
	stop()
	all.Wait()
	f.t.Logf("%d creates answered, %d without an answer; healed %s after the promotion", f.answers(), len(f.open), healed.Round(time.Millisecond))
}

// mostHealing is how long a service may take to answer again once its database does. It is 5 s,
// which 'make soak' measures with nothing beside it; what waits for a timeout or to be started
// again takes longer than what it is where many tests share the machine.
func mostHealing() time.Duration {
	if os.Getenv("TILL_FAILOVERS") != "" {
		return 5 * time.Second
	}
	return 30 * time.Second
}

var failoverStories = []string{"4567", "4568", "0002", "0011", "0012"}

func (f *failover) create(ctx context.Context) {
	key := till.NewID(till.TimeOf(time.Now())).String()
	f.mu.Lock()
	body := fmt.Sprintf(`{"method":"mtn_momo","country":"CG","amount":{"value":"5000","currency":"XAF"},"idempotency_key":"%s","customer":{"phone":"24206123%s"}}`,
		key, failoverStories[len(f.bodies)%len(failoverStories)])
	f.bodies[key] = body
	f.mu.Unlock()
	f.send(ctx, body, key)
}

// detach makes the standby follow nobody: what is committed from here on is
// lost with the primary.
func (f *failover) detach() {
	f.exec(f.standby, "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
	f.await("the standby follows nobody", func() bool {
		return f.count(f.primary, "SELECT count(*) FROM pg_stat_replication") == 0
	})
}

// lost returns the keys that were answered with a payment that is not there.
func (f *failover) lost() (keys []string) {
	f.t.Helper()
	ctx := context.Background()
	f.view(func(tx *store.Tx, client till.ID) error {
		keys = nil
		for key, id := range f.answered {
			k, _ := till.ParseID(key)
			p, err := tx.PaymentByKey(ctx, client, k)
			if err != nil {
				return err
			}
			if p == nil || p.ID.String() != id {
				keys = append(keys, key)
			}
		}
		return nil
	})
	return keys
}

func (f *failover) view(read func(tx *store.Tx, client till.ID) error) {
	f.t.Helper()
	ctx := context.Background()
	var s *store.Store
	f.await("the database can be opened", func() (ok bool) {
		var err error
		s, err = store.Open(ctx, store.Config{Path: f.database})
		return err == nil
	})
	defer s.Close()
	err := s.View(ctx, func(tx *store.Tx) error {
		clients, err := tx.Clients(ctx, till.ID{}, 1)
		if err != nil {
			return err
		}
		return read(tx, clients[0].ID)
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// createLostAgain does what a client does whose payment is unknown all of a
// sudden: the same again.
func (f *failover) createLostAgain() {
	f.t.Helper()
	keys := f.lost()
	if len(keys) == 0 {
		f.t.Error("nothing was lost, so nothing was shown")
	}
	for _, key := range keys {
		if status := f.status("/payments/" + f.answered[key]); status != http.StatusNotFound {
			f.t.Errorf("a payment that was lost is answered with %d", status)
		}
		delete(f.answered, key)
		if !f.send(context.Background(), f.bodies[key], key) {
			f.t.Errorf("a retry got no answer")
		}
	}
	f.t.Logf("%d payments were answered, lost and created again", len(keys))
}

func (f *failover) status(path string) int {
	req, _ := http.NewRequest("GET", f.base()+path, nil)
	req.Header.Set("X-Api-Key", f.key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// finish waits for the end of every payment and compares the books.
func (f *failover) finish() {
	f.t.Helper()
	f.retryAll()
	f.settle()
	f.end(f.server, syscall.SIGTERM)
	f.verify()
	f.compareByReference()
}

// compareByReference holds our books against the operator's by the reference
// that both know: a payment that was made again has another id.
func (f *failover) compareByReference() {
	f.t.Helper()
	ctx := context.Background()
	o, err := sandbox.Open(ctx, sandbox.Config{Path: f.book})
	if err != nil {
		f.t.Fatal(err)
	}
	defer o.Close()
	all, err := o.Debits(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	debits := map[till.ID]int{}
	for _, d := range all {
		debits[d.Reference]++
	}
	credited := 0
	f.view(func(tx *store.Tx, client till.ID) error {
		for key := range f.bodies {
			k, _ := till.ParseID(key)
			p, err := tx.PaymentByKey(ctx, client, k)
			if err != nil {
				return err
			}
			if p == nil {
				f.t.Errorf("there is no payment for key %s", key)
				continue
			}
			attempts, err := tx.Attempts(ctx, store.Ref{Client: client, ID: p.ID})
			if err != nil || len(attempts) == 0 {
				return fmt.Errorf("payment %s has %d attempts: %w", p.ID, len(attempts), err)
			}
			want := 0
			if p.Status == till.Success || p.LateEvent != 0 {
				want = 1
				credited++
			}
			ref := attempts[0].Reference
			if debits[ref] != want {
				f.t.Errorf("payment %s (%s %s) has %d debits at the operator and %d credits here", p.ID, p.Phone, p.Status, debits[ref], want)
			}
			delete(debits, ref)
		}
		return nil
	})
	for ref, n := range debits {
		f.t.Errorf("the operator has %d debits for %s, which nobody here knows", n, ref)
	}
	f.t.Logf("%d debits at the operator, %d credits here", len(all), credited)
}
