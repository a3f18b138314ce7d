package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"till/internal/system"
)

const (
	busyTimeout = 5 * time.Second // for a lock that another process holds
	readers     = 4
)

// sqliteDialect removes row locks: a writer locks the whole file.
var sqliteDialect = strings.NewReplacer(" FOR UPDATE SKIP LOCKED", "", " FOR UPDATE", "")

func openSQLite(ctx context.Context, path string, dedup bool) (*book, error) {
	deadline := time.Now().Add(openTimeout)
	for {
		b, err := tryOpenSQLite(ctx, path, dedup)
		if err == nil {
			return b, nil
		}
		// The change to a write-ahead log does not wait for other processes that open the
		// same new file; so we retry.
		if !isBusy(err) || time.Now().After(deadline) {
			return nil, err
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

func isBusy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY
}

func tryOpenSQLite(ctx context.Context, path string, dedup bool) (_ *book, err error) {
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?_txlock=immediate" +
		fmt.Sprintf("&_pragma=busy_timeout(%d)", busyTimeout.Milliseconds())
	b := &book{
		dialect:    sqliteDialect,
		dedup:      dedup,
		writeSlots: make(chan struct{}, 1), // as the file has one writer
		// A write takes microseconds, and interrupting it would cost the connection.
		uninterruptible: true,
	}
	defer func() {
		if err != nil {
			b.close()
		}
	}()

	if err = system.CreatePrivate(path); err != nil {
		return nil, err
	}
	// The writer comes first: it creates the tables.
	if b.writer, err = sql.Open("sqlite", dsn+"&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)"); err != nil {
		return nil, err
	}
	b.writer.SetMaxOpenConns(1)
	if _, err = b.writer.ExecContext(ctx, schema); err != nil {
		return nil, err
	}
	for _, c := range laterColumns {
		if err = addColumn(ctx, b.writer, c.name, c.definition); err != nil {
			return nil, err
		}
	}
	if _, err = b.writer.ExecContext(ctx, laterSchema); err != nil {
		return nil, err
	}
	if b.reader, err = sql.Open("sqlite", dsn+"&_pragma=query_only(1)"); err != nil {
		return nil, err
	}
	b.reader.SetMaxOpenConns(readers)
	b.reader.SetMaxIdleConns(readers)
	return b, b.prepare(ctx)
}

// addColumn adds a column to an old book. Of processes that start together, one
// adds it and the others find it.
func addColumn(ctx context.Context, db *sql.DB, name, definition string) error {
	for {
		var there bool
		err := db.QueryRowContext(ctx, `SELECT count(*) FROM pragma_table_info('requests') WHERE name = ?1`, name).Scan(&there)
		if err != nil || there {
			return err
		}
		if _, err = db.ExecContext(ctx, `ALTER TABLE requests ADD COLUMN `+name+` `+definition); err == nil {
			return nil
		}
		if !strings.Contains(err.Error(), "duplicate column") {
			return err
		}
	}
}
