package api

import (
	"net/netip"
	"slices"
	"strings"
)

// peer returns who calls: the other end of the connection or, where that is a
// proxy of ours, who the nearest proxy that is not ours says it was. Of
// X-Forwarded-For only what our own proxies have added is read, from the right.
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
			break // what comes before it is worth no more
		}
		c.from, hops = hop.Unmap().WithZone(""), hops[:max(0, last)]
	}
	return c.from
}

// ignoresForwarded reports whether there is a forwarded address that is not believed:
// an attacker's, or that of a proxy that nobody has named.
func (c *exchange) ignoresForwarded() bool {
	at, err := netip.ParseAddrPort(c.r.RemoteAddr)
	return err == nil && len(c.r.Header["X-Forwarded-For"]) > 0 && !within(c.s.TrustedProxies, at.Addr().Unmap())
}

func within(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(a) })
}
