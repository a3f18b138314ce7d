package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"till/internal/db"
)

// The driver's package does this for its importers: on arm64 with large
// pages the write-ahead log could not be mapped otherwise.
func init() { sqlite3.PatchIssue199() }

// handle is a connection to a SQLite file over the library's C interface.
// database/sql and its driver take as much of a statement's time as SQLite itself:
// each time they read the names of all parameters and columns, copy every
// argument twice and take locks. A handle prepares a statement once and has one
// piece of memory for arguments. One goroutine uses it at a time.
type handle struct {
	tls      *libc.TLS
	db       uintptr
	prepared map[string]*statement

	scratch uintptr // C memory for the bytes of arguments while their statement runs
	used    int     // of it, in bytes

	inside bool  // a transaction was begun and not ended
	lost   error // why SQLite ended it by itself
}

// scratchSize is how many bytes of arguments need no memory of their own.
const scratchSize = 64 << 10

// statement is a prepared statement and its current row.
type statement struct {
	h       *handle
	p       uintptr
	params  int
	columns int
	writes  bool
	busy    bool // it runs: a nested run of the same text needs another statement
}

// Error is an error of SQLite.
type Error struct {
	code int32 // the extended code
	text string
}

// Error implements error.
func (e *Error) Error() string { return e.text + " (" + strconv.Itoa(int(e.code)) + ")" }

// full reports whether there was no room on the disk.
func (e *Error) full() bool { return e.code&0xff == sqlite3.SQLITE_FULL }

// open opens a file with the flags of sqlite3_open_v2.
func open(path string, flags int32) (*handle, error) {
	if strings.IndexByte(path, 0) >= 0 { // C would see a shorter name
		return nil, errors.New("a path cannot hold a zero byte")
	}
	h := &handle{tls: libc.NewTLS(), prepared: make(map[string]*statement)}
	if h.scratch = sqlite3.Xsqlite3_malloc(h.tls, scratchSize); h.scratch == 0 {
		h.tls.Close()
		return nil, &Error{sqlite3.SQLITE_NOMEM, "no memory for a connection"}
	}
	if err := h.openFile(path, flags); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *handle) openFile(path string, flags int32) error {
	at := h.mark()
	defer h.reset(&at)
	name, err := h.text(&at, path)
	if err != nil {
		return err
	}
	out, err := h.alloc(&at, 8)
	if err != nil {
		return err
	}
	rc := sqlite3.Xsqlite3_open_v2(h.tls, name, out, flags|sqlite3.SQLITE_OPEN_NOMUTEX, 0)
	h.db = pointerAt(out) // also after an error: it has the message and must be closed
	if rc != sqlite3.SQLITE_OK {
		return h.failure(rc)
	}
	sqlite3.Xsqlite3_extended_result_codes(h.tls, h.db, 1)
	return nil
}

// close closes the connection. The last connection to close copies the
// write-ahead log into the file.
func (h *handle) close() {
	for _, st := range h.prepared {
		sqlite3.Xsqlite3_finalize(h.tls, st.p)
	}
	if h.db != 0 {
		sqlite3.Xsqlite3_close_v2(h.tls, h.db)
	}
	sqlite3.Xsqlite3_free(h.tls, h.scratch)
	h.tls.Close()
}

// failure makes an error of a result code. The connection's message is added if
// it belongs to the code: some calls fail without leaving one.
func (h *handle) failure(rc int32) error {
	err := &Error{rc, libc.GoString(sqlite3.Xsqlite3_errstr(h.tls, rc))}
	if h.db == 0 {
		return err
	}
	if last := sqlite3.Xsqlite3_extended_errcode(h.tls, h.db); last&0xff == rc&0xff {
		if more := libc.GoString(sqlite3.Xsqlite3_errmsg(h.tls, h.db)); more != err.text {
			err.text += ": " + more
		}
	}
	// Some errors, such as a full disk, end the whole transaction. The next
	// statement would be a transaction of its own.
	if h.inside && h.autocommit() {
		h.lost = fmt.Errorf("the transaction was rolled back: %w", err)
	}
	return err
}

