package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// The driver's package does this for whoever imports it: on arm64 with large
// pages the write-ahead log could not be mapped otherwise.
func init() { sqlite3.PatchIssue199() }

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

	inside bool  // a transaction was begun, and nobody has ended it
	lost   error // but SQLite has, because of this
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
	writes  bool
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
	if strings.IndexByte(path, 0) >= 0 { // C would see a shorter name
		return nil, errors.New("a path cannot hold a zero byte")
	}
	c := &lite{tls: libc.NewTLS(), stmts: make(map[string]*liteStmt)}
	if c.room = sqlite3.Xsqlite3_malloc(c.tls, liteRoom); c.room == 0 {
		c.tls.Close()
		return nil, &liteError{sqlite3.SQLITE_NOMEM, "no memory for a connection"}
	}
	if err := c.openFile(path); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *lite) openFile(path string) error {
	at := c.open()
	defer c.leave(&at)
	name, err := c.text(&at, path)
	if err != nil {
		return err
	}
	handle, err := c.place(&at, 8)
	if err != nil {
		return err
	}
	rc := sqlite3.Xsqlite3_open_v2(c.tls, name, handle, sqlite3.SQLITE_OPEN_READWRITE|sqlite3.SQLITE_OPEN_CREATE|sqlite3.SQLITE_OPEN_NOMUTEX, 0)
	c.db = pointerAt(handle) // also after an error: it has the words for it, and must be closed
	if rc != sqlite3.SQLITE_OK {
		return c.failure(rc)
	}
	sqlite3.Xsqlite3_extended_result_codes(c.tls, c.db, 1)
	return nil
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

// failure makes an error of an answer. The connection's words are added where
// they are about it: some calls fail without leaving any.
func (c *lite) failure(rc int32) error {
	err := &liteError{rc, libc.GoString(sqlite3.Xsqlite3_errstr(c.tls, rc))}
	if c.db == 0 {
		return err
	}
	if last := sqlite3.Xsqlite3_extended_errcode(c.tls, c.db); last&0xff == rc&0xff {
		if more := libc.GoString(sqlite3.Xsqlite3_errmsg(c.tls, c.db)); more != err.text {
			err.text += ": " + more
		}
	}
	// A full disk, for one, ends the whole transaction. Whatever came after it
	// would be a transaction of its own.
	if c.inside && sqlite3.Xsqlite3_get_autocommit(c.tls, c.db) != 0 {
		c.lost = fmt.Errorf("the transaction was rolled back: %w", err)
	}
	return err
}

// liteFrame is where the room stood before a statement, and what did not fit.
type liteFrame struct {
	used int
	more []uintptr
}

func (c *lite) open() liteFrame { return liteFrame{used: c.used} }

// place returns n bytes of memory that last until the frame is left.
func (c *lite) place(f *liteFrame, n int) (uintptr, error) {
	if n <= liteRoom-c.used {
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
	if c.lost != nil {
		return c.lost
	}
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

// prepare makes a statement of a text that has exactly one.
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
	tail, err := c.place(&at, 8)
	if err != nil {
		return nil, err
	}
	rc := sqlite3.Xsqlite3_prepare_v3(c.tls, c.db, text, int32(len(query)+1), sqlite3.SQLITE_PREPARE_PERSISTENT, handle, tail)
	if rc != sqlite3.SQLITE_OK {
		return nil, fmt.Errorf("prepare %.60q: %w", query, c.failure(rc))
	}
	p := pointerAt(handle)
	if rest := query[pointerAt(tail)-text:]; p == 0 || strings.TrimSpace(rest) != "" { // what is left would never run
		sqlite3.Xsqlite3_finalize(c.tls, p)
		return nil, fmt.Errorf("prepare %.60q: not one statement", query)
	}
	return &liteStmt{
		c: c, p: p,
		params:  int(sqlite3.Xsqlite3_bind_parameter_count(c.tls, p)),
		columns: int(sqlite3.Xsqlite3_column_count(c.tls, p)),
		writes:  sqlite3.Xsqlite3_stmt_readonly(c.tls, p) == 0,
	}, nil
}

// run runs a statement to its end, calls each for its rows, and returns how
// many rows it has changed. Texts are constants of the program, so the map of
// prepared ones is bounded by its length.
func (c *lite) run(query string, args []any, each func(r row) error) (int64, error) {
	if c.lost != nil {
		return 0, c.lost
	}
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
			if !st.writes { // the count would be that of the write before
				return 0, nil
			}
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
// stay until the statement has run; the next run binds all anew. The calls that
// take 64 bits of length refuse what is too long, the others would take a length
// beyond 31 bits for a negative one.
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
		rc = sqlite3.Xsqlite3_bind_text64(c.tls, st, i, p, uint64(len(x)), 0, sqlite3.SQLITE_UTF8)
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
		rc = sqlite3.Xsqlite3_bind_blob64(c.tls, st, i, p, uint64(len(x)), 0)
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
