package system

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// CreatePrivate makes an empty file that nobody but its owner can read, unless
// there is one of that name. SQLite gives the files that it makes beside its
// database the same mode.
func CreatePrivate(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// ReadableByOthers returns those of some files that other users of this machine can
// read: their modes let them, and so does the mode of the folder that they are
// in. On Windows it returns none (see CanCheckReaders): there, who can read a file is
// inherited from its folder and not in a mode.
func ReadableByOthers(paths ...string) (open []string) {
	for _, path := range paths {
		file, err := os.Stat(path)
		if err != nil {
			continue // it is not there, or we are the ones who cannot read it
		}
		folder, err := os.Stat(filepath.Dir(path))
		if err == nil && othersRead(file.Mode(), folder.Mode()) {
			open = append(open, path)
		}
	}
	return open
}
