package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"till/internal/system"
)

// folder is a place on this machine.
type folder string

// partialSuffix is of a file that is being written. Nothing takes it for a backup.
const partialSuffix = ".partial"

// String implements Place.
func (f folder) String() string { return string(f) }

// Put implements Place. A file gets its name when it is complete and on the disk.
func (f folder) Put(_ context.Context, name string, write func(w io.Writer) error) (n int64, err error) {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return 0, fmt.Errorf("make the folder of the backups: %w", err)
	}
	f.removePartial()
	path := filepath.Join(string(f), name)
	if _, err := os.Lstat(path); err == nil {
		return 0, fmt.Errorf("%s is there already", path)
	}
	file, err := os.CreateTemp(string(f), name+".*"+partialSuffix) // of mode 0600
	if err != nil {
		return 0, fmt.Errorf("write the backup: %w", err)
	}
	defer os.Remove(file.Name()) // gone already if all went well
	defer file.Close()
	if err := system.Lock(file); err != nil {
		return 0, fmt.Errorf("write the backup: %w", err)
	}
	if err := write(file); err != nil {
		return 0, err
	}
	if n, err = file.Seek(0, io.SeekEnd); err != nil {
		return 0, err
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return 0, fmt.Errorf("write the backup: %w", err)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return 0, err
	}
	return n, system.SyncFolder(string(f))
}

// removePartial removes what a killed backup has left. One that is still being
// written is locked.
func (f folder) removePartial() {
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "till-") || !strings.HasSuffix(e.Name(), partialSuffix) {
			continue
		}
		path := filepath.Join(string(f), e.Name())
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if system.Lock(file) == nil {
			os.Remove(path)
		}
		file.Close()
	}
}

// List implements Place.
func (f folder) List(context.Context) ([]string, error) {
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return nil, err
	}
	if len(entries) > maxListed {
		return nil, fmt.Errorf("%s holds more than %d files: give the backups a folder of their own", f, maxListed)
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Open implements Place.
func (f folder) Open(_ context.Context, name string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(string(f), name))
}

// Remove implements Place.
func (f folder) Remove(_ context.Context, name string) error {
	return os.Remove(filepath.Join(string(f), name))
}
