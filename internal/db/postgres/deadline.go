package postgres

import (
	"cmp"
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
	silence   atomic.Int64 // replaces readTimeout unless it is 0
}

// Read implements net.Conn.
func (c *deadlineConn) Read(b []byte) (int, error) {
	if !c.unlimited.Load() {
		c.Conn.SetReadDeadline(time.Now().Add(cmp.Or(time.Duration(c.silence.Load()), readTimeout)))
	}
	return c.Conn.Read(b)
}

// Write implements net.Conn.
func (c *deadlineConn) Write(b []byte) (int, error) {
	c.Conn.SetWriteDeadline(time.Now().Add(readTimeout))
	return c.Conn.Write(b)
}

// deadlineOf returns the connection with deadlines below one that may be encrypted, nil if
// there is none.
func deadlineOf(conn net.Conn) *deadlineConn {
	if over, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = over.NetConn()
	}
	c, _ := conn.(*deadlineConn)
	return c
}

// limitSilence sets for how long a server may send nothing; 0 means readTimeout.
func limitSilence(conn *pgx.Conn, d time.Duration) {
	if c := deadlineOf(conn.PgConn().Conn()); c != nil {
		c.silence.Store(int64(d))
	}
}

// withoutDeadline lets a server be silent, until the function that it returns is
// called.
func withoutDeadline(conn *pgx.Conn) (end func()) {
	c := deadlineOf(conn.PgConn().Conn())
	if c == nil {
		return func() {}
	}
	c.unlimited.Store(true)
	c.SetReadDeadline(time.Time{})
	return func() { c.unlimited.Store(false) }
}
