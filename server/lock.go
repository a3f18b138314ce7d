package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"till/internal/system"
)

// lockFile is held by the one server of a database. The system releases it when the process
// ends, however it ends. The file itself stays: if it were removed, a third server could
// lock a new file that the second one does not see.
type lockFile struct{ f *os.File }

// takeLock locks the database for this process, or says which process has it.
func takeLock(database string) (*lockFile, error) {
	path, err := realPath(database)
	if err != nil {
		return nil, fmt.Errorf("lock the database: %w", err)
	}
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the database: %w", err)
	}
	err = system.Lock(f)
	if errors.Is(err, system.ErrLocked) {
		defer f.Close()
		return nil, fmt.Errorf("another till server is using %s (process %s)", database, lockHolder(f))
	}
	if err == nil {
		err = writePID(f)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", database, err)
	}
	return &lockFile{f}, nil
}

// LockDatabase keeps servers off a SQLite file until release is called, or says which
// process has it. The folder of the file must exist.
func LockDatabase(database string) (release func() error, err error) {
	l, err := takeLock(database)
	if err != nil {
		return nil, err
	}
	return l.release, nil
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// lockHolder reads the process id of the lock's holder. The holder may not have written it
// yet, so it waits a moment.
func lockHolder(f *os.File) string {
	for range 10 {
		b, _ := io.ReadAll(io.NewSectionReader(f, 0, 32))
		if pid := strings.TrimSpace(string(b)); pid != "" {
			return pid
		}
		time.Sleep(10 * time.Millisecond)
	}
	return "unknown"
}

func (l *lockFile) release() error {
	_ = l.f.Truncate(0) // only for people who read it
	return l.f.Close()
}

// realPath returns the absolute path with its links followed, as far as it exists: two
// names of one file must lead to the same lock.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real, nil
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path)), nil
	}
	return path, nil
}
