package store_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"till"
	"till/engine"
	"till/internal/db/pgtest"
	"till/store"
	"till/store/storetest"
)

// newCluster starts a server of the test's own, which it may treat badly. An
// answered commit is in the operating system's hands, so it survives a kill.
func newCluster(t *testing.T, settings ...string) *pgtest.Cluster {
	t.Helper()
	if os.Getenv("TILL_TEST_POSTGRES_URL") == "" {
		t.Skip("TILL_TEST_POSTGRES_URL names no server; make test starts one")
	}
	c, err := pgtest.NewInMemory(t.Context(), append([]string{"shared_buffers = 16MB"}, settings...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Remove)
	return c
}

// bounded fails the test if f takes long.
func bounded(t *testing.T, what string, limit time.Duration, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took > limit {
		t.Errorf("%s took %s, want at most %s", what, took, limit)
	}
}

// healed tries until f returns no error, for at most a minute.
func healed(t *testing.T, what string, f func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	t.Errorf("%s: after a minute it has not healed: %v", what, err)
}

// F32: no t.Parallel, because it counts goroutines.
func TestADatabaseThatIsAway(t *testing.T) {
	c := newCluster(t)
	s := storetest.Open(t, store.Config{Path: c.URL("postgres")})
	t.Cleanup(func() { storetest.CheckInvariants(t, s) })
	client := storetest.NewClient(t, s, till.Test)
	o := newOperator(t, nil)
	sv := newService(t, s, o, client, true)
	if _, err := sv.create(newKey()); err != nil {
		t.Fatal(err)
	}
	sv.awaitSuccess(t, s, 1)
	before := runtime.NumGoroutine()

	c.Kill()
	const calls = 300
	keys := make([]string, calls)
	bounded(t, "refusing the creates", 10*time.Second, func() {
		var all sync.WaitGroup
		for i := range keys {
			keys[i] = newKey()
			all.Go(func() {
				if _, err := sv.create(keys[i]); !isAway(err) {
					t.Errorf("a create without a database: %v, want service_unavailable", err)
				}
			})
		}
		all.Wait()
	})
	if n := runtime.NumGoroutine(); n > before+30 {
		t.Errorf("%d goroutines while it is away, %d before", n, before)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	healed(t, "a create after the server's return", func() error {
		_, err := sv.create(keys[0])
		return err
	})
	// The one that was created in the end, and the first one: whatever else
	// had reached the operator would have no payment.
	sv.awaitSuccess(t, s, 2)

	// A restart between two calls is nobody's business: nothing was sent.
	idle := storetest.Open(t, store.Config{Path: c.URL("postgres")})
	use := func() error {
		err := idle.Update(t.Context(), func(tx *store.Tx) error { return tx.SetSuspended(t.Context(), client.ID, false) })
		return errors.Join(err, idle.View(t.Context(), func(tx *store.Tx) error { _, err := tx.Client(t.Context(), client.ID); return err }))
	}
	for range 12 {
		if err := use(); err != nil {
			t.Fatal(err)
		}
	}
	c.Stop()
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 12 {
		if err := use(); err != nil {
			t.Errorf("a call after a restart: %v", err)
		}
	}
}

// F32: the server is there and takes no writes, or no more connections.
func TestADatabaseThatRefuses(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "max_connections = 15", "superuser_reserved_connections = 0", "max_wal_senders = 0")
	s := storetest.Open(t, store.Config{Path: c.URL("postgres")})
	t.Cleanup(func() { storetest.CheckInvariants(t, s) })
	client := storetest.NewClient(t, s, till.Test)
	sv := newService(t, s, newOperator(t, nil), client, false)
	admin, err := pgx.Connect(t.Context(), c.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	set := func(queries ...string) {
		t.Helper()
		for _, q := range append(append([]string{"SET default_transaction_read_only = off"}, queries...), "SELECT pg_reload_conf()") {
			if _, err := admin.Exec(t.Context(), q); err != nil {
				t.Fatalf("%s: %v", q, err)
			}
		}
	}

	set("ALTER SYSTEM SET default_transaction_read_only = on")
	healed(t, "a server that takes no writes is noticed", func() error {
		_, err := sv.create(newKey())
		if isAway(err) {
			return nil
		}
		return errors.New("a create went well")
	})
	set("ALTER SYSTEM RESET default_transaction_read_only")
	healed(t, "it takes writes again", func() error { _, err := sv.create(newKey()); return err })

	// The server ends the store's sessions and others take their places, until
	// a call finds none: the store may have been quicker once or twice.
	var others []*pgx.Conn
	refused := false
	for deadline := time.Now().Add(time.Minute); !refused && time.Now().Before(deadline); {
		keep := []int32{int32(admin.PgConn().PID())}
		for _, conn := range others {
			keep = append(keep, int32(conn.PgConn().PID()))
		}
		if _, err := admin.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE backend_type = 'client backend' AND NOT pid = ANY($1)`, keep); err != nil {
			t.Fatal(err)
		}
		for {
			conn, err := pgx.Connect(t.Context(), c.URL("postgres"))
			if err != nil {
				break
			}
			others = append(others, conn)
		}
		err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.SetSuspended(t.Context(), client.ID, false) })
		if err != nil && !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("too many connections: %v, want a database that is away", err)
		}
		refused = err != nil
	}
	if !refused {
		t.Error("no call met the limit of connections")
	}
	for _, conn := range others {
		conn.Close(t.Context())
	}
	healed(t, "connections are free again", func() error {
		var errs []error
		for range 6 { // each session of either kind
			_, err := sv.create(newKey())
			errs = append(errs, err, s.View(t.Context(), func(tx *store.Tx) error { _, err := tx.Lanes(t.Context()); return err }))
		}
		return errors.Join(errs...)
	})
}

// A session that died while nobody used it is noticed by the first question,
// and replaced: the reader does not see it.
func TestADeadSessionIsReplacedForAReader(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := storetest.Open(t, store.Config{Path: c.URL("postgres"), NoNotify: true})
	client := storetest.NewClient(t, s, till.Test)
	admin, err := pgx.Connect(t.Context(), c.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.WithoutCancel(t.Context()))
	for range 3 {
		ended, err := admin.Exec(t.Context(), `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'till'`)
		if err != nil || ended.RowsAffected() == 0 {
			t.Fatalf("%d sessions were ended, error %v", ended.RowsAffected(), err)
		}
		var found *till.Client
		err = s.View(t.Context(), func(tx *store.Tx) (err error) {
			found, err = tx.Client(t.Context(), client.ID)
			return err
		})
		if err != nil || found == nil || found.ID != client.ID {
			t.Fatalf("found %v, error %v", found, err)
		}
	}
}

// A commit whose wait for the synchronous standby is cancelled is reported as
// a success, with a warning; a failover would lose it.
func TestACommitThatIsNotOnItsStandbyIsUnknown(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := storetest.Open(t, store.Config{Path: c.URL("postgres")})
	client := storetest.NewClient(t, s, till.Test)
	admin, err := pgx.Connect(t.Context(), c.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.WithoutCancel(t.Context()))
	exec := func(q string) (n int64) {
		t.Helper()
		tag, err := admin.Exec(t.Context(), q)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		return tag.RowsAffected()
	}
	exec("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
	exec("SELECT pg_reload_conf()")
	ended := make(chan error, 1)
	var stop atomic.Bool
	var begun atomic.Int64
	go func() {
		var err error
		for err == nil && !stop.Load() { // until the reload has reached the server's processes
			begun.Add(1)
			err = s.Update(context.Background(), func(tx *store.Tx) error { return tx.SetSuspended(context.Background(), client.ID, true) })
		}
		ended <- err
	}()
	const waiting = " FROM pg_stat_activity WHERE application_name = 'till' AND wait_event = 'SyncRep'"
	for exec("SELECT pid"+waiting) == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	cancelled := begun.Load() // it waits, and no other begins
	if exec("SELECT pg_cancel_backend(pid)"+waiting) == 0 {
		t.Fatal("the commit has ceased to wait by itself")
	}
	select {
	case err := <-ended:
		if !errors.Is(err, store.ErrUnknownCommit) || !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%v, want an unknown commit", err)
		}
		// One that comes after it waits until we lose patience, and is unknown, too.
		if n := begun.Load(); n != cancelled {
			t.Errorf("commit %d is on no standby and was called a success: commit %d is the one that failed", cancelled, n)
		}
	case <-time.After(20 * time.Second):
		t.Error("a commit that is on no standby was called a success")
		exec("ALTER SYSTEM SET synchronous_standby_names = ''")
		exec("SELECT pg_reload_conf()")
		stop.Store(true)
		<-ended
	}
}

// F28: two transactions that wait for each other are both run to the end.
func TestADeadlockIsRunAgain(t *testing.T) {
	t.Parallel()
	l := newLink(t)
	a, b := storetest.NewClient(t, l.straight, till.Test).ID, storetest.NewClient(t, l.straight, till.Test).ID
	var both, all sync.WaitGroup
	both.Add(2)
	for i, s := range []*store.Store{l.straight, l.through} {
		order := []till.ID{a, b}
		if i == 1 {
			order = []till.ID{b, a}
		}
		runs := 0
		all.Go(func() {
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				runs++
				for n, id := range order {
					if _, err := tx.LockHeads(t.Context(), []till.ID{id}); err != nil {
						return err
					}
					if n == 0 && runs == 1 {
						both.Done()
						both.Wait()
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("after %d runs: %v", runs, err)
			}
		})
	}
	all.Wait()
}

// F28: a lock that is never let go of is waited for a bounded number of times.
func TestALockThatIsHeldIsTriedABoundedNumberOfTimes(t *testing.T) {
	t.Parallel()
	l := newLink(t)
	client := storetest.NewClient(t, l.straight, till.Test)
	if l.straight.Distributed() {
		storetest.SetOnNodes(t, l.url, "lock_timeout = '20ms'")
	}
	hasty := storetest.Open(t, store.Config{Path: l.url + "&lock_timeout=20ms"})
	err := l.straight.Update(t.Context(), func(tx *store.Tx) error {
		if _, err := tx.LockHeads(t.Context(), []till.ID{client.ID}); err != nil {
			return err
		}
		runs := 0
		err := hasty.Update(t.Context(), func(tx *store.Tx) error {
			runs++
			_, err := tx.LockHeads(t.Context(), []till.ID{client.ID})
			return err
		})
		if !errors.Is(err, store.ErrUnavailable) || runs < 2 || runs > 20 {
			t.Errorf("after %d runs: %v; want a few and then a database that is away", runs, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// F21, F22, F26, F28: two instances on one database, whose clocks are 20
// minutes apart, are asked for the same payments and work off the same steps.
// That is harder than what can happen: their own clocks decide nothing. Each
// takes the other's leases for ended, or for endless, and yet there is one
// payment per key, and it is charged once. Batches of both hold the same
// clients, in any order, and none of them fails.
func TestTwoInstancesSendOnceAndCreditOnce(t *testing.T) {
	t.Parallel()
	l := newLink(t)
	o := newOperator(t, l.now)
	var stores []*store.Store
	for _, skew := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		stores = append(stores, storetest.Open(t, store.Config{Path: l.url, Now: func() till.Time { return l.now().Add(skew) }}))
	}
	clients := make([]*till.Client, 4)
	for i := range clients {
		clients[i] = storetest.NewClient(t, l.straight, till.Test)
	}
	instances := []*service{newService(t, stores[0], o, clients[0], true), newService(t, stores[1], o, clients[0], true)}
	const keys, times = 15, 10
	var all sync.WaitGroup
	for n := range keys * len(clients) {
		key := newKey()
		var mu sync.Mutex
		ids := map[till.ID]bool{}
		for i := range times {
			all.Go(func() {
				k := key
				if i%3 == 1 {
					k = strings.ToUpper(key)
				}
				made, err := instances[i%2].as(clients[n%len(clients)]).create(k)
				if err != nil {
					t.Errorf("create: %v", err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if ids[made.Payment.ID] = true; len(ids) > 1 {
					t.Errorf("one key made payments %v", ids)
				}
			})
		}
	}
	all.Wait()
	for _, client := range clients {
		instances[0].as(client).awaitSuccess(t, l.straight, keys)
	}
}

// F25: an instance that is held still past its lease, with the right to send in its
// hands, must not use it.
func TestAHolderThatWakesAfterItsLeaseSendsNothing(t *testing.T) {
	t.Parallel()
	l := newLink(t)
	client := storetest.NewClient(t, l.straight, till.Test)
	o := newOperator(t, l.now)
	var paused *service
	t.Cleanup(func() { // after everything that it began has ended
		if n := paused.submits.Load(); n != 0 {
			t.Errorf("it sent %d requests after its lease", n)
		}
	})
	paused = newCreator(t, l.through, o, client, true)
	other := newService(t, l.straight, o, client, true)
	l.proxy.CutNext(pgtest.HoldAfter)
	began := time.Now()
	ended := make(chan error, 1)
	go func() { _, err := paused.create(newKey()); ended <- err }()
	other.awaitSuccess(t, l.straight, 1)
	if took := time.Since(began); took < engine.Lease {
		t.Errorf("the step was taken over after %s, before the lease of %s was over", took, engine.Lease)
	}
	l.proxy.Resume()
	if err := <-ended; err != nil {
		t.Errorf("the create that was held: %v", err)
	}
}
