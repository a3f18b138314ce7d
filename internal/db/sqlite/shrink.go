package sqlite

import (
	"encoding/binary"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// pageSize is SQLite's default.
const pageSize = 4096

// Shrink gives the memory of the page caches back unless they earned it: since the last
// call they were asked for at least half as many pages as they hold. The caller does
// so at intervals. The pages are still in the system's own cache.
//
// This build of SQLite has one pool of pages for all connections of a process. So they are
// judged together, and one of them empties the caches of all.
func (e *Engine) Shrink() {
	var asked, held int64
	var resting *handle
	for _, p := range []*pool{e.writers, e.readers} {
		// Nobody takes a connection meanwhile. Emptying takes milliseconds, and only where
		// little happens.
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, c := range p.idle {
			resting = c.h
			asked += c.h.figure(sqlite3.SQLITE_DBSTATUS_CACHE_HIT) + c.h.figure(sqlite3.SQLITE_DBSTATUS_CACHE_MISS)
			held += c.h.figure(sqlite3.SQLITE_DBSTATUS_CACHE_USED)
		}
	}
	if 2*asked*pageSize < held {
		sqlite3.Xsqlite3_db_release_memory(resting.tls, resting.db)
	}
}

// figure returns a figure of the connection, counted from the last call.
func (h *handle) figure(which int32) int64 {
	at := h.mark()
	defer h.reset(&at)
	out, err := h.alloc(&at, 16)
	if err != nil || sqlite3.Xsqlite3_db_status(h.tls, h.db, which, out, out+8, 1) != sqlite3.SQLITE_OK {
		return 0
	}
	return int64(int32(binary.NativeEndian.Uint32(libc.GoBytes(out, 4))))
}
