package sqlite

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"till"
	"till/internal/db"
)

func TestClasses(t *testing.T) {
	t.Parallel()
	e := &Engine{now: func() till.Time { return 1 }}
	h := newTable(t).h

	_, err := h.run(`INSERT INTO t VALUES (1, 'a'), (1, 'b')`, nil, nil)
	if !errors.Is(e.Classify(err), db.ErrConstraint) {
		t.Errorf("a second row under a key: %v", err)
	}
	wants(t, err, "UNIQUE constraint failed: t.k")
	if n := h.count(t); n != 0 {
		t.Errorf("half of a statement is there: %d rows", n)
	}

	// Whatever the connection said before, an error speaks of itself.
	if err := h.failure(7); err.Error() != "out of memory (7)" {
		t.Errorf("got %v", err)
	}

	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "none", "till.db"): "unable to open database file",
		t.TempDir(): "unable to open database file",
	} {
		e.path = path
		_, err := e.connect(db.Write)
		if !errors.Is(e.Classify(err), db.ErrUnavailable) {
			t.Errorf("%s: %v", path, err)
		}
		wants(t, err, "open "+path+": "+want)
	}

	e.path = newPath(t)
	must(t, os.WriteFile(e.path, bytes.Repeat([]byte("no database "), 1000), 0o600))
	_, err = e.connect(db.Write)
	wants(t, err, "open "+e.path+": file is not a database")

	e.path = newPath(t) + "\x00.old"
	_, err = e.connect(db.Write)
	wants(t, err, "zero byte")
}

func TestLocked(t *testing.T) {
	t.Parallel()
	e := &Engine{}
	path := newPath(t)
	a, b := newConn(t, path, true), newConn(t, path, true)
	defer a.h.close()
	defer b.h.close()
	must(t, a.h.script(`CREATE TABLE t (k INTEGER)`))
	must(t, b.h.script(`PRAGMA busy_timeout = 1`))
	must(t, a.Begin(t.Context()))
	err := b.Begin(t.Context())
	if !errors.Is(e.Classify(err), db.ErrRetry) {
		t.Errorf("a locked file: %v", err)
	}
	b.Rollback(t.Context())
	must(t, a.Commit(t.Context(), &db.Batch{}))
	must(t, b.Begin(t.Context()))
	must(t, b.Commit(t.Context(), &db.Batch{}))
}

// An error at COMMIT that leaves the transaction open is known: the rollback ends it.
func TestCommitThatFails(t *testing.T) {
	t.Parallel()
	c := newTable(t)
	h := c.h
	ctx := t.Context()
	must(t, h.script(`CREATE TABLE child (k INTEGER REFERENCES t (k) DEFERRABLE INITIALLY DEFERRED)`))
	must(t, c.Begin(ctx))
	_, err := h.run(`INSERT INTO child VALUES (?)`, []any{5}, nil)
	must(t, err)
	if err := (&Engine{}).Classify(c.Commit(ctx, &db.Batch{})); !errors.Is(err, db.ErrConstraint) || errors.Is(err, db.ErrUnknownCommit) {
		t.Errorf("the commit said %v", err)
	}
	c.Rollback(ctx)
	must(t, c.Begin(ctx))
	n := -1
	must(t, h.one(`SELECT count(*) FROM child`, nil, &n))
	must(t, c.Commit(ctx, &db.Batch{}))
	if n != 0 {
		t.Errorf("%d rows of a transaction that failed", n)
	}
}

// Where SQLite ends a transaction by itself, what follows is not run outside
// of it, even if nobody heeded the error.
func TestTransactionThatIsLost(t *testing.T) {
	t.Parallel()
	c := newTable(t)
	h := c.h
	ctx := t.Context()
	insert := func(query string, k int) error {
		_, err := h.run(query, []any{k}, nil)
		return err
	}
	must(t, c.Begin(ctx))
	must(t, insert(`INSERT INTO t VALUES (?, NULL)`, 1))
	if err := insert(`INSERT INTO t VALUES (?, NULL)`, 1); err == nil {
		t.Error("a second row under a key")
	}
	must(t, insert(`INSERT INTO t VALUES (?, NULL)`, 2)) // a refused row ends nothing
	if err := insert(`INSERT OR ROLLBACK INTO t VALUES (?, NULL)`, 1); err == nil {
		t.Error("a second row under a key")
	}
	wants(t, insert(`INSERT INTO t VALUES (?, NULL)`, 3), "rolled back: constraint failed: UNIQUE")
	wants(t, c.Script(ctx, `INSERT INTO t VALUES (4, NULL)`), "rolled back")
	if err := c.Commit(ctx, &db.Batch{}); err == nil || errors.Is(err, db.ErrUnknownCommit) {
		t.Errorf("the commit said %v", err)
	}
	c.Rollback(ctx)
	if n := h.count(t); n != 0 {
		t.Errorf("%d rows of a transaction that was lost", n)
	}
	must(t, c.Begin(ctx))
	must(t, insert(`INSERT INTO t VALUES (?, NULL)`, 3))
	must(t, c.Commit(ctx, &db.Batch{}))
}

// The last to close, even if it only reads, brings the log home.
func TestClose(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	w, r := newConn(t, path, true), newConn(t, path, false)
	must(t, w.h.script(`CREATE TABLE t (k INTEGER)`))
	_, err := w.h.run(`INSERT INTO t VALUES (?)`, []any{1}, nil)
	must(t, err)
	if n := r.h.count(t); n != 1 {
		t.Errorf("the reader sees %d rows", n)
	}
	const query = `SELECT k FROM t` // one inside the other: both must be gone
	rows := 0
	_, err = r.h.run(query, nil, func(db.Row) error {
		if rows++; rows > 1 {
			return errors.New("more rows than there are")
		}
		_, err := r.h.run(query, nil, nil)
		return err
	})
	must(t, err)
	if _, err := r.h.run(`INSERT INTO t VALUES (?)`, []any{2}, nil); err == nil {
		t.Error("the reader can write")
	}
	w.h.close()
	if _, err := os.Stat(path + "-wal"); err != nil {
		t.Errorf("the reader's log is gone: %v", err)
	}
	r.h.close()
	if files, err := filepath.Glob(path + "-*"); err != nil || files != nil {
		t.Errorf("what is left: %v, %v", files, err)
	}
	w = newConn(t, path, true)
	defer w.h.close()
	if n := w.h.count(t); n != 1 {
		t.Errorf("%d rows came home", n)
	}
}

// A read does not see what is committed while it reads the clock.
func TestASnapshotIsTakenBeforeTheClockIsRead(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	w, r := newConn(t, path, true), newConn(t, path, false)
	defer w.h.close()
	defer r.h.close()
	_, err := w.h.run(`CREATE TABLE t (k)`, nil, nil)
	must(t, err)
	r.now = func() till.Time {
		_, err := w.h.run(`INSERT INTO t VALUES (1)`, nil, nil)
		must(t, err)
		return 1
	}
	must(t, r.Begin(t.Context()))
	defer r.Rollback(t.Context())
	var now till.Time
	var b db.Batch
	b.Clock(&now)
	must(t, r.Send(t.Context(), &b))
	if n := r.h.count(t); n != 0 || now != 1 {
		t.Errorf("%d rows from after its time", n)
	}
}
