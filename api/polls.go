package api

import (
	"sync"

	"till"
)

// How many calls may wait for events at once on this instance. One reader per
// client is the way it is meant; a few more are for deployments that overlap.
const (
	maxPolls       = 2000 // then 503
	maxClientPolls = 20   // of one client, then 429
)

// polls counts the calls that wait for events.
type polls struct {
	stopping chan struct{} // closed when the service stops
	stop     func()

	mu       sync.Mutex
	all      int
	byClient map[till.ID]int
}

func newPolls() *polls {
	p := &polls{stopping: make(chan struct{}), byClient: make(map[till.ID]int)}
	p.stop = sync.OnceFunc(func() { close(p.stopping) })
	return p
}

// enter takes a place, which leave gives back. It returns CodeRateLimited if
// the client has too many, CodeServiceUnavailable if the instance has.
func (p *polls) enter(client till.ID) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.byClient[client] >= maxClientPolls:
		return nil, &till.Error{Code: till.CodeRateLimited}
	case p.all >= maxPolls:
		return nil, &till.Error{Code: till.CodeServiceUnavailable}
	}
	p.all++
	p.byClient[client]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all--
		if p.byClient[client]--; p.byClient[client] == 0 {
			delete(p.byClient, client)
		}
	}, nil
}
