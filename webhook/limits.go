package webhook

import (
	"bytes"
	"sync"
	"time"

	"till"
	"till/store"
)

// A client chooses an endpoint's address, and its owner is not asked. So that no
// host is flooded, every post passes limiters: those of its host, over all clients,
// and those of its client, over all hosts. The limiters are in memory, so the rates
// are per instance.
const (
	// ProvenAfter is how many times an endpoint answers 2xx before it is sent
	// more than one event at a time. It starts anew with every change of its address.
	ProvenAfter = 5

	unprovenRate       = 20  // posts a second to one host's endpoints that are not proven, or that fail
	unprovenConcurrent = 16  // of them at once
	requestedRate      = 50  // posts a second that somebody asked for: to one host, and of one client
	extraRate          = 300 // posts a second to the further endpoints that a client has at one host: what a client makes that uses all of its rate
	burst              = 10  // of those that have a rate, how many may come at once

	maxLimiterSets   = 10_000      // hosts, and clients, that are remembered while nothing is sent to them
	firstEndpointFor = time.Minute // after which another endpoint of a client may be its first at a host
)

// gate lets posts through, so many a second and so many at once. Whoever does
// not get through waits in a queue.
type limiter struct {
	mu            sync.Mutex
	interval      time.Duration // between two, apart from a burst; 0: no rate
	maxConcurrent int           // at once; 0: any number

	next  time.Time // when the one after the last would be due, were there no burst
	busy  int
	queue []chan struct{} // closed to let through
	timer *time.Timer
}

// acquire waits until it is let through. It reports false if stop is closed
// before; else leave is to be called.
func (g *limiter) acquire(stop <-chan struct{}) bool {
	g.mu.Lock()
	if now := time.Now(); len(g.queue) == 0 && g.wait(now) == 0 {
		g.take(now)
		g.mu.Unlock()
		return true
	}
	turn := make(chan struct{})
	g.queue = append(g.queue, turn)
	g.grant()
	g.mu.Unlock()
	select {
	case <-turn:
		return true
	case <-stop:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, other := range g.queue {
		if other == turn {
			g.queue = append(g.queue[:i], g.queue[i+1:]...)
			return false
		}
	}
	return true // let through at the last moment
}

func (g *limiter) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	g.grant()
}

// full is what wait returns if only a leave can make room.
const full = time.Duration(-1)

// wait returns how long it is until one more is let through.
func (g *limiter) wait(now time.Time) time.Duration {
	if g.maxConcurrent > 0 && g.busy >= g.maxConcurrent {
		return full
	}
	return max(0, g.next.Add(-(burst-1)*g.interval).Sub(now))
}

func (g *limiter) take(now time.Time) {
	g.busy++
	if g.next.Before(now) {
		g.next = now
	}
	g.next = g.next.Add(g.interval)
}

// grant lets through whoever may, first come, first served. The caller holds
// the lock.
func (g *limiter) grant() {
	for len(g.queue) > 0 {
		now := time.Now()
		wait := g.wait(now)
		if wait == full {
			return
		}
		if wait > 0 {
			if g.timer == nil {
				g.timer = time.AfterFunc(wait, func() {
					g.mu.Lock()
					defer g.mu.Unlock()
					g.timer = nil
					g.grant()
				})
			}
			return
		}
		g.take(now)
		close(g.queue[0])
		g.queue = g.queue[1:]
	}
}

// idle reports whether the gate remembers nothing that matters.
func (g *limiter) idle(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.busy == 0 && len(g.queue) == 0 && !g.next.After(now)
}

// raise lets one more through at once, up to a limit.
func (g *limiter) raise(limit int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.maxConcurrent < limit {
		g.maxConcurrent++
		g.grant()
	}
}

// lower lets half as many through at once, down to a limit.
func (g *limiter) lower(limit int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.maxConcurrent = max(g.maxConcurrent/2, min(g.maxConcurrent, limit))
}

// place is a host that is posted to, or a client in whose name it is done.
type limiterSet struct {
	unproven, proven, requested, extra limiter
	users                              int // windows on their way
}

// lead is the first endpoint that a client has at a host. It has no rate; the
// others share one, so that an event is not multiplied by their number.
type firstEndpoint struct {
	id   till.ID
	seen time.Time
}

type clientHost struct {
	client till.ID
	host   string
}

func (p *limiterSet) idle(now time.Time) bool {
	return p.users == 0 && p.unproven.idle(now) && p.proven.idle(now) && p.requested.idle(now) && p.extra.idle(now)
}

// pacer has the gates of all hosts and clients.
type limiterRegistry struct {
	minPerHost, maxPerHost int     // posts at once to a host whose endpoints are proven
	maxPerClient           int     // posts at once of a client
	unproven               limiter // of all hosts

	mu             sync.Mutex
	hosts          map[string]*limiterSet
	clients        map[till.ID]*limiterSet
	firstEndpoints map[clientHost]firstEndpoint
}

