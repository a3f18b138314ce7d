//go:build !linux

package system

import (
	"syscall"
	"time"
)

// LimitSilence does nothing here: see the one of Linux.
func LimitSilence(syscall.RawConn, time.Duration) error { return nil }
