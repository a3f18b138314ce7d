package store

import (
	"sync"
	"time"
)

// priority says who goes first at the writers.
type priority int

const (
	first  priority = iota // a request is waiting for it
	behind                 // the engine's batches
)

// patience is how long work from behind waits before it goes first once, so
// that a flood of requests slows the engine down but never stops it.
const patience = 50 * time.Millisecond

// gate lets so many in at once, with two queues before it.
type gate struct {
	mu     sync.Mutex
	size   int // 0 means 1
	inside int
	queues [2][]waiter
}

type waiter struct {
	ready chan struct{}
	since time.Time
}

func (g *gate) lock(p priority) {
	g.mu.Lock()
	if g.inside < max(1, g.size) {
		g.inside++
		g.mu.Unlock()
		return
	}
	w := waiter{ready: make(chan struct{}), since: time.Now()}
	g.queues[p] = append(g.queues[p], w)
	g.mu.Unlock()
	<-w.ready
}

func (g *gate) unlock() {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := first
	if q := g.queues[behind]; len(q) > 0 && (len(g.queues[first]) == 0 || time.Since(q[0].since) > patience) {
		p = behind
	}
	if len(g.queues[p]) == 0 {
		g.inside--
		return
	}
	w := g.queues[p][0]
	g.queues[p] = g.queues[p][1:]
	close(w.ready)
}
