//go:build !linux

package main

import "os"

// flush waits until what was written is on the disk.
func flush(f *os.File) error { return f.Sync() }
