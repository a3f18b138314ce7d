package api

import (
	"net"
	"net/http"
	"net/netip"
	"testing"
)

// fakeConn is a connection from somewhere.
type fakeConn struct {
	net.Conn
	from   string
	closed bool
}

func (c *fakeConn) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.from + ":40000"))
}
func (c *fakeConn) Close() error { c.closed = true; return nil }

// One address has so many connections. The one that has been idle for the longest time goes
// first; if none is idle, the new one is refused. Proxies that are named, and this machine,
// are many people.
func TestConnectionsOfOneAddressAreBounded(t *testing.T) {
	t.Parallel()
	s := &connections{most: 3, exempt: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, all: map[netip.Prefix]map[*guardedConn]bool{}}
	open := func(from string) (*guardedConn, bool) {
		c := &guardedConn{Conn: &fakeConn{from: from}}
		return c, s.enter(c)
	}
	var mine []*guardedConn
	for range 3 {
		c, ok := open("203.0.113.7")
		if !ok {
			t.Fatal("refused")
		}
		mine = append(mine, c)
	}
	if _, ok := open("203.0.113.7"); ok {
		t.Error("a fourth one is let in while all are busy")
	}
	for _, from := range []string{"203.0.113.8", "10.1.1.1", "10.1.1.1", "10.1.1.1", "10.1.1.1", "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1"} {
		if _, ok := open(from); !ok {
			t.Errorf("%s is refused", from)
		}
	}
	mine[2].setState(http.StateIdle)
	mine[1].setState(http.StateIdle)
	mine[1].idleSince.Add(1) // clocks may be coarse
	if _, ok := open("203.0.113.7"); !ok || !mine[2].Conn.(*fakeConn).closed || mine[1].Conn.(*fakeConn).closed {
		t.Error("the oldest idle connection did not go first")
	}
	mine[1].setState(http.StateActive)
	if _, ok := open("203.0.113.7"); ok {
		t.Error("a connection under way was closed for another")
	}
	s.leave(mine[0])
	if _, ok := open("203.0.113.7"); !ok {
		t.Error("who has left still counts")
	}
}
