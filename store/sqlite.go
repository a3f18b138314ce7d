package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"till"
)

// sqlite is the engine behind a file.
type sqlite struct {
	path string
	now  func() till.Time
	read *sql.DB
	main *sql.DB
}

func openSQLite(ctx context.Context, path string, now func() till.Time, readers int) (*sqlite, error) {
	e := &sqlite{path: path, now: now}
	var err error
	if e.main, err = e.open(ctx, true, 1); err != nil {
		return nil, err
	}
	if e.read, err = e.open(ctx, false, readers); err != nil {
		e.main.Close()
		return nil, err
	}
	return e, nil
}

// open sets what durability and correctness rest on. FULL makes each commit
// wait for the disk; the write-ahead log lets readers go on meanwhile; a
// larger checkpoint interval measured 12 % more rows per second.
func (e *sqlite) open(ctx context.Context, write bool, conns int) (*sql.DB, error) {
	q := url.Values{"_pragma": {
		"busy_timeout(5000)",
		"journal_mode(WAL)",
		"synchronous(FULL)",
		"foreign_keys(ON)",
		"wal_autocheckpoint(16000)",
		"temp_store(MEMORY)",
	}}
	if write {
		q.Add("_pragma", "cache_size(-32000)") // keys are random: their index should fit
		q.Set("_txlock", "immediate")
	} else {
		q.Add("_pragma", "cache_size(-4000)")
		q.Add("_pragma", "query_only(ON)")
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: e.path}).EscapedPath()+"?"+q.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	db.SetConnMaxLifetime(0)
	if err := db.PingContext(ctx); err != nil {
		db.Close()
		return nil, fmt.Errorf("open %s: %w", e.path, e.classify(err))
	}
	return db, nil
}

func (e *sqlite) connect(ctx context.Context, write bool) (session, error) {
	db := e.read
	if write {
		db = e.main
	}
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &sqlSession{conn: c, clock: e.now, stmts: make(map[string]*sql.Stmt)}, nil
}

func (e *sqlite) close() {
	e.read.Close()
	e.main.Close()
}

func (*sqlite) name() string { return "sqlite" }

func (*sqlite) tableExists() string { return `SELECT count(*) FROM sqlite_master WHERE name = ?` }

func (*sqlite) unmeasured() string { return "" }
func (*sqlite) remote() bool       { return false }

// One writer at a time needs no locks on rows.
func (*sqlite) lock() string           { return "" }
func (*sqlite) skipLocked() string     { return "" }
func (*sqlite) lockMigrations() string { return "" }

func (*sqlite) translate(text string) string { return text }

func (*sqlite) classify(err error) error {
	var e *driver.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%w: %w", errAgain, err)
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case sqlite3.SQLITE_CONSTRAINT:
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}