// scratchMark is how much of the scratch memory was used before a statement, and
// the memory of arguments that did not fit.
type scratchMark struct {
	used int
	more []uintptr
}

func (h *handle) mark() scratchMark { return scratchMark{used: h.used} }

// alloc returns n bytes of memory that last until reset.
func (h *handle) alloc(f *scratchMark, n int) (uintptr, error) {
	if n <= scratchSize-h.used {
		p := h.scratch + uintptr(h.used)
		h.used += (n + 7) &^ 7
		return p, nil
	}
	p := sqlite3.Xsqlite3_malloc64(h.tls, uint64(n))
	if p == 0 {
		return 0, h.failure(sqlite3.SQLITE_NOMEM)
	}
	f.more = append(f.more, p)
	return p, nil
}

func (h *handle) reset(f *scratchMark) {
	h.used = f.used
	for _, p := range f.more {
		sqlite3.Xsqlite3_free(h.tls, p)
	}
}

// text copies a string into C memory, with a zero behind it.
func (h *handle) text(f *scratchMark, s string) (uintptr, error) {
	p, err := h.alloc(f, len(s)+1)
	if err == nil {
		b := libc.GoBytes(p, len(s)+1)
		copy(b, s)
		b[len(s)] = 0
	}
	return p, err
}

// pointerAt reads a pointer that SQLite has written.
func pointerAt(p uintptr) uintptr {
	if strconv.IntSize == 32 {
		return uintptr(binary.NativeEndian.Uint32(libc.GoBytes(p, 4)))
	}
	return uintptr(binary.NativeEndian.Uint64(libc.GoBytes(p, 8)))
}

// script runs statements without arguments and rows.
func (h *handle) script(text string) error {
	if h.lost != nil {
		return h.lost
	}
	at := h.mark()
	defer h.reset(&at)
	p, err := h.text(&at, text)
	if err != nil {
		return err
	}
	if rc := sqlite3.Xsqlite3_exec(h.tls, h.db, p, 0, 0, 0); rc != sqlite3.SQLITE_OK {
		return h.failure(rc)
	}
	return nil
}

// prepare prepares a text of exactly one statement.
func (h *handle) prepare(query string) (*statement, error) {
	at := h.mark()
	defer h.reset(&at)
	text, err := h.text(&at, query)
	if err != nil {
		return nil, err
	}
	out, err := h.alloc(&at, 8)
	if err != nil {
		return nil, err
	}
	tail, err := h.alloc(&at, 8)
	if err != nil {
		return nil, err
	}
	rc := sqlite3.Xsqlite3_prepare_v3(h.tls, h.db, text, int32(len(query)+1), sqlite3.SQLITE_PREPARE_PERSISTENT, out, tail)
	if rc != sqlite3.SQLITE_OK {
		return nil, fmt.Errorf("prepare %.60q: %w", query, h.failure(rc))
	}
	p := pointerAt(out)
	if rest := query[pointerAt(tail)-text:]; p == 0 || strings.TrimSpace(rest) != "" { // the rest would never run
		sqlite3.Xsqlite3_finalize(h.tls, p)
		return nil, fmt.Errorf("prepare %.60q: not one statement", query)
	}
	return &statement{
		h: h, p: p,
		params:  int(sqlite3.Xsqlite3_bind_parameter_count(h.tls, p)),
		columns: int(sqlite3.Xsqlite3_column_count(h.tls, p)),
		writes:  sqlite3.Xsqlite3_stmt_readonly(h.tls, p) == 0,
	}, nil
}

