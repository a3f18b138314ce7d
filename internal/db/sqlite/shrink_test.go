package sqlite

import (
	"bytes"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"till"
	"till/internal/db"
)

// Caches that many pages were read into, and that are hardly asked for any since, give
// their memory back. While one of them is in use, they keep it. The test is not parallel:
// other tests take from the same pool of pages.
func TestCachesThatEarnNothingAreGivenBack(t *testing.T) {
	const rows = 600 // a page each
	e, err := Open(newPath(t), 1, func() till.Time { return 0 })
	must(t, err)
	t.Cleanup(func() { e.Close() })
	var conns []*conn
	for _, a := range []db.Access{db.Write, db.Read} {
		c, err := e.Acquire(t.Context(), a)
		must(t, err)
		conns = append(conns, c.(*conn))
	}
	writer, reader := conns[0].h, conns[1].h
	must(t, writer.script(`CREATE TABLE t (x); BEGIN`))
	for range rows {
		_, err := writer.run(`INSERT INTO t VALUES ($1)`, []any{bytes.Repeat([]byte{1}, 4000)}, nil)
		must(t, err)
	}
	must(t, writer.script(`COMMIT`))
	read := func(query string) {
		t.Helper()
		_, err := reader.run(query, nil, nil)
		must(t, err)
	}
	held := func() int64 {
		return writer.figure(sqlite3.SQLITE_DBSTATUS_CACHE_USED) + reader.figure(sqlite3.SQLITE_DBSTATUS_CACHE_USED)
	}
	for _, c := range conns {
		c.Release()
	}
	for range 3 {
		read(`SELECT sum(length(x)) FROM t`)
		read(`SELECT sum(length(x)) FROM t`)
		e.Shrink()
		if n := held(); n < 2*rows*pageSize {
			t.Errorf("caches of %d pages that are in use were shrunk to %d bytes", 2*rows, n)
		}
	}
	read(`SELECT 1 FROM t LIMIT 1`)
	e.Shrink()
	if n := held(); n > 20*pageSize {
		t.Errorf("caches that were asked for a page or two hold %d bytes", n)
	}
	read(`SELECT sum(length(x)) FROM t`)
	if n := held(); n < rows*pageSize {
		t.Errorf("after another read of %d pages the caches hold %d bytes", rows, n)
	}
}
