package sqlite

import (
	"fmt"
	"reflect"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"till"
	"till/internal/db"
)

// kind is the type of a column in this row.
func (st *statement) kind(i int) int32 {
	return sqlite3.Xsqlite3_column_type(st.h.tls, st.p, int32(i))
}

func (st *statement) int(i int) int64 {
	return sqlite3.Xsqlite3_column_int64(st.h.tls, st.p, int32(i))
}

// bytes returns the bytes of a text or blob, which last until the next step.
func (st *statement) bytes(i int) []byte {
	p := sqlite3.Xsqlite3_column_blob(st.h.tls, st.p, int32(i))
	if p == 0 {
		return nil
	}
	return libc.GoBytes(p, int(sqlite3.Xsqlite3_column_bytes(st.h.tls, st.p, int32(i))))
}

// value returns a column as database/sql would, for a destination of type any.
func (st *statement) value(i int) any {
	switch st.kind(i) {
	case sqlite3.SQLITE_INTEGER:
		return st.int(i)
	case sqlite3.SQLITE_FLOAT:
		return sqlite3.Xsqlite3_column_double(st.h.tls, st.p, int32(i))
	case sqlite3.SQLITE_TEXT:
		return string(st.bytes(i))
	case sqlite3.SQLITE_BLOB:
		return append([]byte{}, st.bytes(i)...)
	}
	return nil
}

// column returns a column for a db.ColumnScanner.
func (st *statement) column(i int) db.Column {
	switch st.kind(i) {
	case sqlite3.SQLITE_NULL:
		return db.Column{Null: true}
	case sqlite3.SQLITE_INTEGER:
		return db.Column{Int: st.int(i)}
	}
	return db.Column{Bytes: st.bytes(i)}
}

// Scan implements db.Row. A null needs a destination that can be null, an integer
// an integer or a boolean, a text a string or bytes.
func (st *statement) Scan(dest ...any) error {
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

func (st *statement) scan(i int, dest any) error {
	switch d := dest.(type) {
	case db.ColumnScanner:
		d.ScanColumn(st.column(i))
		return nil
	case *[]byte:
		*d = nil
		switch kind := st.kind(i); kind {
		case sqlite3.SQLITE_NULL:
		case sqlite3.SQLITE_TEXT, sqlite3.SQLITE_BLOB:
			*d = append([]byte{}, st.bytes(i)...)
		default:
			return isA(kind, sqlite3.SQLITE_BLOB, "bytes")
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
		n := st.int(i)
		if *d = int(n); int64(*d) != n { // where an int has 32 bits
			return fmt.Errorf("%d does not fit into an int", n)
		}
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
		n := st.int(i)
		if v.OverflowInt(n) {
			return fmt.Errorf("%d does not fit into a %s", n, v.Type())
		}
		v.SetInt(n)
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
		return fmt.Errorf("%s where %s was expected", kindNames[kind], name)
	}
	return nil
}

var kindNames = map[int32]string{
	sqlite3.SQLITE_INTEGER: "an integer", sqlite3.SQLITE_FLOAT: "a number with a fraction",
	sqlite3.SQLITE_TEXT: "a text", sqlite3.SQLITE_BLOB: "a blob", sqlite3.SQLITE_NULL: "a null",
}
