package webhook

import (
	"bytes"
	"sync"
	"time"

	"till"
	"till/store/webhooks"
)

// A client chooses an endpoint's address, and the host's owner is not asked. So every post
// passes limiters, to protect the host: those of its host, for all clients, and those of
// its client, for all hosts. The limiters are in memory, so the rates are per instance.
const (
	// provenAfter is how many times an endpoint answers 2xx before it is sent more than one
	// event at a time. A change of its address starts the count again.
	provenAfter = 5

	unprovenRate       = 20  // posts per second to one host's endpoints that are unproven or failing
	unprovenConcurrent = 16  // of those, at once
	requestedRate      = 50  // requested posts per second, to one host and of one client
	extraRate          = 300 // posts per second to a client's second and further endpoints at one host: as many as a client can cause at its full rate
	burst              = 10  // posts that a limiter with a rate admits at once

	maxLimiterSets   = 10_000      // hosts, and clients, that are kept while nothing is sent to them
	firstEndpointFor = time.Minute // after this time without a post, another endpoint of the client may become its first at the host
)

// limiter admits so many posts per second and so many at once. The others wait in a queue.
type limiter struct {
	mu            sync.Mutex
	interval      time.Duration // between two posts, apart from a burst; 0: no rate
	maxConcurrent int           // 0: no limit

	next  time.Time // when the post after the last would be due without a burst
	busy  int
	queue []chan struct{} // closed to admit one
	timer *time.Timer
}

// acquire waits until the limiter admits a post. It reports false if stop is closed first;
// otherwise the caller must call release.
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
	return true // admitted at the last moment
}

func (g *limiter) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	g.grant()
}

// full is what wait returns if only a release makes room.
const full = time.Duration(-1)

// wait returns how long it is until the limiter admits one more.
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

// grant admits those who may pass, first come, first served. The caller holds the lock.
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

// idle reports whether the limiter can be dropped without effect.
func (g *limiter) idle(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.busy == 0 && len(g.queue) == 0 && !g.next.After(now)
}

// raise allows one more at once, up to a limit.
func (g *limiter) raise(limit int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.maxConcurrent < limit {
		g.maxConcurrent++
		g.grant()
	}
}

// lower halves how many are allowed at once, down to a limit.
func (g *limiter) lower(limit int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.maxConcurrent = max(g.maxConcurrent/2, min(g.maxConcurrent, limit))
}

// limiterSet is the limiters of one host or of one client.
type limiterSet struct {
	unproven, proven, requested, extra limiter
	users                              int // chunks being sent
}

// firstEndpoint is a client's first endpoint at a host. It has no rate. The client's other
// endpoints at the host share one, so that their number does not multiply the posts.
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

// limiterRegistry holds the limiters of all hosts and clients.
type limiterRegistry struct {
	minPerHost, maxPerHost int     // posts at once to a host with proven endpoints
	maxPerClient           int     // posts at once of one client
	unproven               limiter // of all hosts

	mu             sync.Mutex
	hosts          map[string]*limiterSet
	clients        map[till.ID]*limiterSet
	firstEndpoints map[clientHost]firstEndpoint
}

// newLimiterRegistry returns the limiters for so many posts at once. At most half of them
// go to one host, half to unproven endpoints, and a quarter are of one client. One
// endpoint's own limit is always allowed.
func newLimiterRegistry(posts, perEndpoint int) *limiterRegistry {
	p := &limiterRegistry{minPerHost: perEndpoint, maxPerHost: max(posts/2, perEndpoint), maxPerClient: max(posts/4, perEndpoint),
		hosts: make(map[string]*limiterSet), clients: make(map[till.ID]*limiterSet), firstEndpoints: make(map[clientHost]firstEndpoint)}
	p.unproven.maxConcurrent = max(posts/2, 1)
	return p
}

// admission is the limiters that the posts of one chunk pass.
type admission struct {
	registry      *limiterRegistry
	host, client  *limiterSet
	proven, extra bool
}

// admit returns the admission of a chunk for an endpoint at a host.
func (p *limiterRegistry) admit(e *webhooks.Endpoint, host string) *admission {
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

// isFirst reports whether an endpoint is its client's first at a host. The caller holds the
// lock.
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

// evictIdle makes room for one more set. No more sets are in use than there are workers.
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

// done is called when no attempt of the chunk is under way any more.
func (w *admission) done() {
	w.registry.mu.Lock()
	defer w.registry.mu.Unlock()
	w.host.users--
	w.client.users--
}

// limiters returns what a post has to pass: first the rates, then the slots that it
// occupies while it is under way. The host's slot comes before the client's, so that a full
// host does not block the client's posts to other hosts.
func (w *admission) limiters(asked bool) []*limiter {
	all := make([]*limiter, 0, 5)
	switch {
	case asked:
		all = append(all, &w.client.requested, &w.host.requested)
	case w.extra:
		all = append(all, &w.client.extra)
	}
	if w.proven {
		return append(all, &w.host.proven, &w.client.proven)
	}
	return append(all, &w.host.unproven, &w.client.proven, &w.registry.unproven)
}

// acquireAll waits until all limiters admit a post. It reports false if stop is closed
// first; otherwise the caller must call releaseAll.
func acquireAll(all []*limiter, stop <-chan struct{}) bool {
	for i, g := range all {
		if !g.acquire(stop) {
			releaseAll(all[:i])
			return false
		}
	}
	return true
}

func releaseAll(all []*limiter) {
	for _, g := range all {
		g.release()
	}
}

// adapt allows the host more posts at once after a success, and fewer after a failure.
// Unproven endpoints do not count: at a shared host, one client's failures must not slow
// down others.
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
func proven(e *webhooks.Endpoint) bool {
	return e.Answered >= provenAfter && e.Failures < till.FailingAfter
}

// maxParallel returns how many posts to an endpoint may be under way.
func (d *Dispatcher) maxParallel(e *webhooks.Endpoint) int {
	if proven(e) {
		return d.c.PerEndpoint
	}
	return 1
}

// freeSlots returns how many more attempts may begin.
func (d *Dispatcher) freeSlots(r *endpointWorker, e *webhooks.Endpoint) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	r.parallel = d.maxParallel(e)
	return r.parallel - r.lateAttempts
}
