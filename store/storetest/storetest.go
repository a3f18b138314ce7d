package storetest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"till"
	"till/books"
	"till/store"
	"till/store/auditlog"
	"till/upkeep"
)

// Engines returns the databases that every test runs on: SQLite, and
// the PostgreSQL server that TILL_TEST_POSTGRES_URL names, in a database of its
// own per test. If TILL_TEST_ENGINE is postgres-plain, PostgreSQL is the only one, without
// what only saves work: nothing may depend on it. If TILL_TEST_CITUS_URL names a cluster, it is the only one: there
// a test takes many times as long.
func Engines() []Engine {
	if citusServer() != "" {
		return []Engine{{
			Name:   "citus",
			Config: func(tb testing.TB) store.Config { return store.Config{Path: newCitus(tb), PartRows: partRows} },
			// PlainSQL: it is not distributed yet when it is opened.
			Empty: func(tb testing.TB) store.Config {
				return store.Config{Path: newEmptyCitus(tb), PartRows: partRows, PlainSQL: true}
			},
		}}
	}
	if os.Getenv("TILL_TEST_ENGINE") == "postgres-plain" {
		return []Engine{{
			Name: "postgres-plain",
			Config: func(tb testing.TB) store.Config {
				return store.Config{Path: newDatabase(tb), PartRows: partRows, PlainSQL: true, NoNotify: true}
			},
			Empty: func(tb testing.TB) store.Config {
				return store.Config{Path: newSchema(tb), PartRows: partRows, PlainSQL: true, NoNotify: true}
			},
		}}
	}
	all := []Engine{{
		Name:   "sqlite",
		Config: func(tb testing.TB) store.Config { return store.Config{Path: newFile(tb), PartRows: partRows} },
		Empty: func(tb testing.TB) store.Config {
			return store.Config{Path: filepath.Join(tb.TempDir(), "till.db"), PartRows: partRows}
		},
	}}
	if testServer() != "" {
		all = append(all, Engine{
			Name:   "postgres",
			Config: func(tb testing.TB) store.Config { return store.Config{Path: newDatabase(tb), PartRows: partRows} },
			Empty:  func(tb testing.TB) store.Config { return store.Config{Path: newSchema(tb), PartRows: partRows} },
		})
	}
	return all
}

// partRows makes an hour busy that has a handful of rows, so that tests cross the
// edges of its parts.
const partRows = 3

// Engine is one kind of database.
type Engine struct {
	Name   string
	Config func(tb testing.TB) store.Config // of a new database with this program's schema
	Empty  func(tb testing.TB) store.Config // of a database without a schema; on Citus not distributed yet
}

// Shared returns the engine that several programs can share, PostgreSQL or Citus, and
// skips the test if there is none.
func Shared(tb testing.TB) Engine {
	tb.Helper()
	all := Engines()
	e := all[len(all)-1]
	if e.Name == "sqlite" {
		tb.Skip("TILL_TEST_POSTGRES_URL names no server; make test starts one")
	}
	return e
}

// Program returns where a program of another project is, and skips the test if it is not on
// this machine. With TILL_EVERYTHING, as make check sets it, that is a failure.
func Program(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
	case os.Getenv("TILL_EVERYTHING") != "":
		tb.Fatal(err)
	default:
		tb.Skipf("there is no %s on this machine; make check installs it", name)
	}
	return path
}

// Run runs f, in parallel, on an empty migrated store of each engine, and
// checks the invariants when f has ended.
func Run(t *testing.T, f func(t *testing.T, s *store.Store)) {
	t.Helper()
	RunAt(t, nil, func(t *testing.T, s *store.Store, _ *Clock) { f(t, s) })
}

// RunAt is Run with a clock of the test's own, which starts at the given
// moment; with none, the machine's clock is used and f is given nil.
func RunAt(t *testing.T, start *till.Time, f func(t *testing.T, s *store.Store, c *Clock)) {
	t.Helper()
	for _, e := range Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			c := e.Config(t)
			var clock *Clock
			if start != nil {
				clock = NewClock(*start)
				c.Now = clock.Now
			}
			s := Open(t, c)
			t.Cleanup(func() { CheckInvariants(t, s) })
			f(t, s, clock)
		})
	}
}