// run runs a statement to its end, calls each for its rows, and returns how many
// rows it changed. Texts are constants of the program, which bounds the map of
// prepared statements.
func (h *handle) run(query string, args []any, each func(r db.Row) error) (int64, error) {
	if h.lost != nil {
		return 0, h.lost
	}
	st := h.prepared[query]
	if st == nil || st.busy {
		var err error
		nested := st != nil
		if st, err = h.prepare(query); err != nil {
			return 0, err
		}
		if nested {
			defer sqlite3.Xsqlite3_finalize(h.tls, st.p)
		} else {
			h.prepared[query] = st
		}
	}
	st.busy = true
	at := h.mark()
	defer func() { // also after a panic in each
		sqlite3.Xsqlite3_reset(h.tls, st.p) // its result repeats that of the last step
		st.busy = false
		h.reset(&at)
	}()
	if len(args) != st.params {
		return 0, fmt.Errorf("%d arguments for %d parameters: %.60s", len(args), st.params, query)
	}
	for i, arg := range args {
		if err := h.bind(&at, st.p, int32(i+1), arg); err != nil {
			return 0, fmt.Errorf("argument %d of %.60q: %w", i+1, query, err)
		}
	}
	for {
		switch rc := sqlite3.Xsqlite3_step(h.tls, st.p); rc {
		case sqlite3.SQLITE_DONE:
			if !st.writes { // the count would be that of an earlier write
				return 0, nil
			}
			return sqlite3.Xsqlite3_changes64(h.tls, h.db), nil
		case sqlite3.SQLITE_ROW:
			if each != nil {
				if err := each(st); err != nil {
					return 0, err
				}
			}
		default:
			return 0, h.failure(rc)
		}
	}
}

// bind sets a parameter. Bytes are copied into C memory that lasts until the
// statement has run; the next run binds all parameters again. The calls with a
// length of 64 bits reject a value that is too long. The others would read a
// length beyond 31 bits as a negative one.
func (h *handle) bind(f *scratchMark, st uintptr, i int32, arg any) error {
	var rc int32
	switch x := arg.(type) {
	case nil:
		rc = sqlite3.Xsqlite3_bind_null(h.tls, st, i)
	case int64:
		rc = sqlite3.Xsqlite3_bind_int64(h.tls, st, i, x)
	case int:
		rc = sqlite3.Xsqlite3_bind_int64(h.tls, st, i, int64(x))
	case bool:
		n := int64(0)
		if x {
			n = 1
		}
		rc = sqlite3.Xsqlite3_bind_int64(h.tls, st, i, n)
	case float64:
		rc = sqlite3.Xsqlite3_bind_double(h.tls, st, i, x)
	case string:
		p, err := h.alloc(f, len(x))
		if err != nil {
			return err
		}
		copy(libc.GoBytes(p, len(x)), x)
		rc = sqlite3.Xsqlite3_bind_text64(h.tls, st, i, p, uint64(len(x)), 0, sqlite3.SQLITE_UTF8)
	case []byte:
		if x == nil {
			rc = sqlite3.Xsqlite3_bind_null(h.tls, st, i)
			break
		}
		p, err := h.alloc(f, len(x))
		if err != nil {
			return err
		}
		copy(libc.GoBytes(p, len(x)), x)
		rc = sqlite3.Xsqlite3_bind_blob64(h.tls, st, i, p, uint64(len(x)), 0)
	default:
		return h.bindKind(f, st, i, reflect.ValueOf(arg))
	}
	if rc != sqlite3.SQLITE_OK {
		return h.failure(rc)
	}
	return nil
}

// bindKind binds a value of a named type by its kind.
func (h *handle) bindKind(f *scratchMark, st uintptr, i int32, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return h.bind(f, st, i, v.Int())
	case reflect.String:
		return h.bind(f, st, i, v.String())
	case reflect.Bool:
		return h.bind(f, st, i, v.Bool())
	}
	return fmt.Errorf("a %s cannot be stored", v.Type())
}

// totalChanges returns how many rows the connection has changed so far.
func (h *handle) totalChanges() int64 { return sqlite3.Xsqlite3_total_changes64(h.tls, h.db) }

// autocommit reports that no transaction is open.
func (h *handle) autocommit() bool { return sqlite3.Xsqlite3_get_autocommit(h.tls, h.db) != 0 }

// steps returns how many steps SQLite's machine has made in prepared statements.
func (h *handle) steps() (n int64) {
	for _, st := range h.prepared {
		n += int64(sqlite3.Xsqlite3_stmt_status(h.tls, st.p, sqlite3.SQLITE_STMTSTATUS_VM_STEP, 0))
	}
	return n
}
