package sqlite

import (
	"context"
	"errors"
	"fmt"

	sqlite3 "modernc.org/sqlite/lib"

	"till"
	"till/internal/db"
	"till/internal/system"
)

// Writers is how many write transactions run at once: SQLite allows one.
const Writers = 1

// Engine is one open file.
type Engine struct {
	path    string
	now     func() till.Time
	readers *pool
	writers *pool
}

// Durability and correctness rest on these settings. FULL makes each commit wait
// for the disk; the write-ahead log lets readers go on meanwhile; a larger
// checkpoint interval measured 12 % more rows per second.
const (
	settings = `PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;
		PRAGMA wal_autocheckpoint = 16000; PRAGMA temp_store = MEMORY;`
	writeSettings = `PRAGMA cache_size = -32000` // keys are random: their index should fit
	readSettings  = `PRAGMA cache_size = -4000; PRAGMA query_only = ON`
)

// Open opens a file, and creates it if there is none. readers is how many reads
// run at once.
func Open(path string, readers int, now func() till.Time) (*Engine, error) {
	if err := checkLog(path); err != nil {
		return nil, err
	}
	if path != "" {
		if err := system.CreatePrivate(path); err != nil {
			return nil, fmt.Errorf("make the database: %w", err)
		}
	}
	e := &Engine{path: path, now: now}
	e.readers = newPool(readers, func() (*conn, error) { return e.connect(db.Read) })
	e.writers = newPool(Writers, func() (*conn, error) { return e.connect(db.Write) })
	return e, nil
}

// Dialect implements db.Engine.
func (e *Engine) Dialect() db.Dialect { return db.SQLite }

// Sessions returns how many connections there are.
func (e *Engine) Sessions() (s db.Sessions) {
	s.ReadUsed, s.ReadIdle = e.readers.count()
	s.WriteUsed, s.WriteIdle = e.writers.count()
	return s
}

// Acquire implements db.Engine.
func (e *Engine) Acquire(ctx context.Context, a db.Access) (db.Conn, error) {
	p := e.readers
	if a == db.Write {
		p = e.writers
	}
	c, err := p.acquire(ctx)
	if err != nil {
		return nil, e.Classify(err)
	}
	return c, nil
}

// Close implements db.Engine.
func (e *Engine) Close() error {
	e.writers.close()
	e.readers.close()
	return nil
}

func (e *Engine) connect(a db.Access) (*conn, error) {
	h, err := open(e.path, sqlite3.SQLITE_OPEN_READWRITE|sqlite3.SQLITE_OPEN_CREATE)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", e.path, err)
	}
	own := readSettings
	if a == db.Write {
		own = writeSettings
	}
	if err := h.script(settings + own); err != nil {
		h.close()
		return nil, fmt.Errorf("open %s: %w", e.path, err)
	}
	return &conn{h: h, now: e.now, access: a}, nil
}

// Classify implements db.Engine.
func (e *Engine) Classify(err error) error {
	var x *Error
	if !errors.As(err, &x) {
		return err
	}
	switch x.code & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%w: %w", db.ErrRetry, err)
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w: %w", db.ErrDiskFull, err)
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY,
		sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB: // a damaged file must not be written to
		return fmt.Errorf("%w: %w", db.ErrUnavailable, err)
	case sqlite3.SQLITE_CONSTRAINT:
		return fmt.Errorf("%w: %w", db.ErrConstraint, err)
	}
	return err
}

// DataVersion returns a number that changes when another process, and not this
// one, commits to the file: it is read on the connection that writes.
func (e *Engine) DataVersion(ctx context.Context) (version int64, err error) {
	c, err := e.writers.acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer c.Release()
	_, err = c.h.run(`PRAGMA data_version`, nil, func(r db.Row) error { return r.Scan(&version) })
	return version, err
}
