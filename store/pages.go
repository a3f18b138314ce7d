package store

import (
	"context"
	"errors"

	"till/internal/db"
)

var selectPageCount = db.Define(db.SQL{Name: "pages.selectPageCount",
	SQLite: `SELECT page_count, page_size FROM pragma_page_count, pragma_page_size`})

var selectPages = db.Define(db.SQL{Name: "pages.selectPages",
	SQLite: `SELECT data FROM sqlite_dbpage ORDER BY pgno`})

// errNoPages says that only a SQLite file has pages that can be read.
var errNoPages = errors.New("store: PostgreSQL's pages are its own matter")

// PageCount returns how many pages the snapshot of a SQLite file has, and their
// size in bytes.
func (tx *Tx) PageCount(ctx context.Context) (pages, size int64, err error) {
	if tx.s.Shared() {
		return 0, 0, errNoPages
	}
	_, err = tx.db.QueryRow(ctx, selectPageCount, nil, &pages, &size)
	return pages, size, err
}

// Pages calls f with each page of the snapshot of a SQLite file, in order: one
// after the other they are the file as it was. The bytes are valid until f
// returns. Writers are not held up; only the log beside the file cannot shrink
// until it ends.
func (tx *Tx) Pages(ctx context.Context, f func(page []byte) error) error {
	if tx.s.Shared() {
		return errNoPages
	}
	return tx.db.Query(ctx, selectPages, nil, func(r db.Row) error {
		var page pageBytes
		if err := r.Scan(&page); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return f(page)
	})
}

// pageBytes takes a page without a copy.
type pageBytes []byte

// ScanColumn implements db.ColumnScanner.
func (p *pageBytes) ScanColumn(c db.Column) { *p = c.Bytes }
