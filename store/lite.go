package store

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strconv"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"till"
)

// lite is a connection to a SQLite file over the C interface of the library.
// Of the time of a statement, database/sql and its driver took as much as
// SQLite itself: they ask for the names of all parameters and columns each
// time, copy every argument twice and take a lock at each of these calls. Here
// a statement is prepared once, and its arguments lie in one piece of memory. A
// connection is used by one goroutine at a time and has no locks of its own.
type lite struct {
	tls   *libc.TLS
	db    uintptr
	stmts map[string]*liteStmt

	room uintptr // C memory where the bytes of arguments lie while their statement runs
	used int     // of it
}

// liteRoom is how many bytes of arguments find their place without asking for
// memory; whatever does not fit has memory of its own.
const liteRoom = 64 << 10

// liteStmt is a prepared statement, and the row that it stands at.
type liteStmt struct {
	c       *lite
	p       uintptr
	params  int
	columns int
	busy    bool // it runs: the same text inside its rows needs another one
}

// liteError is an answer of SQLite that is not well.
type liteError struct {
	code int32 // the extended one
	text string
}

// Error returns SQLite's words.
func (e *liteError) Error() string { return e.text + " (" + strconv.Itoa(int(e.code)) + ")" }

// openLite opens a file; one that is not there is made.
func openLite(path string) (*lite, error) {
	c := &lite{tls: libc.NewTLS(), stmts: make(map[string]*liteStmt)}
	if c.room = sqlite3.Xsqlite3_malloc(c.tls, liteRoom); c.room == 0 {
		c.tls.Close()
		return nil, &liteError{sqlite3.SQLITE_NOMEM, "no memory for a connection"}
	}
	at := c.open()
	defer c.leave(&at)
	name, err := c.text(&at, path)
	if err != nil {
		c.close()
		return nil, err
	}
	handle, err := c.place(&at, 8)
	if err != nil {
		c.close()
		return nil, err
	}
	rc := sqlite3.Xsqlite3_open_v2(c.tls, name, handle, sqlite3.SQLITE_OPEN_READWRITE|sqlite3.SQLITE_OPEN_CREATE|sqlite3.SQLITE_OPEN_NOMUTEX, 0)
	c.db = pointerAt(handle)
	if rc != sqlite3.SQLITE_OK {
		err := c.failure(rc)
		c.close()
		return nil, err
	}
	sqlite3.Xsqlite3_extended_result_codes(c.tls, c.db, 1)
	return c, nil
}

// close closes the connection. The last one to close brings the write-ahead
// log home.
func (c *lite) close() {
	for _, st := range c.stmts {
		sqlite3.Xsqlite3_finalize(c.tls, st.p)
	}
	if c.db != 0 {
		sqlite3.Xsqlite3_close_v2(c.tls, c.db)
	}
	sqlite3.Xsqlite3_free(c.tls, c.room)
	c.tls.Close()
}

func (c *lite) failure(rc int32) error {
	text := libc.GoString(sqlite3.Xsqlite3_errstr(c.tls, rc))
	if c.db != 0 {
		if more := libc.GoString(sqlite3.Xsqlite3_errmsg(c.tls, c.db)); more != text {
			text += ": " + more
		}
	}
	return &liteError{rc, text}
}

// liteFrame is where the room stood before a statement, and what did not fit.
type liteFrame struct {
	used int
	more []uintptr
}

func (c *lite) open() liteFrame { return liteFrame{used: c.used} }

// place returns n bytes of memory that last until the frame is left.
func (c *lite) place(f *liteFrame, n int) (uintptr, error) {
	if c.used+n <= liteRoom {
		p := c.room + uintptr(c.used)
		c.used += (n + 7) &^ 7
		return p, nil
	}
	p := sqlite3.Xsqlite3_malloc64(c.tls, uint64(n))
	if p == 0 {
		return 0, c.failure(sqlite3.SQLITE_NOMEM)
	}
	f.more = append(f.more, p)
	return p, nil
}

func (c *lite) leave(f *liteFrame) {
	c.used = f.used
	for _, p := range f.more {
		sqlite3.Xsqlite3_free(c.tls, p)
	}
}

// text places a string with the zero behind it that C wants to see.
func (c *lite) text(f *liteFrame, s string) (uintptr, error) {
	p, err := c.place(f, len(s)+1)
	if err == nil {
		b := libc.GoBytes(p, len(s)+1)
		copy(b, s)
		b[len(s)] = 0
	}
	return p, err
}

