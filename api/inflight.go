package api

import (
	"sync"

	"till"
)

// How many calls may wait for events at once on this instance. One reader per client is
// usual; a few more are for deployments that overlap.
const (
	maxPolls       = 2000 // then 503
	maxClientPolls = 20   // of one client, then 429
)

// How many reads of one payment or payout may wait at once on this instance. A
// client may have a few hundred customers at its checkout.
const (
	maxWaits       = 4000 // then 503
	maxClientWaits = 300  // of one client, then 429
)

// How many statements are exported at once on this instance. Each repeatedly takes a
// database connection for moments.
const (
	maxExports       = 16 // then 503
	maxClientExports = 2  // of one client, then 429
)

// inflight counts long calls: those that wait for events or for a status, or those that
// export.
type inflight struct {
	max, maxClient int

	stopping chan struct{} // closed when the service stops
	stop     func()

	mu       sync.Mutex
	all      int
	byClient map[till.ID]int
}

func newInflight(most, mostOfClient int) *inflight {
	p := &inflight{max: most, maxClient: mostOfClient, stopping: make(chan struct{}), byClient: make(map[till.ID]int)}
	p.stop = sync.OnceFunc(func() { close(p.stopping) })
	return p
}

// count returns how many places are taken.
func (p *inflight) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}

// enter takes a place, which leave gives back. It returns CodeRateLimited if the client has
// too many, CodeServiceUnavailable if the instance has.
func (p *inflight) enter(client till.ID) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.byClient[client] >= p.maxClient:
		return nil, &till.Error{Code: till.CodeRateLimited}
	case p.all >= p.max:
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
