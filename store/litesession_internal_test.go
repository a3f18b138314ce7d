package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"till"
	"till/internal/db"
)

func TestLiteClasses(t *testing.T) {
	t.Parallel()
	e := &sqlite{now: func() till.Time { return 1 }}
	ses := liteTable(t)

	_, err := ses.c.run(`INSERT INTO t VALUES (1, 'a'), (1, 'b')`, nil, nil)
	if !errors.Is(e.classify(err), ErrRefused) {
		t.Errorf("a second row under a key: %v", err)
	}
	wants(t, err, "UNIQUE constraint failed: t.k")
	if n := ses.c.count(t); n != 0 {
		t.Errorf("half of a statement is there: %d rows", n)
	}

	// Whatever the connection said before, an error speaks of itself.
	if err := ses.c.failure(7); err.Error() != "out of memory (7)" {
		t.Errorf("got %v", err)
	}

	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "none", "till.db"): "unable to open database file",
		t.TempDir(): "unable to open database file",
	} {
		e.path = path
		_, err := e.connect(t.Context(), true)
		if !errors.Is(e.classify(err), ErrUnavailable) {
			t.Errorf("%s: %v", path, err)
		}
		wants(t, err, "open "+path+": "+want)
	}

	e.path = litePath(t)
	must(t, os.WriteFile(e.path, bytes.Repeat([]byte("no database "), 1000), 0o600))
	_, err = e.connect(t.Context(), true)
	wants(t, err, "open "+e.path+": file is not a database")

	e.path = litePath(t) + "\x00.old"
	_, err = e.connect(t.Context(), true)
	wants(t, err, "zero byte")
}

func TestLiteLocked(t *testing.T) {
	t.Parallel()
	e := &sqlite{}
	path := litePath(t)
	a, b := liteFile(t, path, true), liteFile(t, path, true)
	defer a.close()
	defer b.close()
	must(t, a.c.script(`CREATE TABLE t (k INTEGER)`))
	must(t, b.c.script(`PRAGMA busy_timeout = 1`))
	must(t, a.begin(t.Context(), true))
	err := b.begin(t.Context(), true)
	if !errors.Is(e.classify(err), errAgain) {
		t.Errorf("a locked file: %v", err)
	}
	b.rollback(t.Context())
	must(t, a.commit(t.Context()))
	must(t, b.begin(t.Context(), true))
	must(t, b.commit(t.Context()))
}

// An error at COMMIT leaves the transaction open; the rollback ends it.
func TestLiteCommitThatFails(t *testing.T) {
	t.Parallel()
	ses := liteTable(t)
	ctx := t.Context()
	must(t, ses.c.script(`CREATE TABLE child (k INTEGER REFERENCES t (k) DEFERRABLE INITIALLY DEFERRED)`))
	must(t, ses.begin(ctx, true))
	_, err := ses.exec(ctx, &db.SQL{SQLite: `INSERT INTO child VALUES (?)`}, []any{5})
	must(t, err)
	if err := ses.commit(ctx); !errors.Is((&sqlite{}).classify(err), ErrRefused) {
		t.Errorf("the commit said %v", err)
	}
	ses.rollback(ctx)
	must(t, ses.begin(ctx, true))
	n := -1
	must(t, ses.c.one(`SELECT count(*) FROM child`, nil, &n))
	must(t, ses.commit(ctx))
	if n != 0 {
		t.Errorf("%d rows of a transaction that failed", n)
	}
}

// Where SQLite ends a transaction by itself, what follows is not run outside
// of it, even if nobody heeded the error.
func TestLiteTransactionThatIsLost(t *testing.T) {
	t.Parallel()
	ses := liteTable(t)
	ctx := t.Context()
	insert := func(query string, k int) error {
		_, err := ses.exec(ctx, &db.SQL{SQLite: query}, []any{k})
		return err
	}
	must(t, ses.begin(ctx, true))
	must(t, insert(`INSERT INTO t VALUES (?, NULL)`, 1))
	if err := insert(`INSERT INTO t VALUES (?, NULL)`, 1); err == nil {
		t.Error("a second row under a key")
	}
	must(t, insert(`INSERT INTO t VALUES (?, NULL)`, 2)) // a refused row ends nothing
	if err := insert(`INSERT OR ROLLBACK INTO t VALUES (?, NULL)`, 1); err == nil {
		t.Error("a second row under a key")
	}
	wants(t, insert(`INSERT INTO t VALUES (?, NULL)`, 3), "rolled back: constraint failed: UNIQUE")
	wants(t, ses.script(ctx, `INSERT INTO t VALUES (4, NULL)`), "rolled back")
	if err := ses.commit(ctx); !errors.Is(err, errBeforeCommit) {
		t.Errorf("the commit said %v", err)
	}
	ses.rollback(ctx)
	if n := ses.c.count(t); n != 0 {
		t.Errorf("%d rows of a transaction that was lost", n)
	}
	must(t, ses.begin(ctx, true))
	must(t, insert(`INSERT INTO t VALUES (?, NULL)`, 3))
	must(t, ses.commit(ctx))
}

// The last to close, even if it only reads, brings the log home.
func TestLiteClose(t *testing.T) {
	t.Parallel()
	path := litePath(t)
	w, r := liteFile(t, path, true), liteFile(t, path, false)
	must(t, w.c.script(`CREATE TABLE t (k INTEGER)`))
	_, err := w.c.run(`INSERT INTO t VALUES (?)`, []any{1}, nil)
	must(t, err)
	if n := r.c.count(t); n != 1 {
		t.Errorf("the reader sees %d rows", n)
	}
	const query = `SELECT k FROM t` // one inside the other: both must be gone
	rows := 0
	_, err = r.c.run(query, nil, func(row) error {
		if rows++; rows > 1 {
			return errors.New("more rows than there are")
		}
		_, err := r.c.run(query, nil, nil)
		return err
	})
	must(t, err)
	if _, err := r.c.run(`INSERT INTO t VALUES (?)`, []any{2}, nil); err == nil {
		t.Error("the reader can write")
	}
	w.close()
	if _, err := os.Stat(path + "-wal"); err != nil {
		t.Errorf("the reader's log is gone: %v", err)
	}
	r.close()
	if files, err := filepath.Glob(path + "-*"); err != nil || files != nil {
		t.Errorf("what is left: %v, %v", files, err)
	}
	w = liteFile(t, path, true)
	defer w.close()
	if n := w.c.count(t); n != 1 {
		t.Errorf("%d rows came home", n)
	}
}

// What is committed while a read asks for the time is not seen by it.
func TestLiteReadsBeforeItAsksForTheTime(t *testing.T) {
	t.Parallel()
	path := litePath(t)
	w, r := liteFile(t, path, true), liteFile(t, path, false)
	defer w.close()
	defer r.close()
	_, err := w.c.run(`CREATE TABLE t (k)`, nil, nil)
	must(t, err)
	r.clock = func() till.Time {
		_, err := w.c.run(`INSERT INTO t VALUES (1)`, nil, nil)
		must(t, err)
		return 1
	}
	must(t, r.begin(t.Context(), false))
	defer r.rollback(t.Context())
	if n := r.c.count(t); n != 0 {
		t.Errorf("%d rows from after its time", n)
	}
}
