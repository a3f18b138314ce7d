package sqlite

import (
	"context"
	"fmt"
	"sync"
	"time"

	"till/internal/db"
)

// pool holds up to a number of connections.
type pool struct {
	connect func() (*conn, error)
	slots   chan struct{} // one for each connection that is in use

	mu   sync.Mutex
	idle []*conn
}

func newPool(size int, connect func() (*conn, error)) *pool {
	return &pool{connect: connect, slots: make(chan struct{}, size)}
}

// acquire waits for a slot, and opens a connection if none is idle.
func (p *pool) acquire(ctx context.Context) (*conn, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", db.ErrBusy, ctx.Err())
	}
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	c, err := p.connect()
	if err != nil {
		<-p.slots
		return nil, err
	}
	c.pool = p
	return c, nil
}

func (p *pool) release(c *conn) {
	p.mu.Lock()
	p.idle = append(p.idle, c)
	p.mu.Unlock()
	<-p.slots
}

// count returns how many connections are in use, and how many are idle.
func (p *pool) count() (used, idle int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.slots), len(p.idle)
}

// closeTimeout is how long close waits for each connection that is in use.
const closeTimeout = 5 * time.Second

// close closes the connections. Nobody can acquire one afterwards.
func (p *pool) close() {
	for range cap(p.slots) {
		select {
		case p.slots <- struct{}{}:
		case <-time.After(closeTimeout):
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		c.h.close()
	}
	p.idle = nil
}
