package api

import (
	"net"
	"net/netip"
	"sync"

	"till/internal/door"
)

// maxAddressConns is how many connections one address has at once. Nobody needs so many,
// but for a proxy that is named, and this machine, which have no limit of their own.
const maxAddressConns = 1000

// connections knows the connections of each address.
type connections struct {
	most   int
	exempt []netip.Prefix

	mu  sync.Mutex
	all map[netip.Prefix]map[*guardedConn]bool
}

// addressOf returns what counts as the address of a connection, and whether it is limited.
func (s *connections) addressOf(c net.Conn) (n netip.Prefix, limited bool) {
	at, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return n, false
	}
	a := at.Addr().Unmap()
	return door.Network(a), !a.IsLoopback() && !door.Within(s.exempt, a)
}

// enter counts a connection. If its address has too many, the one that has been idle for the
// longest time is closed. It reports false if none is idle.
func (s *connections) enter(c *guardedConn) bool {
	n, limited := s.addressOf(c.Conn)
	if !limited {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.all[n]
	if of == nil {
		of = map[*guardedConn]bool{}
		s.all[n] = of
	}
	if len(of) >= s.most {
		oldest := oldestIdle(of)
		if oldest == nil {
			return false
		}
		delete(of, oldest)
		oldest.Conn.Close() // net/http notices, and closes the rest
	}
	of[c] = true
	return true
}

// oldestIdle returns the connection that has been idle for the longest time, nil if none is.
func oldestIdle(of map[*guardedConn]bool) (oldest *guardedConn) {
	for c := range of {
		if at := c.idleSince.Load(); at != 0 && (oldest == nil || at < oldest.idleSince.Load()) {
			oldest = c
		}
	}
	return oldest
}

// leave forgets a connection.
func (s *connections) leave(c *guardedConn) {
	n, limited := s.addressOf(c.Conn)
	if !limited {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.all[n], c); len(s.all[n]) == 0 {
		delete(s.all, n)
	}
}
