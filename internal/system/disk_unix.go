//go:build linux || darwin

package system

import "syscall"

// DiskSpace returns the size of the file system that holds a folder, and what is free for
// this user, in bytes. ok is false if the system does not say.
func DiskSpace(folder string) (size, free int64, ok bool) {
	var s syscall.Statfs_t
	if syscall.Statfs(folder, &s) != nil {
		return 0, 0, false
	}
	return int64(s.Blocks) * int64(s.Bsize), int64(s.Bavail) * int64(s.Bsize), true
}

// OnOneDisk reports whether two folders are on one file system.
func OnOneDisk(a, b string) bool {
	var x, y syscall.Stat_t
	return syscall.Stat(a, &x) == nil && syscall.Stat(b, &y) == nil && x.Dev == y.Dev
}
