package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"till/books"
	"till/internal/system"
	"till/store"
)

// Drill is a restore that was tried out.
type Drill struct {
	Restored *Restored
	Report   books.Report
	Heads    int // of audit chains, from the manifest, that were looked for

	Restoring, Verifying time.Duration
}

// drillPrefix begins the name of a drill's folder.
const drillPrefix = "till-drill-"

// RunDrill restores a backup into a new folder inside work, verifies its books,
// and deletes the folder. The Database of r is chosen here. progress may be nil.
func RunDrill(ctx context.Context, r RestoreRequest, work string, progress func(rows, all int64)) (d *Drill, err error) {
	removeOldDrills(work)
	folder, err := os.MkdirTemp(work, drillPrefix+"*")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the drill: %w", err)
	}
	defer func() { err = errors.Join(err, removeDrill(folder)) }()
	// A later drill knows by the lock that this one is running.
	lock, err := lockDrill(folder)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	// The database lies one folder below: the lock must not be beside it.
	if err := os.Mkdir(filepath.Join(folder, drillData), 0o700); err != nil {
		return nil, err
	}
	r.Database, r.SkipPages = filepath.Join(folder, drillData, databaseName), true
	begun := time.Now()
	d = &Drill{}
	if d.Restored, err = Restore(ctx, r); err != nil {
		return nil, err
	}
	d.Restoring = time.Since(begun)
	return d, d.verify(ctx, &r, progress)
}

func (d *Drill) verify(ctx context.Context, r *RestoreRequest, progress func(rows, all int64)) error {
	begun := time.Now()
	secret, err := r.ReadSecret(filepath.Join(filepath.Dir(r.Database), secretName))
	if err != nil {
		return err
	}
	key, err := books.ChainKey(secret)
	if err != nil {
		return err
	}
	heads := books.FindHeads(strings.Join(d.Restored.Manifest.Heads, "\n"))
	s, err := store.Open(ctx, store.Config{Path: r.Database})
	if err != nil {
		return err
	}
	d.Report, err = books.Verify(ctx, s, books.Options{Key: key, Heads: heads, Progress: progress})
	d.Verifying, d.Heads = time.Since(begun), len(heads)
	return errors.Join(err, s.Close())
}

// What is in a drill's folder.
const (
	drillLock = "lock"
	drillData = "data"
)

func lockDrill(folder string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(folder, drillLock), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := system.Lock(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// removeOldDrills deletes what killed drills have left: folders whose lock nobody
// holds. A folder without a lock is being made just now, or is somebody else's.
func removeOldDrills(work string) {
	folders, err := filepath.Glob(filepath.Join(work, drillPrefix+"*"))
	if err != nil {
		return
	}
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(folder, drillLock)); err != nil {
			continue
		}
		if f, err := lockDrill(folder); err == nil {
			removeDrill(folder)
			f.Close()
		}
	}
}

// removeDrill deletes a drill's folder, its lock last: if the data outlived the lock, no
// later drill would delete it.
func removeDrill(folder string) error {
	if err := os.RemoveAll(filepath.Join(folder, drillData)); err != nil {
		return err
	}
	return os.RemoveAll(folder)
}
