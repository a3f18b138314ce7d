package db_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"till/internal/db"
	"till/internal/db/pgtest"
	"till/internal/db/postgres"
)

// link is a PostgreSQL database, and a way to it through a proxy that cuts
// connections.
type link struct {
	straight, through *db.DB
	proxy             *pgtest.Proxy
	url               string // through the proxy
}

// newLink makes a database with the things 1 and 2.
func newLink(t *testing.T) *link {
	t.Helper()
	url := newSchema(t)
	l := &link{straight: openPostgres(t, url, schema)}
	var err error
	if l.proxy, l.url, err = pgtest.NewProxy(url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.proxy.Close)
	l.through = openPostgres(t, l.url)
	update(t, l.straight, func(tx *db.Tx) error { return tx.Defer(insertAll, [][]any{thing(1, 1), thing(2, 2)}) })
	return l
}

// An error at COMMIT is unknown, whatever was sent with it and before it.
func TestAnErrorAtCommitIsUnknown(t *testing.T) {
	t.Parallel()
	one := [][]any{{id(1)}}
	shapes := map[string]func(t *testing.T, tx *db.Tx) error{
		"all deferred": func(t *testing.T, tx *db.Tx) error { return tx.Defer(double, one) },
		"nothing deferred": func(t *testing.T, tx *db.Tx) error {
			_, err := tx.Exec(t.Context(), double, id(1))
			return err
		},
		"a write with COMMIT": func(t *testing.T, tx *db.Tx) error {
			_, err := tx.QueryRow(t.Context(), lock, []any{id(1)}, new(int))
			return errors.Join(err, tx.Defer(double, one))
		},
	}
	cuts := map[string]pgtest.Cut{"the commit never arrived": pgtest.BeforeCommit, "the answer is lost": pgtest.AfterCommit}
	for shape, f := range shapes {
		for name, cut := range cuts {
			t.Run(shape+", "+name, func(t *testing.T) {
				t.Parallel()
				l := newLink(t)
				l.proxy.CutNext(cut)
				runs := 0
				known, unknown := 0, 0
				err := l.through.Update(t.Context(), db.Foreground, func(tx *db.Tx) error {
					runs++
					tx.AfterCommit(func() { known++ })
					tx.AfterUnknownCommit(func() { unknown++ })
					return f(t, tx)
				})
				if known != 0 || unknown != 1 {
					t.Errorf("told %d times as committed and %d times as unknown", known, unknown)
				}
				if !errors.Is(err, db.ErrUnknownCommit) || !errors.Is(err, db.ErrUnavailable) || runs != 1 {
					t.Errorf("after %d runs: %v; want an unknown commit", runs, err)
				}
				want := 1
				if cut == pgtest.AfterCommit {
					want = 2
				}
				expectNumbers(t, l.straight, want, 2)
				expectNumbers(t, l.through, want, 2) // the pool has healed
			})
		}
	}
}

// A connection that is cut before COMMIT changes nothing. One that died while
// nobody used it is replaced, for writers and for readers.
func TestConnectionsThatDie(t *testing.T) {
	t.Parallel()
	l := newLink(t)
	runs := 0
	err := l.through.Update(t.Context(), db.Foreground, func(tx *db.Tx) error {
		runs++
		if _, err := tx.Exec(t.Context(), double, id(1)); err != nil {
			return err
		}
		l.proxy.CutAll()
		_, err := tx.Exec(t.Context(), double, id(1))
		return err
	})
	if !errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrUnknownCommit) || errors.Is(err, db.ErrNotStarted) || runs != 1 {
		t.Errorf("after %d runs: %v; want one run and a database that is unavailable", runs, err)
	}
	expectNumbers(t, l.straight, 1, 2)

	everyone := func() {
		t.Helper()
		var all sync.WaitGroup
		for range postgres.Writers {
			all.Go(func() {
				err := l.through.Update(t.Context(), db.Background, func(tx *db.Tx) error { tx.Now(); time.Sleep(time.Millisecond); return nil })
				if err != nil {
					t.Errorf("an update: %v", err)
				}
			})
		}
		all.Wait()
	}
	for range 3 {
		everyone()
		expectNumbers(t, l.through, 1, 2)
		l.proxy.CutAll()
		expectNumbers(t, l.through, 1, 2)
		everyone()
		l.proxy.CutAll()
		// Also where COMMIT is the first thing that is sent.
		update(t, l.through, func(tx *db.Tx) error { return tx.Defer(add, [][]any{{0, id(1)}}) })
	}
	l.proxy.Close()
	for name, err := range map[string]error{
		"an update": l.through.Update(t.Context(), db.Foreground, func(tx *db.Tx) error { return nil }),
		"a view":    l.through.View(t.Context(), func(tx *db.Tx) error { return tx.Flush(t.Context()) }),
	} {
		if !errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrUnknownCommit) {
			t.Errorf("%s without a server: %v", name, err)
		}
	}
}

