package sqlite

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"till"
	"till/internal/db"
)

// Named types, as the rows of the store have them.
type (
	testWord  string
	testCount int
	testSmall int8
	testYes   bool
)

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "till.db") }

// newConn returns a connection as the engine makes it.
func newConn(t *testing.T, path string, write bool) *conn {
	t.Helper()
	a := db.Read
	if write {
		a = db.Write
	}
	c, err := (&Engine{path: path, now: func() till.Time { return 1 }}).connect(a)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// liteTable returns a connection to a file with a table t (k unique, v).
func newTable(t *testing.T) *conn {
	t.Helper()
	c := newConn(t, newPath(t), true)
	t.Cleanup(c.h.close)
	must(t, c.h.script(`CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT) STRICT`))
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wants(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got the error %v, want one with %q", err, text)
	}
}

// one runs a query for one row and fails where there is none.
func (h *handle) one(query string, args []any, dest ...any) error {
	found := false
	_, err := h.run(query, args, func(r db.Row) error {
		found = true
		return r.Scan(dest...)
	})
	if err == nil && !found {
		return errors.New("no row")
	}
	return err
}

// count returns how many rows the table has, and checks that no scratch memory is
// in use.
func (h *handle) count(t *testing.T) (n int) {
	t.Helper()
	must(t, h.one(`SELECT count(*) FROM t`, nil, &n))
	if h.used != 0 {
		t.Errorf("%d bytes of scratch memory are still in use", h.used)
	}
	return n
}

// into makes a case of a destination of its own.
func into[T any](arg any, kind string, want T) testTrip {
	return testTrip{arg, kind, func() (any, func() any) { v := new(T); return v, func() any { return *v } }, want}
}

// columns is a destination that reads the column itself.
type columns db.Column

func (c *columns) ScanColumn(from db.Column) {
	from.Bytes = bytes.Clone(from.Bytes)
	*c = columns(from)
}

type testTrip struct {
	arg  any
	kind string // what SQLite takes it for
	dest func() (dest any, got func() any)
	want any
}

func brief(v any) string { return fmt.Sprintf("%.60s", fmt.Sprintf("%#v", v)) }

func TestRoundTrips(t *testing.T) {
	t.Parallel()
	h := newTable(t).h
	long := bytes.Repeat([]byte("0123456789abcdef"), 5000)
	id := till.ID{0: 1, 15: 0xff}
	for _, x := range []testTrip{
		into(nil, "null", any(nil)),
		into[any](7, "integer", int64(7)),
		into[any](1.5, "real", 1.5),
		into[any]("a", "text", "a"),
		into[any]([]byte{1}, "blob", []byte{1}),
		into(42, "integer", 42),
		into(-1, "integer", int64(-1)),
		into(int64(math.MaxInt64), "integer", int64(math.MaxInt64)),
		into(int64(math.MinInt64), "integer", int64(math.MinInt64)),
		into(true, "integer", true),
		into(false, "integer", false),
		into("", "text", ""),
		into("käse", "text", "käse"),
		into("a\x00b\x00", "text", "a\x00b\x00"),
		into(string(long), "text", string(long)),
		into([]byte(nil), "null", []byte(nil)),
		into([]byte{}, "blob", []byte{}),
		into([]byte{0, 1, 0}, "blob", []byte{0, 1, 0}),
		into(long, "blob", long),
		into("a text", "text", []byte("a text")),
		into(testWord("w"), "text", testWord("w")),
		into(testCount(-3), "integer", testCount(-3)),
		into(testSmall(127), "integer", testSmall(127)),
		into(testYes(true), "integer", testYes(true)),
		into(till.Time(1_700_000_000_000_000), "integer", till.Time(1_700_000_000_000_000)),
		into(nil, "null", sql.NullBool{}),
		into(1, "integer", sql.NullBool{Bool: true, Valid: true}),
		into(0, "integer", sql.NullBool{Valid: true}),
		into(id[:], "blob", columns{Bytes: id[:]}),
		into(nil, "null", columns{Null: true}),
		into("w", "text", columns{Bytes: []byte("w")}),
		into(9, "integer", columns{Int: 9}),
		into(true, "integer", columns{Int: 1}),
	} {
		dest, got := x.dest()
		var kind string
		if err := h.one(`SELECT typeof(?1), ?1`, []any{x.arg}, &kind, dest); err != nil {
			t.Errorf("%s into %T: %v", brief(x.arg), dest, err)
		} else if kind != x.kind || !reflect.DeepEqual(got(), x.want) {
			t.Errorf("%s became %s and %s, want %s and %s", brief(x.arg), kind, brief(got()), x.kind, brief(x.want))
		}
	}
	h.count(t)
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	h := newTable(t).h
	for _, x := range []struct {
		query string
		args  []any
		dest  []any
		want  string
	}{
		{`SELECT NULL`, nil, []any{new(int64)}, "column 1: a null where an integer was expected"},
		{`SELECT NULL`, nil, []any{new(int)}, "a null where an integer"},
		{`SELECT NULL`, nil, []any{new(string)}, "a null where a text"},
		{`SELECT NULL`, nil, []any{new(bool)}, "a null where a boolean"},
		{`SELECT NULL`, nil, []any{new(till.Time)}, "a null where a time"},
		{`SELECT NULL`, nil, []any{new(testWord)}, "a null where a text"},
		{`SELECT NULL`, nil, []any{new(testCount)}, "a null where an integer"},
		{`SELECT 1, '12'`, nil, []any{new(int64), new(int64)}, "column 2: a text where an integer was expected"},
		{`SELECT '1'`, nil, []any{new(bool)}, "a text where a boolean"},
		{`SELECT '1'`, nil, []any{new(testYes)}, "a text where a boolean"},
		{`SELECT 1.5`, nil, []any{new(int64)}, "a number with a fraction where an integer"},
		{`SELECT 12`, nil, []any{new(string)}, "an integer where a text"},
		{`SELECT x'00'`, nil, []any{new(string)}, "a blob where a text"},
		{`SELECT 12`, nil, []any{new([]byte)}, "an integer where bytes"},
		{`SELECT 128`, nil, []any{new(testSmall)}, "128 does not fit"},
		{`SELECT 1`, nil, []any{new(struct{})}, "no place for a column"},
		{`SELECT 1`, nil, []any{7}, "no place for a column"},
		{`SELECT 1`, nil, []any{new(int), new(int)}, "2 destinations for 1 columns"},
		{`SELECT 1, 2`, nil, []any{new(int)}, "1 destinations for 2 columns"},
		{`SELECT ?`, nil, []any{new(any)}, "0 arguments for 1 parameters"},
		{`SELECT ?`, []any{1, 2}, []any{new(any)}, "2 arguments for 1 parameters"},
		{`SELECT ?, ?`, []any{1, struct{}{}}, []any{new(any), new(any)}, "argument 2 of"},
		{`SELECT ?`, []any{uint64(1)}, []any{new(any)}, "a uint64 cannot be stored"},
		{`SELECT ?`, []any{(*string)(nil)}, []any{new(any)}, "a *string cannot be stored"},
		{`SELECT missing`, nil, nil, "no such column: missing"},
		{`SELECT 1; DELETE FROM t`, nil, nil, "not one statement"},
		{` -- nothing`, nil, nil, "not one statement"},
	} {
		wants(t, h.one(x.query, x.args, x.dest...), x.want)
		// Whatever was wrong about the call, its text can be used again.
		if x.query == `SELECT ?` {
			var n int
			if err := h.one(x.query, []any{5}, &n); err != nil || n != 5 {
				t.Errorf("after %q: %d, %v", x.want, n, err)
			}
		}
	}
	h.count(t)
}

// Arguments that do not fit into the scratch memory, alone or in sum, have memory
// of their own.
func TestArgumentsBeyondTheScratchMemory(t *testing.T) {
	t.Parallel()
	h := newTable(t).h
	for _, size := range []int{1, 7, 8, 9, scratchSize / 100, scratchSize/100 + 1, scratchSize - 8, scratchSize - 1, scratchSize, scratchSize + 1, 3 * scratchSize} {
		for _, n := range []int{1, 2, 100} {
			args, dest, query := make([]any, n), make([]any, n), "SELECT ?"+strings.Repeat(", ?", n-1)
			for i := range args {
				dest[i] = new(string)
				args[i] = strings.Repeat(string(rune('!'+i%90)), size)
				if i%5 == 4 {
					args[i] = "" // also where the scratch memory is full to the last byte
				}
			}
			must(t, h.one(query, args, dest...))
			for i := range args {
				if args[i] != *dest[i].(*string) {
					t.Errorf("%d of %d bytes: argument %d came back as %d bytes or others", n, size, i, len(*dest[i].(*string)))
				}
			}
		}
	}
	h.count(t)
}

// A statement inside the rows of another takes neither its place nor its
// arguments, also if it is the same text.
func TestNested(t *testing.T) {
	t.Parallel()
	h := newTable(t).h
	const query = `SELECT 1, ?1 UNION ALL SELECT 2, ?1 UNION ALL SELECT 3, ?1`
	var seen []string
	var walk func(depth int, word string) error
	walk = func(depth int, word string) error {
		_, err := h.run(query, []any{word}, func(r db.Row) error {
			if len(seen) > 100 {
				return errors.New("the rows never end")
			}
			if depth < 3 {
				if err := walk(depth+1, word+strings.Repeat("x", 10)); err != nil {
					return err
				}
				if _, err := h.run(`SELECT ?`, []any{strings.Repeat("y", 2*len(word))}, nil); err != nil {
					return err
				}
			}
			var n int
			var got string
			err := r.Scan(&n, &got) // it points to the argument
			seen = append(seen, fmt.Sprint(depth, n))
			if got != word {
				t.Errorf("depth %d has %q, want %q", depth, got, word)
			}
			return err
		})
		return err
	}
	must(t, walk(1, "w"))
	if got := strings.Join(seen, ","); len(seen) != 27+9+3 || !strings.HasPrefix(got, "3 1,3 2,3 3,2 1,3 1") || !strings.HasSuffix(got, "2 3,1 3") {
		t.Errorf("the rows came as %s", got)
	}
	must(t, h.script(`DROP TABLE t; CREATE TABLE t (k INTEGER)`)) // refused while a statement runs
	h.count(t)
}

func TestAScanThatFails(t *testing.T) {
	t.Parallel()
	h := newTable(t).h
	must(t, h.script(`INSERT INTO t VALUES (1, 'a'), (2, 'b')`))
	const query = `SELECT k FROM t WHERE v <> ? ORDER BY k`
	own := errors.New("our own")
	calls := 0
	stop := func(db.Row) error { calls++; return own }
	if _, err := h.run(query, []any{"z"}, stop); err != own || calls != 1 {
		t.Errorf("got %v after %d rows", err, calls)
	}
	func() {
		defer func() {
			if recover() != "ouch" {
				t.Error("the panic was swallowed")
			}
		}()
		h.run(query, []any{"z"}, func(db.Row) error {
			_, err := h.run(query, []any{"z"}, func(db.Row) error { panic("ouch") })
			return err
		})
	}()
	var k int
	must(t, h.one(query, []any{"a"}, &k))
	if n := h.count(t); k != 2 || n != 2 {
		t.Errorf("the next run sees %d of %d rows", k, n)
	}
	must(t, h.script(`DROP TABLE t`)) // refused while a statement runs
}

func TestCountsWhatIsChanged(t *testing.T) {
	t.Parallel()
	h := newTable(t).h
	for _, x := range []struct {
		query string
		want  int64
	}{
		{`SELECT 1`, 0},
		{`INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')`, 3},
		{`SELECT k FROM t`, 0},
		{`PRAGMA data_version`, 0},
		{`INSERT INTO t VALUES (1, 'x') ON CONFLICT DO NOTHING`, 0},
		{`UPDATE t SET v = 'x' WHERE k > 1 RETURNING k`, 2},
		{`UPDATE t SET v = 'x' WHERE k > 9`, 0},
		{`INSERT INTO t SELECT k + 10, v FROM t WHERE k = 2`, 1},
		{`DELETE FROM t WHERE k = 9`, 0},
		{`DELETE FROM t`, 4},
		{`COMMIT`, -1},
		{`SELECT count(*) FROM t`, 0},
	} {
		n, err := h.run(x.query, nil, nil)
		if x.want < 0 {
			wants(t, err, "no transaction is active")
		} else if err != nil || n != x.want {
			t.Errorf("%s: %d, %v, want %d", x.query, n, err, x.want)
		}
	}
}

// A statement outlives a change of the schema, with its arguments.
func TestNewSchema(t *testing.T) {
	t.Parallel()
	h := newTable(t).h
	word := strings.Repeat("w", scratchSize+1)
	for i := range 3 {
		n, err := h.run(`INSERT INTO t (k, v) VALUES (?, ?)`, []any{i, word}, nil)
		if err != nil || n != 1 {
			t.Fatal(n, err)
		}
		must(t, h.script(fmt.Sprintf(`ALTER TABLE t ADD COLUMN c%d TEXT; CREATE INDEX i%d ON t (v, c%d)`, i, i, i)))
		var length int
		if must(t, h.one(`SELECT length(v) FROM t WHERE k = ? AND v = ?`, []any{i, word}, &length)); length != len(word) {
			t.Errorf("row %d has %d bytes", i, length)
		}
	}
}
