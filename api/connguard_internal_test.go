package api

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// answeredConn is a fakeConn that keeps what is written to it.
type answeredConn struct {
	fakeConn
	answer strings.Builder
}

func (c *answeredConn) Write(b []byte) (int, error)      { return c.answer.Write(b) }
func (c *answeredConn) SetWriteDeadline(time.Time) error { return nil }

// arriving is a listener at which connections arrive that a test has made.
type arriving chan net.Conn

func (l arriving) Accept() (net.Conn, error) {
	select {
	case c := <-l:
		return c, nil
	default: // all that came were refused
		return nil, net.ErrClosed
	}
}
func (l arriving) Close() error   { return nil }
func (l arriving) Addr() net.Addr { return nil }

// The guard of a listener counts the connections of each address: one too many gets an
// answer and is closed, and one that has ended makes room. Proxies that are named have no
// limit.
func TestTheGuardBoundsConnectionsOfOneAddress(t *testing.T) {
	t.Parallel()
	arrive := make(arriving, 8)
	l := Guard(arrive, netip.MustParsePrefix("10.0.0.0/8"))
	if g := l.(*guard); g.addresses.most != maxAddressConns || g.addresses.most > 1000 {
		t.Errorf("an address may have %d connections", g.addresses.most)
	}
	l.(*guard).addresses.most = 2
	from := func(address string) *answeredConn { return &answeredConn{fakeConn: fakeConn{from: address}} }
	accept := func(c *answeredConn) net.Conn {
		t.Helper()
		arrive <- c
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return accepted
	}
	hs := Server(http.NotFoundHandler())
	first := accept(from("203.0.113.7"))
	hs.ConnState(first, http.StateNew)
	accept(from("203.0.113.7"))
	refused, other := from("203.0.113.7"), from("203.0.113.8")
	arrive <- refused
	if got := accept(other); got.(*guardedConn).Conn != net.Conn(other) || !refused.closed || !strings.HasPrefix(refused.answer.String(), "HTTP/1.1 503 ") {
		t.Errorf("a third connection of an address is closed: %t, and is told %.40q", refused.closed, refused.answer.String())
	}
	for range 3 {
		accept(from("10.1.1.1"))
	}
	// One that is idle goes for a new one, and what net/http then closes does not count twice.
	hs.ConnState(first, http.StateIdle)
	accept(from("203.0.113.7"))
	if !first.(*guardedConn).Conn.(*answeredConn).closed {
		t.Error("an idle connection was not closed for a new one")
	}
	first.Close()
	busy := from("203.0.113.7")
	arrive <- busy
	next := from("203.0.113.9")
	if accept(next); !busy.closed {
		t.Error("two busy connections, and a third is let in")
	}
	one := accept(from("203.0.113.10"))
	accept(from("203.0.113.10"))
	one.Close()
	if c := from("203.0.113.10"); accept(c).(*guardedConn).Conn != net.Conn(c) {
		t.Error("a connection that has ended still counts")
	}
}