// Statements that are sent up to a Sync are one transaction on one PostgreSQL
// server. On an engine of many nodes each would commit by itself.
func TestNoWriteIsSentWithoutBegin(t *testing.T) {
	t.Parallel()
	for dialect, citus := range map[string]bool{"postgres": false, "citus": true} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			l := newLink(t)
			through := openURL(t, l.url, citus)
			for range 5 {
				update(t, through, func(tx *db.Tx) error { return tx.Defer(double, [][]any{{id(1)}, {id(2)}}) })
				update(t, through, func(tx *db.Tx) error { _, err := tx.Exec(t.Context(), double, id(1)); return err })
				through.Update(t.Context(), db.Foreground, func(tx *db.Tx) error {
					return errors.Join(tx.Defer(insert, [][]any{thing(1, 1)}), tx.Flush(t.Context())) // it fails
				})
			}
			if all, naked := l.proxy.Writes(); all < 20 || naked > 0 {
				t.Errorf("%d of %d writes came without a BEGIN", naked, all)
			}
		})
	}
}

// A deadlock is run again; a lock that is never released is waited for a bounded
// number of times.
func TestCollisions(t *testing.T) {
	t.Parallel()
	l := newLink(t)
	var both, all sync.WaitGroup
	both.Add(2)
	for _, order := range [][]byte{{1, 2}, {2, 1}} {
		runs := 0
		all.Go(func() {
			err := l.through.Update(t.Context(), db.Foreground, func(tx *db.Tx) error {
				runs++
				for n, k := range order {
					if _, err := tx.QueryRow(t.Context(), lock, []any{id(k)}, new(int)); err != nil {
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

	hasty := openPostgres(t, l.url+"&lock_timeout=20ms")
	update(t, l.straight, func(tx *db.Tx) error {
		if _, err := tx.QueryRow(t.Context(), lock, []any{id(1)}, new(int)); err != nil {
			return err
		}
		runs := 0
		err := hasty.Update(t.Context(), db.Foreground, func(tx *db.Tx) error {
			runs++
			_, err := tx.QueryRow(t.Context(), lock, []any{id(1)}, new(int))
			return err
		})
		if !errors.Is(err, db.ErrUnavailable) || !errors.Is(err, db.ErrRetry) || runs != 8 {
			t.Errorf("after %d runs: %v; want 8 and a database that is unavailable", runs, err)
		}
		return nil
	})
}

// A server that takes no writes is unavailable, and its connections are not kept.
func TestAServerThatTakesNoWrites(t *testing.T) {
	t.Parallel()
	l := newLink(t)
	d := openPostgres(t, l.url+"&default_transaction_read_only=on")
	err := d.Update(t.Context(), db.Foreground, func(tx *db.Tx) error { _, err := tx.Exec(t.Context(), double, id(1)); return err })
	if !errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrUnknownCommit) {
		t.Errorf("got %v", err)
	}
	expectNumbers(t, d, 1, 2)
}

// The connection that was used last is used next: its plans are warm. There are
// no more of them than writers.
func TestThePoolOfPostgres(t *testing.T) {
	t.Parallel()
	l := newLink(t)
	backend := &db.SQL{Name: "test.backend", SQLite: `SELECT pg_backend_pid()`}
	var mu sync.Mutex
	use := func(n int) map[int]bool {
		pids := map[int]bool{}
		var all, together sync.WaitGroup
		together.Add(n)
		for range n {
			all.Go(func() {
				err := l.straight.Update(t.Context(), db.Background, func(tx *db.Tx) error {
					var pid int
					_, err := tx.QueryRow(t.Context(), backend, nil, &pid)
					mu.Lock()
					pids[pid] = true
					mu.Unlock()
					if together.Done(); n <= postgres.Writers {
						together.Wait()
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		return pids
	}
	if n := len(use(postgres.Writers)); n != postgres.Writers {
		t.Errorf("%d connections at once, want %d", n, postgres.Writers)
	}
	if n := len(use(5 * postgres.Writers)); n > postgres.Writers {
		t.Errorf("%d connections, want at most %d", n, postgres.Writers)
	}
	one := map[int]bool{}
	for range 10 {
		for pid := range use(1) {
			one[pid] = true
		}
	}
	if len(one) != 1 {
		t.Errorf("one writer after the other used %d connections", len(one))
	}
}

// A server that never answers costs a bounded time.
func TestAServerThatHangs(t *testing.T) {
	t.Parallel()
	l := newLink(t)
	d := openPostgres(t, l.url+"&connect_timeout=3")
	l.proxy.Hang(true)
	l.proxy.CutAll()
	start := time.Now()
	err := d.View(t.Context(), func(tx *db.Tx) error { return tx.Flush(t.Context()) })
	if took := time.Since(start); !errors.Is(err, db.ErrUnavailable) || took > 30*time.Second {
		t.Errorf("after %s: %v", took, err)
	}
	l.proxy.Hang(false)
	expectNumbers(t, d, 1, 2)
}

func TestDiagnosePostgres(t *testing.T) {
	t.Parallel()
	d, err := postgres.Diagnose(t.Context(), newSchema(t))
	if err != nil || d.Version < 13 || d.ReadOnly || d.MaxConnections == 0 {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := postgres.Diagnose(t.Context(), "postgres://127.0.0.1:1/none"); !errors.Is(err, db.ErrUnavailable) {
		t.Errorf("no server: %v", err)
	}
	if _, err := postgres.Diagnose(t.Context(), "postgres://user:secret@[::1"); err == nil || fmt.Sprint(err) != "the PostgreSQL URL cannot be read" {
		t.Errorf("a broken URL: %v", err)
	}
}
