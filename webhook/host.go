package webhook

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"
)

// maxResolvedHosts is how many names are kept with their address.
const maxResolvedHosts = 10_000

// resolvedHosts holds the address of each name's last connection.
type resolvedHosts struct {
	mu        sync.Mutex
	addresses map[string]netip.Addr
}

// remember stores the address of a name's connection.
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

// Host returns which host a post to an address counts for. For https that is the name,
// whatever the port: the certificate proves the name, and a content network serves many
// names. For http nothing proves the name, and many names can point to one victim. So it is
// the IP address, once the name was connected to.
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
	case addr.Is6(): // a host has a whole network of IPv6 addresses
		return netip.PrefixFrom(addr, 64).Masked().String()
	}
	return addr.String()
}
