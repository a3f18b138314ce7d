//go:build !linux && !darwin

package system

// DiskSpace does not know here: see the one of Linux.
func DiskSpace(string) (size, free int64, ok bool) { return 0, 0, false }

// OnOneDisk does not know here: see the one of Linux.
func OnOneDisk(string, string) bool { return false }
