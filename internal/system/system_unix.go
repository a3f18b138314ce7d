//go:build unix

package system

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Lock locks a file until it is closed or the process ends, however it ends. It
// does not wait: ErrLocked says that another process has it.
func Lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// IsRunning reports whether there is a process of that number.
func IsRunning(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// SyncFolder makes the names in a folder survive a power cut.
func SyncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// CanCheckReaders says whether ReadableByOthers works here.
const CanCheckReaders = true

// othersRead compares the modes of a file and its folder: the group's bits, then
// everybody's.
func othersRead(file, folder fs.FileMode) bool {
	return file&0o060 != 0 && folder&0o010 != 0 || file&0o006 != 0 && folder&0o001 != 0
}

func isInUse(err error) bool     { return errors.Is(err, syscall.EADDRINUSE) }
func isForbidden(err error) bool { return errors.Is(err, syscall.EACCES) }

// SameOwner gives a file the owner and group of another one, if this process may:
// it does nothing unless it is run by root.
func SameOwner(path, as string) error {
	info, err := os.Stat(as)
	if err != nil || os.Geteuid() != 0 {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return os.Chown(path, int(owner.Uid), int(owner.Gid))
}