// Open opens and migrates a store that is closed when the test has ended.
func Open(tb testing.TB, c store.Config) *store.Store {
	tb.Helper()
	if !store.IsPostgres(c.Path) {
		makeFile(tb, c.Path)
	}
	s, err := store.Open(tb.Context(), c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	if s.CheckSchema(tb.Context()) == nil { // as in every copy
		return s
	}
	if _, err := s.Migrate(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return s
}

// View reads from a store; an error ends the test.
func View(tb testing.TB, s *store.Store, f func(ctx context.Context, tx *store.Tx) error) {
	tb.Helper()
	ctx := context.Background()
	if err := s.View(ctx, func(tx *store.Tx) error { return f(ctx, tx) }); err != nil {
		tb.Fatal(err)
	}
}

// HoldWriters lets nobody else write for a while, as a long transaction would.
// It returns as soon as nobody can.
func HoldWriters(s *store.Store, d time.Duration) {
	held := make(chan struct{})
	for range s.Writers() {
		go s.Update(context.Background(), func(*store.Tx) error {
			held <- struct{}{}
			time.Sleep(d)
			return nil
		})
	}
	for range s.Writers() {
		<-held
	}
}

// RollUp puts all tallies into the counters.
func RollUp(tb testing.TB, s *store.Store) {
	tb.Helper()
	if err := upkeep.SplitHours(context.WithoutCancel(tb.Context()), s); err != nil {
		tb.Errorf("split hours: %v", err)
	}
	if _, err := upkeep.RollUp(context.WithoutCancel(tb.Context()), s, s.Now().Add(2*time.Hour)); err != nil {
		tb.Errorf("fold: %v", err)
	}
}

// ChainKey is what tests seal audit logs with.
var ChainKey = auditlog.ChainKey("a key of 32 bytes for the tests.")

// CheckInvariants seals the audit logs, folds the tallies and fails the test with whatever
// books.Verify finds.
func CheckInvariants(tb testing.TB, s *store.Store) {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context()) // it runs in cleanups too
	if _, err := books.ExtendChains(ctx, s, ChainKey); err != nil {
		tb.Errorf("seal: %v", err)
	}
	RollUp(tb, s)
	// A small slice, so that tests cross the edges of slices.
	r, err := books.Verify(ctx, s, books.Options{Slice: 7, Key: ChainKey})
	if err != nil {
		tb.Errorf("verify: %v", err)
	}
	for _, p := range r.Problems {
		tb.Errorf("%s broken: client %s, subject %s: %s", p.Invariant, p.Client, p.Subject, p.Detail)
	}
}

// NewClient makes a client of a mode with wallets in every currency that a
// method is served in.
func NewClient(tb testing.TB, s *store.Store, mode till.Mode) *till.Client {
	tb.Helper()
	c := &till.Client{Name: tb.Name(), Mode: mode}
	err := s.Update(tb.Context(), func(tx *store.Tx) error {
		c.CreatedAt = tx.Now()
		c.ID = till.NewID(c.CreatedAt)
		if err := tx.InsertClient(tb.Context(), c); err != nil {
			return err
		}
		for _, m := range till.Methods() {
			if err := tx.SetClientMethod(tb.Context(), c.ID, m.Code, true); err != nil {
				return err
			}
			for _, k := range m.Markets {
				if err := tx.EnsureWallet(tb.Context(), c.ID, k.Currency, c.CreatedAt); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// Clock is a clock that stands still until the test moves it, forwards or
// back. Its Now is made for store.Config.
type Clock struct {
	mu sync.Mutex
	t  till.Time
}

// NewClock returns a clock set to t.
func NewClock(t till.Time) *Clock { return &Clock{t: t} }

// Now returns the clock's moment.
func (c *Clock) Now() till.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

// Set sets the clock to t.
func (c *Clock) Set(t till.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = t
}

// Advance moves the clock by d, back if d is negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}
