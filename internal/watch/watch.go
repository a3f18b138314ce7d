package watch

import (
	"context"
	"sync"
	"time"

	"till"
	"till/store"
)

// Watches are those who wait. They are safe for concurrent use.
type Watches struct {
	store    *store.Store
	stopping <-chan struct{}

	mu       sync.Mutex
	byClient map[till.ID]*ofClient
}

// ofClient is what is waited for of a client.
type ofClient struct {
	waiting map[till.ID]map[chan struct{}]bool // by subject
	empty   chan struct{}                      // closed when nobody waits any more
}

const (
	maxEvents   = 200              // that are read at once
	readTimeout = 10 * time.Second // of a read, with the wait for a connection
)

// New returns watches that end when stopping is closed; nil: never.
func New(s *store.Store, stopping <-chan struct{}) *Watches {
	return &Watches{store: s, stopping: stopping, byClient: make(map[till.ID]*ofClient)}
}

// Watch returns a channel that is notified of each change of a subject after Watch
// has returned, and at times of none. stop ends it.
func (ws *Watches) Watch(ref store.Ref) (changed <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.byClient[ref.Client]
	if w == nil {
		w = &ofClient{waiting: make(map[till.ID]map[chan struct{}]bool), empty: make(chan struct{})}
		ws.byClient[ref.Client] = w
		go ws.follow(ref.Client, w)
	}
	if w.waiting[ref.ID] == nil {
		w.waiting[ref.ID] = make(map[chan struct{}]bool, 1)
	}
	w.waiting[ref.ID][c] = true
	return c, func() {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		delete(w.waiting[ref.ID], c)
		if len(w.waiting[ref.ID]) == 0 {
			delete(w.waiting, ref.ID)
		}
		if len(w.waiting) == 0 && ws.byClient[ref.Client] == w {
			delete(ws.byClient, ref.Client)
			close(w.empty)
		}
	}
}

// follow reads a client's log from its end and notifies those who wait for the
// events' subjects, until nobody waits or the service stops. A hint that is lost
// costs time, not the news: the log is also read at intervals.
func (ws *Watches) follow(client till.ID, w *ofClient) {
	sub := ws.store.Subscribe(client)
	defer sub.Close()
	after, begun := int64(0), false
	for {
		if !begun {
			if after, begun = ws.end(client); begun {
				ws.tell(w, nil) // what happened before the end was known
			}
		} else {
			after = ws.read(client, w, after)
		}
		look := time.NewTimer(sub.MaxWait())
		select {
		case <-sub.C():
		case <-look.C:
		case <-w.empty:
			look.Stop()
			return
		case <-ws.stopping:
			look.Stop()
			return
		}
		look.Stop()
	}
}

// end returns the last sequence of a client's log.
func (ws *Watches) end(client till.ID) (last int64, ok bool) {
	err := ws.view(func(ctx context.Context, tx *store.Tx) (err error) {
		last, _, err = tx.LogEnd(ctx, client)
		return err
	})
	return last, err == nil
}

// read notifies of the events beyond a sequence and returns the last one. What
// cannot be read now is read at the next interval.
func (ws *Watches) read(client till.ID, w *ofClient, after int64) int64 {
	for {
		var events []*till.Event
		err := ws.view(func(ctx context.Context, tx *store.Tx) (err error) {
			events, err = tx.Events(ctx, client, after, maxEvents)
			return err
		})
		if err != nil || len(events) == 0 {
			return after
		}
		ws.tell(w, events)
		after = events[len(events)-1].Sequence
		if len(events) < maxEvents {
			return after
		}
	}
}

func (ws *Watches) view(f func(ctx context.Context, tx *store.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	return ws.store.View(ctx, func(tx *store.Tx) error { return f(ctx, tx) })
}

// tell wakes those who wait for the subjects of events; for nil, everybody.
func (ws *Watches) tell(w *ofClient, events []*till.Event) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	wake := func(waiting map[chan struct{}]bool) {
		for c := range waiting {
			select {
			case c <- struct{}{}:
			default: // a notification is pending already
			}
		}
	}
	if events == nil {
		for _, waiting := range w.waiting {
			wake(waiting)
		}
	}
	for _, e := range events {
		wake(w.waiting[e.SubjectID])
	}
}
