package hint

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"till"
)

// Hub notifies subscribers of commits.
type Hub struct {
	log      *slog.Logger
	notifier *Notifier // to other instances; nil if there are none or NOTIFY is off

	// watch notifies of other processes' commits until ctx ends, or returns when the Hub is
	// idle; nil if that is not possible.
	watch func(ctx context.Context)
	live  atomic.Bool // other processes' hints arrive

	mu            sync.Mutex
	byClient      map[till.ID]map[*Subscription]bool
	toAll         map[*Subscription]bool
	subscriptions int
	watching      bool
	closed        bool

	ctx     context.Context // ends with the watch
	cancel  context.CancelFunc
	watcher sync.WaitGroup
}

// NewHub returns a Hub for this process's commits only.
func NewHub(log *slog.Logger) *Hub {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	h := &Hub{log: log, byClient: make(map[till.ID]map[*Subscription]bool), toAll: make(map[*Subscription]bool)}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// Live reports whether other processes' hints arrive.
func (h *Hub) Live() bool { return h.live.Load() }

// Subscribe returns a Subscription to one client's log. It gets a hint for each commit
// after Subscribe returns, so subscribe first and then read.
func (h *Hub) Subscribe(client till.ID) *Subscription { return h.add(&Subscription{client: client}) }

// SubscribeAll returns a Subscription to every client's log.
func (h *Hub) SubscribeAll() *Subscription {
	return h.add(&Subscription{clients: make(map[till.ID]bool)})
}

// SubscribeRemote is SubscribeAll for commits of other processes.
func (h *Hub) SubscribeRemote() *Subscription {
	return h.add(&Subscription{remote: true, clients: make(map[till.ID]bool)})
}

// add adds a Subscription. The first one starts the watch.
func (h *Hub) add(s *Subscription) *Subscription {
	s.hub, s.c = h, make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.clients != nil {
		h.toAll[s] = true
	} else {
		if h.byClient[s.client] == nil {
			h.byClient[s.client] = make(map[*Subscription]bool, 1)
		}
		h.byClient[s.client][s] = true
	}
	h.subscriptions++
	if h.watch != nil && !h.watching && !h.closed {
		h.watching = true
		h.watcher.Go(func() { h.watch(h.ctx) })
	}
	return s
}

func (h *Hub) remove(s *Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.clients != nil && h.toAll[s] {
		delete(h.toAll, s)
		h.subscriptions--
	}
	if h.byClient[s.client][s] {
		delete(h.byClient[s.client], s)
		h.subscriptions--
		if len(h.byClient[s.client]) == 0 {
			delete(h.byClient, s.client)
		}
	}
}

// idle reports whether there are no subscriptions, and notes that the watch ends then.
func (h *Hub) idle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subscriptions > 0 {
		return false
	}
	h.watching = false
	h.live.Store(false)
	return true
}

// notify notifies the subscribers to the clients' logs, nil for all. remote says that
// another process committed.
func (h *Hub) notify(clients []till.ID, remote bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.toAll {
		if remote || !s.remote {
			s.notify(clients)
		}
	}
	for _, id := range clients {
		for s := range h.byClient[id] {
			s.notify(clients)
		}
	}
	if clients != nil {
		return
	}
	for _, all := range h.byClient {
		for s := range all {
			s.notify(nil)
		}
	}
}

// Committed notifies of our commit that made the clients' logs grow, also if its outcome is
// unknown.
func (h *Hub) Committed(clients []till.ID) {
	if len(clients) == 0 {
		return
	}
	h.notify(clients, false)
	if h.notifier != nil {
		h.notifier.put(clients)
	}
}

// Prepare opens the connection to other instances while a commit is still under way. A
// command has none yet, and opening one takes longer than sending a hint.
func (h *Hub) Prepare() {
	if h.notifier != nil {
		h.notifier.warm()
	}
}

// StopWatching ends the watch: there are no more hints from other processes.
func (h *Hub) StopWatching() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.cancel()
	h.watcher.Wait()
}

// Flush sends the hints that are still queued. Call it after the last commit.
func (h *Hub) Flush() {
	if h.notifier != nil {
		h.notifier.close()
	}
}
