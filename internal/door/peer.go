package door

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Peer returns the caller's address: the other end of the connection or, if that is a
// trusted proxy, the address that the outermost trusted proxy saw. Of X-Forwarded-For it
// reads, from the right, only what trusted proxies added.
func Peer(r *http.Request, trusted []netip.Prefix) netip.Addr {
	from := remote(r)
	if !Within(trusted, from) {
		return from
	}
	hops := strings.Join(r.Header["X-Forwarded-For"], ",")
	for hops != "" && Within(trusted, from) {
		last := strings.LastIndexByte(hops, ',')
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[last+1:]))
		if err != nil {
			break // earlier entries are not trusted either
		}
		from, hops = hop.Unmap().WithZone(""), hops[:max(0, last)]
	}
	return from
}

// remote returns the other end of the connection, the zero Addr if it is unknown.
func remote(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}

// IgnoresForwarded reports whether there is a forwarded address that Peer does not read:
// an attacker's, or that of a proxy that is not named.
func IgnoresForwarded(r *http.Request, trusted []netip.Prefix) bool {
	from := remote(r)
	return from.IsValid() && len(r.Header["X-Forwarded-For"]) > 0 && !Within(trusted, from)
}

// Within reports whether one of the networks has the address.
func Within(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Network returns what counts as one address: an IPv4 address, or a subscriber's IPv6
// network.
func Network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // zero for the zero address
	return p
}

// Local reports whether a request comes from this machine, under a name of this machine,
// which no page of another site can take.
func Local(r *http.Request) bool {
	return remote(r).IsLoopback() && loopbackHost(r.Host)
}

// loopbackHost reports whether a Host header names this machine.
func loopbackHost(hostport string) bool {
	host := (&url.URL{Host: hostport}).Hostname()
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}
