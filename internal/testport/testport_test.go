package testport

import (
	"net"
	"testing"
)

// A port whose client has closed first cannot be listened on for a minute: it must not be
// one of those that clients are given.
func TestNoConnectionTakesThePort(t *testing.T) {
	t.Parallel()
	for range 200 {
		address, err := Free()
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if given := c.LocalAddr().(*net.TCPAddr).Port; given >= first && given < end {
			t.Errorf("a connection was given port %d", given)
		}
		c.Close()
		l.Close()
	}
}
