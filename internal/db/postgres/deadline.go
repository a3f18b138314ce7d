package postgres

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"till/internal/system"
)

// How long PostgreSQL may take. The server ends a statement first. A server that
// sends nothing beyond that is lost to the network, and is unavailable.
const (
	statementTimeout = 10 * time.Second
	readTimeout      = statementTimeout + 2*time.Second
)

// dialer ends a connection to a server that has vanished, with its power or its
// network, after some ten seconds. The kernel's default is a quarter of an hour.
var dialer = net.Dialer{
	KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 4 * time.Second, Interval: 2 * time.Second, Count: 3},
	Control: func(_, _ string, c syscall.RawConn) error {
		return system.LimitSilence(c, 10*time.Second)
	},
}

// withDeadline wraps a dialer. Its connections fail if the server sends nothing
// for readTimeout in the middle of a call. An idle connection is not read from.
func withDeadline(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &deadlineConn{Conn: conn}, nil
	}
}

type deadlineConn struct {
	net.Conn
	unlimited atomic.Bool
}

// Read implements net.Conn.
func (c *deadlineConn) Read(b []byte) (int, error) {
	if !c.unlimited.Load() {
		c.Conn.SetReadDeadline(time.Now().Add(readTimeout))
	}
	return c.Conn.Read(b)
}

// Write implements net.Conn.
func (c *deadlineConn) Write(b []byte) (int, error) {
	c.Conn.SetWriteDeadline(time.Now().Add(readTimeout))
	return c.Conn.Write(b)
}

// withoutDeadline lets a server be silent, until the function that it returns is
// called.
func withoutDeadline(conn *pgx.Conn) (end func()) {
	c, ok := conn.PgConn().Conn().(*deadlineConn)
	if !ok {
		return func() {}
	}
	c.unlimited.Store(true)
	c.SetReadDeadline(time.Time{})
	return func() { c.unlimited.Store(false) }
}
