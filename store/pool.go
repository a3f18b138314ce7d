package store

import (
	"context"
	"sync"
)

// pool holds the sessions of one kind. Who was put back last is taken first:
// behind a session of PostgreSQL is a process with plans and caches of its own,
// and one that has just worked is much faster than one that has to warm up.
type pool struct {
	places chan struct{} // one for each session that may be taken

	mu   sync.Mutex
	idle []session
}

func newPool(size int) *pool {
	p := &pool{places: make(chan struct{}, size)}
	for range size {
		p.places <- struct{}{}
	}
	return p
}

// size is how many sessions there may be.
func (p *pool) size() int { return cap(p.places) }

// take waits for a place and returns the session to use, nil if one has to be
// made. Whoever takes puts back, also nil.
func (p *pool) take(ctx context.Context) (session, error) {
	select {
	case <-p.places:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil, nil
	}
	ses := p.idle[n-1]
	p.idle = p.idle[:n-1]
	return ses, nil
}

// put returns a session to the pool, or only its place if it is dead or was
// never made.
func (p *pool) put(ses session) {
	if ses != nil && ses.broken() {
		ses.close()
		ses = nil
	}
	if ses != nil {
		p.mu.Lock()
		p.idle = append(p.idle, ses)
		p.mu.Unlock()
	}
	p.places <- struct{}{}
}
