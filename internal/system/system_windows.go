package system

import (
	"errors"
	"io/fs"
	"net"
	"os"

	"golang.org/x/sys/windows"
)

// Lock locks a file until it is closed or the process ends, however it ends. It
// does not wait: ErrLocked says that another process has it. A lock of Windows
// keeps others from reading what is locked, so it lies where nothing is written.
func Lock(f *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 20})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrLocked
	}
	return err
}

// IsRunning reports whether there is a process of that number.
func IsRunning(pid int) bool {
	h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return errors.Is(err, windows.ERROR_ACCESS_DENIED) // somebody else's
	}
	defer windows.CloseHandle(h)
	event, err := windows.WaitForSingleObject(h, 0)
	return err == nil && event == uint32(windows.WAIT_TIMEOUT) // it has not ended yet
}

// SyncFolder does nothing: Windows flushes no folders, its file system keeps a
// log of names.
func SyncFolder(string) error { return nil }

// CanCheckReaders says whether ReadableByOthers works here.
const CanCheckReaders = false

func othersRead(_, _ fs.FileMode) bool { return false }

func isInUse(err error) bool { return errors.Is(err, windows.WSAEADDRINUSE) }

// Ports that Hyper-V and others have reserved are forbidden, too.
func isForbidden(err error) bool { return errors.Is(err, windows.WSAEACCES) }

// SameOwner does nothing: on Windows a file has the rights of its folder.
func SameOwner(string, string) error { return nil }

// InheritedListeners returns none: there is no systemd.
func InheritedListeners() (map[string]net.Listener, error) { return nil, nil }
