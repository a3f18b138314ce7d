package api

import (
	"net/netip"
	"slices"
	"strings"
)

// peer returns the caller's address: the other end of the connection or, if that is a
// trusted proxy, the address that the outermost trusted proxy saw. Of X-Forwarded-For it
// reads, from the right, only what trusted proxies added.
func (c *exchange) peer() netip.Addr {
	if c.from.IsValid() {
		return c.from
	}
	at, err := netip.ParseAddrPort(c.r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	c.from = at.Addr().Unmap().WithZone("")
	if !within(c.s.TrustedProxies, c.from) {
		return c.from
	}
	hops := strings.Join(c.r.Header["X-Forwarded-For"], ",")
	for hops != "" && within(c.s.TrustedProxies, c.from) {
		last := strings.LastIndexByte(hops, ',')
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[last+1:]))
		if err != nil {
			break // earlier entries are not trusted either
		}
		c.from, hops = hop.Unmap().WithZone(""), hops[:max(0, last)]
	}
	return c.from
}

// ignoresForwarded reports whether there is a forwarded address that is not trusted: an
// attacker's, or that of a proxy that is not configured.
func (c *exchange) ignoresForwarded() bool {
	at, err := netip.ParseAddrPort(c.r.RemoteAddr)
	return err == nil && len(c.r.Header["X-Forwarded-For"]) > 0 && !within(c.s.TrustedProxies, at.Addr().Unmap())
}

func within(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(a) })
}
