package sqlite

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"till"
	"till/internal/db"
)

func TestThePoolGivesTheConnectionThatWorkedLast(t *testing.T) {
	t.Parallel()
	made := 0
	p := newPool(2, func() (*conn, error) { made++; return &conn{}, nil })
	acquire := func() *conn {
		t.Helper()
		c, err := p.acquire(t.Context())
		must(t, err)
		return c
	}
	a, b := acquire(), acquire()
	a.Release()
	b.Release()
	if acquire() != b || acquire() != a || made != 2 {
		t.Errorf("the connection that was used last is not taken first, or %d were made", made)
	}
}

func TestThePoolHasALimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fails := errors.New("no file")
		p := newPool(1, func() (*conn, error) { return &conn{}, fails })
		if _, err := p.acquire(t.Context()); err != fails {
			t.Errorf("got %v, want the error of the connection", err)
		}
		fails = nil // and its slot is free again
		c, err := p.acquire(t.Context())
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { _, err := p.acquire(ctx); done <- err }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, db.ErrBusy) || !errors.Is(err, context.Canceled) {
			t.Errorf("a second caller got %v, want that all are busy", err)
		}
		c.Release()
		_, err = p.acquire(t.Context())
		must(t, err)
	})
}

// Another process is noticed; what this one writes is not.
func TestDataVersionChangesWithAnotherProcess(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	engine := func() *Engine {
		e, err := Open(path, 1, func() till.Time { return 1 })
		must(t, err)
		t.Cleanup(func() { e.Close() })
		return e
	}
	own, other := engine(), engine()
	write := func(e *Engine, query string) {
		t.Helper()
		c, err := e.Acquire(t.Context(), db.Write)
		must(t, err)
		defer c.Release()
		must(t, c.Begin(t.Context()))
		must(t, c.Script(t.Context(), query))
		must(t, c.Commit(t.Context(), &db.Batch{}))
	}
	version := func() int64 {
		t.Helper()
		n, err := own.DataVersion(t.Context())
		must(t, err)
		return n
	}
	before := version()
	write(own, `CREATE TABLE t (k)`)
	if version() != before {
		t.Error("it changes with a write of its own")
	}
	write(other, `INSERT INTO t VALUES (1)`)
	if version() == before {
		t.Error("it does not change with another's write")
	}
}

func TestDiagnose(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	c := newConn(t, path, true)
	must(t, c.h.script(`CREATE TABLE t (k)`))
	defer c.h.close()
	d, err := Diagnose(path)
	must(t, err)
	if *d != (Diagnosis{Journal: "wal"}) {
		t.Errorf("a sound file: %+v", d)
	}
	if d, err = Diagnose(newPath(t)); err != nil || d.Damage == "" {
		t.Errorf("no file: %+v, %v", d, err)
	}
}
