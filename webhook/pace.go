package webhook

import (
	"bytes"
	"sync"
	"time"

	"till"
	"till/store"
)

// An endpoint is an address that a client names, and nobody asks whose it is.
// So that no host is flooded in a client's name, every post passes gates: those
// of its host, over all clients, and those of its client, over all hosts. They
// are in memory: several instances let through as many times as much.
const (
	// ProvenAfter is how many times an endpoint answers 2xx before it is sent
	// more than one event at a time. It starts anew with every change of its address.
	ProvenAfter = 5

	unprovenRate = 20  // posts a second to one host's endpoints that are not proven, or that fail
	unprovenPost = 16  // of them at once
	askedRate    = 50  // posts a second that somebody asked for: to one host, and of one client
	copyRate     = 300 // posts a second to the further endpoints that a client has at one host: what a client makes that uses all of its rate
	burst        = 10  // of those that have a rate, how many may come at once

	maxPlaces = 10_000      // hosts, and clients, that are remembered while nothing is sent to them
	leadTime  = time.Minute // after which another endpoint of a client may be its first at a host
)

// gate lets posts through, so many a second and so many at once. Whoever does
// not get through waits in a queue.
type gate struct {
	mu    sync.Mutex
	every time.Duration // between two, apart from a burst; 0: no rate
	most  int           // at once; 0: any number

	next  time.Time // when the one after the last would be due, were there no burst
	busy  int
	queue []chan struct{} // closed to let through
	timer *time.Timer
}

// enter waits until it is let through. It reports false if stop is closed
// before; else leave is to be called.
func (g *gate) enter(stop <-chan struct{}) bool {
	g.mu.Lock()
	if now := time.Now(); len(g.queue) == 0 && g.wait(now) == 0 {
		g.take(now)
		g.mu.Unlock()
		return true
	}
	turn := make(chan struct{})
	g.queue = append(g.queue, turn)
	g.admit()
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

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	g.admit()
}

// full is what wait returns if only a leave can make room.
const full = time.Duration(-1)

// wait returns how long it is until one more is let through.
func (g *gate) wait(now time.Time) time.Duration {
	if g.most > 0 && g.busy >= g.most {
		return full
	}
	return max(0, g.next.Add(-(burst-1)*g.every).Sub(now))
}

func (g *gate) take(now time.Time) {
	g.busy++
	if g.next.Before(now) {
		g.next = now
	}
	g.next = g.next.Add(g.every)
}

