//go:build unix

package system

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Limits of what systemd hands over.
const (
	firstInherited = 3
	maxInherited   = 16
)

// InheritedListeners returns the listening sockets that systemd has opened for this
// process, by the name of each (FileDescriptorName=): connections wait in them
// while the process restarts. It may be called once.
// https://www.freedesktop.org/software/systemd/man/sd_listen_fds.html
func InheritedListeners() (map[string]net.Listener, error) {
	pid, count, names := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_FDNAMES")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		os.Unsetenv(name) // a child must not take them for its own
	}
	n, err := strconv.Atoi(count)
	if pid != strconv.Itoa(os.Getpid()) || err != nil || n <= 0 {
		return nil, nil
	}
	if n > maxInherited {
		return nil, fmt.Errorf("systemd hands over %d sockets, more than %d", n, maxInherited)
	}
	given := strings.Split(names, ":")
	out := map[string]net.Listener{}
	for i := range n {
		fd := firstInherited + i
		syscall.CloseOnExec(fd)
		name := ""
		if i < len(given) {
			name = given[i]
		}
		f := os.NewFile(uintptr(fd), name)
		l, err := net.FileListener(f) // a copy
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("the socket %q that systemd hands over cannot be listened on: %w", name, err)
		}
		if out[name] != nil {
			return nil, fmt.Errorf("systemd hands over two sockets of the name %q", name)
		}
		out[name] = l
	}
	return out, nil
}
