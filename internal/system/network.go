package system

import (
	"errors"
	"net"
	"net/netip"
)

// ErrLocked says that another process has locked the file.
var ErrLocked = errors.New("another process has locked the file")

// IsInUse reports whether an address could not be listened on because somebody
// else does.
func IsInUse(err error) bool { return isInUse(err) }

// IsForbidden reports whether this user may not listen on an address.
func IsForbidden(err error) bool { return isForbidden(err) }

// IsLoopback reports whether an address, host and port, is one that only this
// machine can call. A name is none, but for localhost: what it stands for can
// change.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
