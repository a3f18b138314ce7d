//go:build !linux

package system

// LowerPriority does nothing here: see the one of Linux.
func LowerPriority() {}
