package sqlite

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"till/internal/db"
)

// fullDevice is the number of Linux's device that is always full, /dev/full.
const fullDevice = 1<<8 | 7

// Where the log finds no room on the disk, a COMMIT has certainly not happened: nothing of
// it is there, neither now nor when the file is opened again.
func TestAFullDiskIsACertainRollback(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	c := newConn(t, path, true)
	must(t, c.h.script(`CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT) STRICT`))
	c.h.close() // the log is in the file
	if err := syscall.Mknod(path+"-wal", syscall.S_IFCHR|0o600, fullDevice); err != nil {
		t.Skipf("a device that is always full cannot be made here: %v", err)
	}
	c = newConn(t, path, true)
	ctx := t.Context()
	must(t, c.Begin(ctx))
	_, err := c.h.run(`INSERT INTO t VALUES (1, 'a')`, nil, nil)
	must(t, err)
	err = (&Engine{}).Classify(c.Commit(ctx, &db.Batch{}))
	if errors.Is(err, db.ErrUnknownCommit) || !errors.Is(err, db.ErrDiskFull) || !errors.Is(err, db.ErrUnavailable) {
		t.Errorf("the commit said %v; want a full disk, for certain", err)
	}
	must(t, c.Rollback(ctx))
	if n := c.h.count(t); n != 0 {
		t.Errorf("%d rows of a transaction that failed", n)
	}
	c.h.close()
	must(t, os.RemoveAll(path+"-wal"))
	c = newConn(t, path, true)
	defer c.h.close()
	if n := c.h.count(t); n != 0 {
		t.Errorf("%d rows of it in the file", n)
	}
}
