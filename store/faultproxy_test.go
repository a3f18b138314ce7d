package store_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till"
	"till/engine"
	"till/internal/db"
	"till/internal/db/pgtest"
	"till/store"
	"till/store/storetest"
)

// link is a PostgreSQL database with two ways to it: a straight one, and one
// through a proxy that cuts connections.
type link struct {
	straight, through *store.Store
	proxy             *pgtest.Proxy
	url               string       // through the proxy
	ahead             atomic.Int64 // how far the database's clock is ahead, in microseconds
}

// now is a clock that runs, and that a test can move past a lease.
func (l *link) now() till.Time { return till.TimeOf(time.Now()) + till.Time(l.ahead.Load()) }

// newLink makes a database with its ways. The books are checked at the end.
func newLink(t *testing.T) *link {
	t.Helper()
	l := &link{}
	c := storetest.Shared(t).Config(t)
	c.Now = l.now
	l.straight = storetest.Open(t, c)
	var err error
	if l.proxy, l.url, err = pgtest.NewProxy(c.Path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.proxy.Close)
	c.Path = l.url
	l.through = storetest.Open(t, c)
	t.Cleanup(func() { storetest.CheckInvariants(t, l.straight) })
	return l
}

var outcomes = map[string]pgtest.Cut{
	"the commit never arrived":    pgtest.BeforeCommit,
	"the commit's answer is lost": pgtest.AfterCommit,
}

// Statements that are sent up to a Sync are one transaction on one PostgreSQL
// server. On an engine of many nodes each would commit by itself.
func TestEveryWriteComesBetweenBeginAndCommit(t *testing.T) {
	t.Parallel()
	for dialect, plain := range map[string]bool{"postgres": false, "citus": true} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			l := newLink(t)
			through := storetest.Open(t, store.Config{Path: l.url, Now: l.now, PlainSQL: plain})
			client := storetest.NewClient(t, through, till.Test)
			sv := newService(t, through, newOperator(t, nil), client, true)
			for range 20 {
				if _, err := sv.create(newKey()); err != nil {
					t.Fatal(err)
				}
			}
			sv.awaitSuccess(t, through, 20)
			if all, naked := l.proxy.Writes(); all < 100 || naked > 0 {
				t.Errorf("%d of %d writes came without a BEGIN", naked, all)
			}
		})
	}
}

// F30 at the store's level.
func TestAnErrorAtCommitIsUnknown(t *testing.T) {
	t.Parallel()
	for name, cut := range outcomes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLink(t)
			client := storetest.NewClient(t, l.straight, till.Test)
			l.proxy.CutNext(cut)
			err := l.through.Update(t.Context(), func(tx *store.Tx) error { return tx.SetSuspended(t.Context(), client.ID, true) })
			if !errors.Is(err, store.ErrUnknownCommit) || !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%v, want an unknown commit on a database that is away", err)
			}
			c := readClient(t, l.through, client.ID) // the pool has healed
			if c.Suspended != (cut == pgtest.AfterCommit) {
				t.Errorf("the transaction happened: %t", c.Suspended)
			}
		})
	}
}

func readClient(t *testing.T, s *store.Store, id till.ID) (c *till.Client) {
	t.Helper()
	err := s.View(t.Context(), func(tx *store.Tx) (err error) {
		c, err = tx.Client(t.Context(), id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAConnectionThatIsCutBeforeCommitChangesNothing(t *testing.T) {
	t.Parallel()
	l := newLink(t)
	client := storetest.NewClient(t, l.straight, till.Test)
	runs := 0
	suspend := func(cut bool) error {
		return l.through.Update(t.Context(), func(tx *store.Tx) error {
			runs++
			if err := tx.SetSuspended(t.Context(), client.ID, true); err != nil {
				return err
			}
			if cut {
				l.proxy.CutAll()
			}
			return tx.SetSuspended(t.Context(), client.ID, true)
		})
	}
	err := suspend(true)
	if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknownCommit) || runs != 1 {
		t.Errorf("after %d runs: %v; want one run and a database that is away", runs, err)
	}
	if readClient(t, l.straight, client.ID).Suspended {
		t.Error("a transaction that was never committed happened")
	}
	// Sessions that died while nobody used them are replaced without a word.
	for range 8 {
		if err := suspend(false); err != nil {
			t.Fatal(err)
		}
	}
	l.proxy.CutAll()
	for range 8 {
		if err := suspend(false); err != nil {
			t.Errorf("after every connection was cut: %v", err)
		}
		readClient(t, l.through, client.ID)
	}
}

// F32: a server that takes connections and says nothing costs each attempt its
// whole timeout. A batch must not wait for that once per element.
func TestAServerThatHangsIsNotAskedByEveryone(t *testing.T) {
	t.Parallel()
	l := newLink(t)
	client := storetest.NewClient(t, l.straight, till.Test)
	s := storetest.Open(t, store.Config{Path: l.url + "&connect_timeout=1"})
	sv := newService(t, s, newOperator(t, l.now), client, false)
	l.proxy.Hang(true)
	l.proxy.CutAll()
	bounded(t, "refusing the creates", 20*time.Second, func() {
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if _, err := sv.create(newKey()); !isAway(err) {
					t.Errorf("a create: %v, want service_unavailable", err)
				}
			})
		}
		all.Wait()
	})
	l.proxy.Hang(false)
	healed(t, "a create once the server speaks again", func() error { _, err := sv.create(newKey()); return err })
}

