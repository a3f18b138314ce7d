package webhook

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"
)

// maxResolvedHosts is how many names are remembered with the address that they led to.
const maxResolvedHosts = 10_000

// reached is where names led to when they were last connected to.
type resolvedHosts struct {
	mu        sync.Mutex
	addresses map[string]netip.Addr
}

// remember remembers what a name led to.
func (r *resolvedHosts) remember(name string, conn net.Conn) {
	to, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.addresses == nil || len(r.addresses) >= maxResolvedHosts {
		r.addresses = make(map[string]netip.Addr)
	}
	r.addresses[strings.ToLower(name)] = to.Addr()
}

// Host returns whom a post to an address counts for. With https that is the
// name, whatever the port: whoever answers has shown that the name is theirs, and a
// content network answers for many. With http nothing shows that, and many names
// can be made to lead to one victim: it is the address, once the name was connected to.
func (s *Sender) Host(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw // never posted to
	}
	name := strings.ToLower(u.Hostname())
	addr, err := netip.ParseAddr(name)
	if err != nil && u.Scheme == "http" {
		s.resolved.mu.Lock()
		addr = s.resolved.addresses[name]
		s.resolved.mu.Unlock()
	}
	switch addr = addr.Unmap(); {
	case !addr.IsValid():
		return name
	case addr.Is6(): // a host has all of its network
		return netip.PrefixFrom(addr, 64).Masked().String()
	}
	return addr.String()
}