// newLimiterRegistry returns the gates for so many posts at once in all: half of them at
// most go to one host, half to endpoints that are not proven, a quarter are of one
// client. A single endpoint is never kept below its own limit.
func newLimiterRegistry(posts, perEndpoint int) *limiterRegistry {
	p := &limiterRegistry{minPerHost: perEndpoint, maxPerHost: max(posts/2, perEndpoint), maxPerClient: max(posts/4, perEndpoint),
		hosts: make(map[string]*limiterSet), clients: make(map[till.ID]*limiterSet), firstEndpoints: make(map[clientHost]firstEndpoint)}
	p.unproven.maxConcurrent = max(posts/2, 1)
	return p
}

// pass is a window's way through the gates.
type admission struct {
	registry      *limiterRegistry
	host, client  *limiterSet
	proven, extra bool
}

// admit returns the way of a window to an endpoint at a host.
func (p *limiterRegistry) admit(e *store.Endpoint, host string) *admission {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &admission{registry: p, proven: proven(e), extra: !p.isFirst(clientHost{e.ClientID, host}, e.ID)}
	if w.host = p.hosts[host]; w.host == nil {
		evictIdle(p.hosts)
		w.host = &limiterSet{unproven: limiter{interval: time.Second / unprovenRate, maxConcurrent: unprovenConcurrent}, proven: limiter{maxConcurrent: p.minPerHost}, requested: limiter{interval: time.Second / requestedRate}}
		p.hosts[host] = w.host
	}
	if w.client = p.clients[e.ClientID]; w.client == nil {
		evictIdle(p.clients)
		w.client = &limiterSet{proven: limiter{maxConcurrent: p.maxPerClient}, requested: limiter{interval: time.Second / requestedRate}, extra: limiter{interval: time.Second / extraRate}}
		p.clients[e.ClientID] = w.client
	}
	w.host.users++
	w.client.users++
	return w
}

// isFirst reports whether an endpoint is the first of its client at a host. The
// caller holds the lock.
func (p *limiterRegistry) isFirst(of clientHost, id till.ID) bool {
	now := time.Now()
	l, known := p.firstEndpoints[of]
	if known && bytes.Compare(l.id[:], id[:]) < 0 && now.Sub(l.seen) < firstEndpointFor {
		return false
	}
	if len(p.firstEndpoints) >= maxLimiterSets {
		clear(p.firstEndpoints)
	}
	p.firstEndpoints[of] = firstEndpoint{id, now}
	return true
}

// evictIdle makes room for one more place. Those that are in use are no more than
// there are endpoints worked on.
func evictIdle[K comparable](places map[K]*limiterSet) {
	if len(places) < maxLimiterSets {
		return
	}
	now := time.Now()
	for k, p := range places {
		if p.idle(now) {
			delete(places, k)
		}
	}
}

// done is called when nothing of the window is on its way any more.
func (w *admission) done() {
	w.registry.mu.Lock()
	defer w.registry.mu.Unlock()
	w.host.users--
	w.client.users--
}

// limiters returns what a post has to pass: first what only counts, then what is
// held while it is under way, the host's before the client's, so that a host
// that is full keeps nobody from another.
func (w *admission) limiters(asked bool) []*limiter {
	gates := make([]*limiter, 0, 5)
	switch {
	case asked:
		gates = append(gates, &w.client.requested, &w.host.requested)
	case w.extra:
		gates = append(gates, &w.client.extra)
	}
	if w.proven {
		return append(gates, &w.host.proven, &w.client.proven)
	}
	return append(gates, &w.host.unproven, &w.client.proven, &w.registry.unproven)
}

// acquireAll waits until all gates have let one through. It reports false if stop
// is closed before; else releaseAll is to be called.
func acquireAll(gates []*limiter, stop <-chan struct{}) bool {
	for i, g := range gates {
		if !g.acquire(stop) {
			releaseAll(gates[:i])
			return false
		}
	}
	return true
}

func releaseAll(gates []*limiter) {
	for _, g := range gates {
		g.release()
	}
}

// adapt lets the host have more at once after it took one, and fewer after it
// did not. Endpoints that are not proven teach nothing: at a host that many
// share, a client that only fails slows nobody else.
func (w *admission) adapt(o *attemptOutcome) {
	switch {
	case !w.proven || o.internal:
	case o.response.Delivered():
		w.host.proven.raise(w.registry.maxPerHost)
	default:
		w.host.proven.lower(w.registry.minPerHost)
	}
}

// proven reports whether an endpoint may be sent several events at once.
func proven(e *store.Endpoint) bool {
	return e.Answered >= ProvenAfter && e.Failures < till.FailingAfter
}

// maxParallel returns how many posts to an endpoint may be under way.
func (d *Dispatcher) maxParallel(e *store.Endpoint) int {
	if proven(e) {
		return d.c.PerEndpoint
	}
	return 1
}

// freeSlots returns how many more attempts may begin.
func (d *Dispatcher) freeSlots(r *endpointWorker, e *store.Endpoint) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	r.parallel = d.maxParallel(e)
	return r.parallel - r.lateAttempts
}