// pointerAt reads a pointer that the library has written.
func pointerAt(p uintptr) uintptr {
	if strconv.IntSize == 32 {
		return uintptr(binary.NativeEndian.Uint32(libc.GoBytes(p, 4)))
	}
	return uintptr(binary.NativeEndian.Uint64(libc.GoBytes(p, 8)))
}

// script runs statements that take nothing and answer nothing.
func (c *lite) script(text string) error {
	at := c.open()
	defer c.leave(&at)
	p, err := c.text(&at, text)
	if err != nil {
		return err
	}
	if rc := sqlite3.Xsqlite3_exec(c.tls, c.db, p, 0, 0, 0); rc != sqlite3.SQLITE_OK {
		return c.failure(rc)
	}
	return nil
}

// prepare makes a statement of a text that has no more than one.
func (c *lite) prepare(query string) (*liteStmt, error) {
	at := c.open()
	defer c.leave(&at)
	text, err := c.text(&at, query)
	if err != nil {
		return nil, err
	}
	handle, err := c.place(&at, 8)
	if err != nil {
		return nil, err
	}
	rc := sqlite3.Xsqlite3_prepare_v3(c.tls, c.db, text, int32(len(query)+1), sqlite3.SQLITE_PREPARE_PERSISTENT, handle, 0)
	if rc != sqlite3.SQLITE_OK {
		return nil, fmt.Errorf("prepare %.60q: %w", query, c.failure(rc))
	}
	p := pointerAt(handle)
	return &liteStmt{
		c: c, p: p,
		params:  int(sqlite3.Xsqlite3_bind_parameter_count(c.tls, p)),
		columns: int(sqlite3.Xsqlite3_column_count(c.tls, p)),
	}, nil
}

// run runs a statement to its end, calls each for its rows, and returns how
// many rows it has changed. Texts are constants of the program, so the map of
// prepared ones is bounded by its length.
func (c *lite) run(query string, args []any, each func(r row) error) (int64, error) {
	st := c.stmts[query]
	if st == nil || st.busy {
		var err error
		nested := st != nil
		if st, err = c.prepare(query); err != nil {
			return 0, err
		}
		if nested {
			defer sqlite3.Xsqlite3_finalize(c.tls, st.p)
		} else {
			c.stmts[query] = st
		}
	}
	st.busy = true
	at := c.open()
	defer func() { // also after a panic in each
		sqlite3.Xsqlite3_reset(c.tls, st.p) // its answer repeats that of the last step
		st.busy = false
		c.leave(&at)
	}()
	if len(args) != st.params {
		return 0, fmt.Errorf("%d arguments for %d parameters: %.60s", len(args), st.params, query)
	}
	for i, arg := range args {
		if err := c.bind(&at, st.p, int32(i+1), arg); err != nil {
			return 0, fmt.Errorf("argument %d of %.60q: %w", i+1, query, err)
		}
	}
	for {
		switch rc := sqlite3.Xsqlite3_step(c.tls, st.p); rc {
		case sqlite3.SQLITE_DONE:
			return sqlite3.Xsqlite3_changes64(c.tls, c.db), nil
		case sqlite3.SQLITE_ROW:
			if each != nil {
				if err := each(st); err != nil {
					return 0, err
				}
			}
		default:
			return 0, c.failure(rc)
		}
	}
}

// bind gives a parameter its value. Bytes are copied into the room, where they
// stay until the statement has run; the next run binds all anew.
func (c *lite) bind(f *liteFrame, st uintptr, i int32, arg any) error {
	var rc int32
	switch x := arg.(type) {
	case nil:
		rc = sqlite3.Xsqlite3_bind_null(c.tls, st, i)
	case int64:
		rc = sqlite3.Xsqlite3_bind_int64(c.tls, st, i, x)
	case int:
		rc = sqlite3.Xsqlite3_bind_int64(c.tls, st, i, int64(x))
	case bool:
		n := int64(0)
		if x {
			n = 1
		}
		rc = sqlite3.Xsqlite3_bind_int64(c.tls, st, i, n)
	case float64:
		rc = sqlite3.Xsqlite3_bind_double(c.tls, st, i, x)
	case string:
		p, err := c.place(f, len(x))
		if err != nil {
			return err
		}
		copy(libc.GoBytes(p, len(x)), x)
		rc = sqlite3.Xsqlite3_bind_text(c.tls, st, i, p, int32(len(x)), 0)
	case []byte:
		if x == nil {
			rc = sqlite3.Xsqlite3_bind_null(c.tls, st, i)
			break
		}
		p, err := c.place(f, len(x))
		if err != nil {
			return err
		}
		copy(libc.GoBytes(p, len(x)), x)
		rc = sqlite3.Xsqlite3_bind_blob(c.tls, st, i, p, int32(len(x)), 0)
	default:
		return c.bindKind(f, st, i, reflect.ValueOf(arg))
	}
	if rc != sqlite3.SQLITE_OK {
		return c.failure(rc)
	}
	return nil
}

