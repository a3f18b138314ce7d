package store

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"till"
)

// A hint says that a client's event log has grown, after the commit that made
// it grow. It saves waiting and nothing else: it may come late, twice, for
// nothing or never, so whoever waits for one also looks by itself, at the
// latest after Ear.Patience.

// How long a listener may trust in silence.
const (
	trusting = 5 * time.Second        // hints of other processes are seen to arrive
	doubting = 250 * time.Millisecond // they may not
)

// maxTaken is how many clients an Ear remembers between two Takes; beyond it,
// all of them may have changed.
const maxTaken = 1000

// Ear hears that event logs have grown. Close it.
type Ear struct {
	h      *hints
	client till.ID // whose log; zero: everybody's
	others bool    // hears only what other processes did
	c      chan struct{}

	mu      sync.Mutex
	clients map[till.ID]bool // since the last Take, where it hears everybody
	all     bool
}

// Listen returns an Ear for one client's log. Whatever is committed after it
// returns is heard, so listen first and read then.
func (s *Store) Listen(client till.ID) *Ear { return s.hints.add(&Ear{client: client}) }

// ListenAll returns an Ear for every client's log.
func (s *Store) ListenAll() *Ear { return s.hints.add(&Ear{clients: make(map[till.ID]bool)}) }

// ListenOthers is ListenAll for what other processes commit: whoever wrote
// through this Store knows already.
func (s *Store) ListenOthers() *Ear {
	return s.hints.add(&Ear{others: true, clients: make(map[till.ID]bool)})
}

// C returns a channel that holds one value while there are hints that nobody
// has heeded.
func (e *Ear) C() <-chan struct{} { return e.c }

// Take returns whose logs have grown since the last Take; all says that it
// may be anybody's. It is for an Ear that hears everybody.
func (e *Ear) Take() (clients []till.ID, all bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if all = e.all; !all {
		for id := range e.clients {
			clients = append(clients, id)
		}
	}
	clear(e.clients)
	e.all = false
	return clients, all
}

// Patience returns how long to wait for a hint before looking without one. It
// changes with what the Store sees of other processes' hints, which the Ear is
// told of: ask before each wait.
func (e *Ear) Patience() time.Duration {
	if e.h.live.Load() {
		return trusting
	}
	return doubting
}

// Close ends the listening. C is never closed.
func (e *Ear) Close() { e.h.remove(e) }

// hear takes note of clients, nil for all, and never blocks.
func (e *Ear) hear(clients []till.ID) {
	if e.clients != nil {
		e.mu.Lock()
		e.all = e.all || clients == nil || len(e.clients)+len(clients) > maxTaken
		for _, id := range clients {
			if !e.all {
				e.clients[id] = true
			}
		}
		e.mu.Unlock()
	}
	select {
	case e.c <- struct{}{}:
	default:
	}
}

// hints brings word of commits to whoever listens.
type hints struct {
	log  *slog.Logger
	post *post // to other instances; nil where there are none or NOTIFY is off

	// watch brings word of other processes' commits until ctx ends, or returns
	// when nobody listens any more; nil where there is no way.
	watch func(ctx context.Context)
	live  atomic.Bool // what others commit is heard

	mu       sync.Mutex
	narrow   map[till.ID]map[*Ear]bool
	wide     map[*Ear]bool
	ears     int
	watching bool
	closed   bool

	ctx     context.Context // ends with the watching
	cancel  context.CancelFunc
	watcher sync.WaitGroup
}

func newHints(log *slog.Logger) *hints {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	h := &hints{log: log, narrow: make(map[till.ID]map[*Ear]bool), wide: make(map[*Ear]bool)}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// add takes an Ear in. The first one starts the watch.
func (h *hints) add(e *Ear) *Ear {
	e.h, e.c = h, make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.clients != nil {
		h.wide[e] = true
	} else {
		if h.narrow[e.client] == nil {
			h.narrow[e.client] = make(map[*Ear]bool, 1)
		}
		h.narrow[e.client][e] = true
	}
	h.ears++
	if h.watch != nil && !h.watching && !h.closed {
		h.watching = true
		h.watcher.Go(func() { h.watch(h.ctx) })
	}
	return e
}

func (h *hints) remove(e *Ear) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.clients != nil && h.wide[e] {
		delete(h.wide, e)
		h.ears--
	}
	if h.narrow[e.client][e] {
		delete(h.narrow[e.client], e)
		h.ears--
		if len(h.narrow[e.client]) == 0 {
			delete(h.narrow, e.client)
		}
	}
}

// unheard reports that nobody listens, and that the watch has ended then.
func (h *hints) unheard() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ears > 0 {
		return false
	}
	h.watching = false
	h.live.Store(false)
	return true
}

// tell brings word of the logs of clients, nil for all; foreign says that
// another process made them grow.
func (h *hints) tell(clients []till.ID, foreign bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for e := range h.wide {
		if foreign || !e.others {
			e.hear(clients)
		}
	}
	for _, id := range clients {
		for e := range h.narrow[id] {
			e.hear(clients)
		}
	}
	if clients != nil {
		return
	}
	for _, ears := range h.narrow {
		for e := range ears {
			e.hear(nil)
		}
	}
}

// committed tells of a commit of ours, also of one whose outcome is unknown.
func (h *hints) committed(clients []till.ID) {
	if len(clients) == 0 {
		return
	}
	h.tell(clients, false)
	if h.post != nil {
		h.post.put(clients)
	}
}

// deafen ends the watch; nothing is told from outside any more.
func (h *hints) deafen() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.cancel()
	h.watcher.Wait()
}

// flush sends what is still to be told to others. Nothing is committed any
// more.
func (h *hints) flush() {
	if h.post != nil {
		h.post.close()
	}
}

// beat is how often a SQLite file is looked at while somebody listens.
const beat = 20 * time.Millisecond

// watchFile notices what other processes commit to the file. version changes with
// their commits only, so our own, which are told of by name, wake nobody twice.
func (h *hints) watchFile(ctx context.Context, version func(context.Context) (int64, error)) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	last := int64(-1)
	for !h.unheard() {
		now, err := version(ctx)
		// The first look tells too: what was written since the listening began
		// is in it already.
		if err == nil && now != last {
			last = now
			h.tell(nil, true)
			h.live.Store(true)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
