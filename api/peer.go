package api

import (
	"net/netip"

	"till/internal/door"
)

// peer returns the caller's address.
func (c *exchange) peer() netip.Addr {
	if !c.from.IsValid() {
		c.from = door.Peer(c.r, c.s.TrustedProxies)
	}
	return c.from
}