// bindKind binds a value of a named type by its kind.
func (c *lite) bindKind(f *liteFrame, st uintptr, i int32, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return c.bind(f, st, i, v.Int())
	case reflect.String:
		return c.bind(f, st, i, v.String())
	case reflect.Bool:
		return c.bind(f, st, i, v.Bool())
	}
	return fmt.Errorf("a %s cannot be stored", v.Type())
}

// The types of values, as the row has them.
func (st *liteStmt) kind(i int) int32 {
	return sqlite3.Xsqlite3_column_type(st.c.tls, st.p, int32(i))
}

func (st *liteStmt) isNull(i int) bool { return st.kind(i) == sqlite3.SQLITE_NULL }

func (st *liteStmt) int(i int) int64 {
	return sqlite3.Xsqlite3_column_int64(st.c.tls, st.p, int32(i))
}

// bytes returns the bytes of a text or blob, which last until the next step.
func (st *liteStmt) bytes(i int) []byte {
	p := sqlite3.Xsqlite3_column_blob(st.c.tls, st.p, int32(i))
	if p == 0 {
		return nil
	}
	return libc.GoBytes(p, int(sqlite3.Xsqlite3_column_bytes(st.c.tls, st.p, int32(i))))
}

// value returns a column as database/sql would: for those who take any.
func (st *liteStmt) value(i int) any {
	switch st.kind(i) {
	case sqlite3.SQLITE_INTEGER:
		return st.int(i)
	case sqlite3.SQLITE_FLOAT:
		return sqlite3.Xsqlite3_column_double(st.c.tls, st.p, int32(i))
	case sqlite3.SQLITE_TEXT:
		return string(st.bytes(i))
	case sqlite3.SQLITE_BLOB:
		return append([]byte{}, st.bytes(i)...)
	}
	return nil
}

// liteDest is a destination that takes a column as it lies there.
type liteDest interface {
	column(st *liteStmt, i int)
}

// Scan implements row. A null goes only where there is room for it, an integer
// only into integers and booleans, a text only into texts.
func (st *liteStmt) Scan(dest ...any) error {
	if len(dest) != st.columns {
		return fmt.Errorf("%d destinations for %d columns", len(dest), st.columns)
	}
	for i, d := range dest {
		if err := st.scan(i, d); err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return nil
}

func (st *liteStmt) scan(i int, dest any) error {
	switch d := dest.(type) {
	case liteDest:
		d.column(st, i)
		return nil
	case *[]byte:
		*d = nil
		if !st.isNull(i) {
			*d = append([]byte{}, st.bytes(i)...)
		}
		return nil
	case *any:
		*d = st.value(i)
		return nil
	case interface{ Scan(any) error }:
		return d.Scan(st.value(i))
	}
	kind := st.kind(i)
	switch d := dest.(type) {
	case *int64:
		*d = st.int(i)
		return isA(kind, sqlite3.SQLITE_INTEGER, "an integer")
	case *int:
		*d = int(st.int(i))
		return isA(kind, sqlite3.SQLITE_INTEGER, "an integer")
	case *till.Time:
		*d = till.Time(st.int(i))
		return isA(kind, sqlite3.SQLITE_INTEGER, "a time")
	case *bool:
		*d = st.int(i) != 0
		return isA(kind, sqlite3.SQLITE_INTEGER, "a boolean")
	case *string:
		*d = string(st.bytes(i))
		return isA(kind, sqlite3.SQLITE_TEXT, "a text")
	}
	v := reflect.ValueOf(dest)
	if v.Kind() != reflect.Pointer {
		return fmt.Errorf("%T is no place for a column", dest)
	}
	switch v = v.Elem(); v.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if n := st.int(i); v.OverflowInt(n) {
			return fmt.Errorf("%d does not fit into a %s", n, v.Type())
		}
		v.SetInt(st.int(i))
		return isA(kind, sqlite3.SQLITE_INTEGER, "an integer")
	case reflect.Bool:
		v.SetBool(st.int(i) != 0)
		return isA(kind, sqlite3.SQLITE_INTEGER, "a boolean")
	case reflect.String:
		v.SetString(string(st.bytes(i)))
		return isA(kind, sqlite3.SQLITE_TEXT, "a text")
	}
	return fmt.Errorf("%T is no place for a column", dest)
}

func isA(kind, want int32, name string) error {
	if kind != want {
		return fmt.Errorf("there is no %s but type %d", name, kind)
	}
	return nil
}
