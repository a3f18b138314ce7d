package main

import (
	"os"
	"syscall"
)

// flush waits until what was written is on the disk, as databases do it.
func flush(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
