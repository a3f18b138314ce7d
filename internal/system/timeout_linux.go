package system

import (
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT, which package syscall does not name.
const tcpUserTimeout = 0x12

// LimitSilence ends a connection whose other side acknowledges nothing for so
// long. By itself the kernel would go on for a quarter of an hour. Elsewhere
// than on Linux it does nothing: keep-alives have to do.
func LimitSilence(c syscall.RawConn, d time.Duration) error {
	return c.Control(func(fd uintptr) {
		syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(d.Milliseconds()))
	})
}