// A transaction that may not wait gives up long before the limit of others, and is not run
// again.
func TestSilenceIsLimited(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Shared(t).Config(t))
	runs := 0
	read := func(silence time.Duration, seconds float64) error {
		return s.View(db.WithSilence(t.Context(), silence), func(tx *store.Tx) error {
			runs++
			var one int
			_, err := tx.DB().QueryRow(t.Context(), &db.SQL{Name: "test.sleep", Postgres: `SELECT 1 FROM pg_sleep($1::float8)`}, []any{seconds}, &one)
			return err
		})
	}
	if err := read(time.Minute, 0.3); err != nil {
		t.Fatal(err)
	}
	bounded(t, "a read of a server that is silent", 8*time.Second, func() {
		if err := read(200*time.Millisecond, 9); !errors.Is(err, store.ErrUnavailable) || runs != 2 {
			t.Errorf("after %d runs: %v", runs, err)
		}
	})
	if err := read(0, 0.3); err != nil {
		t.Errorf("a read afterwards: %v", err)
	}
}

// F30: the client is told of its payment or to try again, and there is one
// payment, which is sent once.
func TestACreateWithAnUnknownCommitMakesOnePayment(t *testing.T) {
	t.Parallel()
	for name, cut := range outcomes {
		for times := 1; times <= 2; times++ {
			t.Run(name+[]string{"", " once", " twice"}[times], func(t *testing.T) {
				t.Parallel()
				l := newLink(t)
				client := storetest.NewClient(t, l.straight, till.Test)
				// Another instance takes over whatever this one leaves behind.
				o := newOperator(t, l.now)
				sv := newService(t, l.through, o, client, true)
				other := newService(t, l.straight, o, client, true)
				key := newKey()
				l.proxy.CutNext([]pgtest.Cut{cut, cut}[:times]...)
				made, err := sv.create(key)
				switch {
				case times == 1 && err != nil:
					t.Fatalf("%v, want the payment: the second try went well", err)
				case times == 2 && err != nil && !isAway(err):
					// It may also go well: if the second COMMIT came behind a refused insert,
					// and the server said so before it was cut, there is a third.
					t.Fatalf("%v, want the payment or to be told to try again", err)
				}
				again, failed := other.create(key)
				if failed != nil || err == nil && again.Payment.ID != made.Payment.ID {
					t.Fatalf("the same key again: %+v, %v", again, failed)
				}
				l.ahead.Add(int64(25 * time.Second / time.Microsecond)) // past the lease
				other.awaitSuccess(t, l.straight, 1)
			})
		}
	}
}

// F30: a success is credited once.
func TestAnAnswerWithAnUnknownCommitIsRecordedOnce(t *testing.T) {
	t.Parallel()
	for name, cut := range outcomes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLink(t)
			client := storetest.NewClient(t, l.straight, till.Test)
			c := storetest.NewCollector(t, l.through)
			p := storetest.NewPayment(t, c, client, storetest.Body{})
			l.proxy.CutNext(cut)
			if got := storetest.Apply(t, c, l.through, p, storetest.Succeeded); got.Status != till.Success {
				t.Errorf("%s, want success", got.Status)
			}
			err := l.straight.View(t.Context(), func(tx *store.Tx) error {
				w, err := tx.Wallet(t.Context(), client.ID, "XAF")
				if err == nil && (w.Balance != 5000 || w.LastSequence != 1) {
					t.Errorf("the wallet is %+v, want one credit", w)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// F30: a claim that may have happened is looked up. If it happened, what it claimed is sent
// under its lease, without a second claim. If not, it is claimed again.
func TestAClaimWithAnUnknownCommitSendsOnce(t *testing.T) {
	t.Parallel()
	for name, cut := range outcomes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLink(t)
			client := storetest.NewClient(t, l.straight, till.Test)
			o := newOperator(t, l.now)
			api := newService(t, l.straight, o, client, false)
			for range 3 {
				if _, err := api.create(newKey()); err != nil {
					t.Fatal(err)
				}
			}
			// A worker's first COMMIT is the claim.
			l.proxy.CutNext(cut)
			worker := newService(t, l.through, o, client, true)
			bounded(t, "sending under the lease", engine.Lease, func() { worker.awaitSuccess(t, l.straight, 3) })
			if n := worker.taken.Load(); n != 3 {
				t.Errorf("the operator answered %d sends, want one for each of 3 payments", n)
			}
		})
	}
}

// F27: a step that is committed after later ones is not passed over.
func TestAStepThatIsCommittedLateIsFound(t *testing.T) {
	t.Parallel()
	l := newLink(t)
	o := newOperator(t, l.now)
	slow := newService(t, l.through, o, storetest.NewClient(t, l.straight, till.Test), false)
	quick := newService(t, l.straight, o, storetest.NewClient(t, l.straight, till.Test), true)
	before := l.proxy.Commits()
	l.proxy.CutNext(pgtest.HoldBefore)
	ended := make(chan error, 1)
	go func() { _, err := slow.create(newKey()); ended <- err }()
	for l.proxy.Commits() == before {
		time.Sleep(time.Millisecond)
	}
	if _, err := quick.create(newKey()); err != nil {
		t.Fatal(err)
	}
	quick.awaitSuccess(t, l.straight, 1)
	l.proxy.Resume()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	slow.awaitSuccess(t, l.straight, 1)
}
