package postgres

import (
	"crypto/tls"
	"net"
	"testing"
)

// What may take long must find the limit below TLS, too.
func TestTheDeadlineIsFoundBelowTLS(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	limited := &deadlineConn{Conn: a}
	for name, conn := range map[string]net.Conn{"plain": limited, "TLS": tls.Client(limited, &tls.Config{ServerName: "db.example"})} {
		if deadlineOf(conn) != limited {
			t.Errorf("%s: it was not found", name)
		}
	}
	if deadlineOf(b) != nil {
		t.Error("a connection without a limit has one")
	}
}
