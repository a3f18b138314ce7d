package store

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// How long PostgreSQL may take. The server gives up a statement first; what
// stays silent beyond that is a network that lost it or a machine that stands
// still, and whoever waits is told that the database is away.
const (
	statementTimeout = 10 * time.Second
	silence          = statementTimeout + 2*time.Second
)

// patient wraps a dialer: its connections fail when the other side is silent
// for too long in the middle of a call. An idle connection is not read from.
func patient(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &patientConn{Conn: conn}, nil
	}
}

type patientConn struct {
	net.Conn
	endless atomic.Bool // a migration takes as long as it takes
}

// Read implements net.Conn.
func (c *patientConn) Read(b []byte) (int, error) {
	if !c.endless.Load() {
		c.Conn.SetReadDeadline(time.Now().Add(silence))
	}
	return c.Conn.Read(b)
}

// Write implements net.Conn.
func (c *patientConn) Write(b []byte) (int, error) {
	c.Conn.SetWriteDeadline(time.Now().Add(silence))
	return c.Conn.Write(b)
}