// admit lets through whoever may, first come, first served. The caller holds
// the lock.
func (g *gate) admit() {
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
					g.admit()
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
func (g *gate) idle(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.busy == 0 && len(g.queue) == 0 && !g.next.After(now)
}

// widen lets one more through at once, up to a limit.
func (g *gate) widen(limit int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.most < limit {
		g.most++
		g.admit()
	}
}

// narrow lets half as many through at once, down to a limit.
func (g *gate) narrow(limit int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.most = max(g.most/2, min(g.most, limit))
}

// place is a host that is posted to, or a client in whose name it is done.
type place struct {
	unproven, proven, asked, copies gate
	users                           int // windows on their way
}

// lead is the first endpoint that a client has at a host. It has no rate; the
// others share one, so that an event is not multiplied by their number.
type lead struct {
	id   till.ID
	seen time.Time
}

type leadOf struct {
	client till.ID
	host   string
}

func (p *place) idle(now time.Time) bool {
	return p.users == 0 && p.unproven.idle(now) && p.proven.idle(now) && p.asked.idle(now) && p.copies.idle(now)
}

// pacer has the gates of all hosts and clients.
type pacer struct {
	least, most int  // posts at once to a host whose endpoints are proven
	ofClient    int  // posts at once of a client
	unproven    gate // of all hosts

	mu      sync.Mutex
	hosts   map[string]*place
	clients map[till.ID]*place
	leads   map[leadOf]lead
}

// newPacer returns the gates for so many posts at once in all: half of them at
// most go to one host, half to endpoints that are not proven, a quarter are of one
// client. A single endpoint is never kept below its own limit.
func newPacer(posts, perEndpoint int) *pacer {
	p := &pacer{least: perEndpoint, most: max(posts/2, perEndpoint), ofClient: max(posts/4, perEndpoint),
		hosts: make(map[string]*place), clients: make(map[till.ID]*place), leads: make(map[leadOf]lead)}
	p.unproven.most = max(posts/2, 1)
	return p
}

// pass is a window's way through the gates.
type pass struct {
	p               *pacer
	host, client    *place
	proven, further bool
}

// begin returns the way of a window to an endpoint at a host.
func (p *pacer) begin(e *store.Endpoint, host string) *pass {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &pass{p: p, proven: proven(e), further: !p.leading(leadOf{e.ClientID, host}, e.ID)}
	if w.host = p.hosts[host]; w.host == nil {
		forget(p.hosts)
		w.host = &place{unproven: gate{every: time.Second / unprovenRate, most: unprovenPost}, proven: gate{most: p.least}, asked: gate{every: time.Second / askedRate}}
		p.hosts[host] = w.host
	}
	if w.client = p.clients[e.ClientID]; w.client == nil {
		forget(p.clients)
		w.client = &place{proven: gate{most: p.ofClient}, asked: gate{every: time.Second / askedRate}, copies: gate{every: time.Second / copyRate}}
		p.clients[e.ClientID] = w.client
	}
	w.host.users++
	w.client.users++
	return w
}

// leading reports whether an endpoint is the first of its client at a host. The
// caller holds the lock.
func (p *pacer) leading(of leadOf, id till.ID) bool {
	now := time.Now()
	l, known := p.leads[of]
	if known && bytes.Compare(l.id[:], id[:]) < 0 && now.Sub(l.seen) < leadTime {
		return false
	}
	if len(p.leads) >= maxPlaces {
		clear(p.leads)
	}
	p.leads[of] = lead{id, now}
	return true
}

// forget makes room for one more place. Those that are in use are no more than
// there are endpoints worked on.
func forget[K comparable](places map[K]*place) {
	if len(places) < maxPlaces {
		return
	}
	now := time.Now()
	for k, p := range places {
		if p.idle(now) {
			delete(places, k)
		}
	}
}

// end is called when nothing of the window is on its way any more.
func (w *pass) end() {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	w.host.users--
	w.client.users--
}

// gates returns what a post has to pass: first what only counts, then what is
// held while it is under way, the host's before the client's, so that a host
// that is full keeps nobody from another.
func (w *pass) gates(asked bool) []*gate {
	gates := make([]*gate, 0, 5)
	switch {
	case asked:
		gates = append(gates, &w.client.asked, &w.host.asked)
	case w.further:
		gates = append(gates, &w.client.copies)
	}
	if w.proven {
		return append(gates, &w.host.proven, &w.client.proven)
	}
	return append(gates, &w.host.unproven, &w.client.proven, &w.p.unproven)
}

// enterAll waits until all gates have let one through. It reports false if stop
// is closed before; else leaveAll is to be called.
func enterAll(gates []*gate, stop <-chan struct{}) bool {
	for i, g := range gates {
		if !g.enter(stop) {
			leaveAll(gates[:i])
			return false
		}
	}
	return true
}

func leaveAll(gates []*gate) {
	for _, g := range gates {
		g.leave()
	}
}

// learn lets the host have more at once after it took one, and fewer after it
// did not. Endpoints that are not proven teach nothing: at a host that many
// share, a client that only fails slows nobody else.
func (w *pass) learn(o *outcome) {
	switch {
	case !w.proven || o.ours:
	case o.answer.Delivered():
		w.host.proven.widen(w.p.most)
	default:
		w.host.proven.narrow(w.p.least)
	}
}

// proven reports whether an endpoint may be sent several events at once.
func proven(e *store.Endpoint) bool {
	return e.Answered >= ProvenAfter && e.Failures < till.FailingAfter
}

// width returns how many posts to an endpoint may be under way.
func (d *Deliverer) width(e *store.Endpoint) int {
	if proven(e) {
		return d.c.PerEndpoint
	}
	return 1
}

// free returns how many more attempts may begin.
func (d *Deliverer) free(r *runner, e *store.Endpoint) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	r.width = d.width(e)
	return r.width - r.late
}
