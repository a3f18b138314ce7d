package account

import (
	"context"
	"sync"

	"till"
)

// maxKnownReads is how many keys that have opened a session here are read from the
// database at once.
const maxKnownReads = 2

// readSlots limits the concurrent reads of known keys: one per client, so that a client
// that floods delays only itself. The API limits the reads of all other keys, and
// known keys do not wait for those.
type readSlots struct {
	known chan struct{}

	mu      sync.Mutex
	clients map[till.ID]*clientSlot
}

// clientSlot is one client's slot: only one of its keys is read at a time.
type clientSlot struct {
	free  chan struct{}
	users int // its holder and the callers that wait for it
}

func (l *readSlots) init() {
	l.known = make(chan struct{}, maxKnownReads)
	l.clients = make(map[till.ID]*clientSlot)
}

// errBusy says that no slot became free in time. The database may be healthy.
var errBusy = &till.Error{Code: till.CodeServiceUnavailable, Detail: "Too many keys wait to be read."}

// acquire waits for the client's slot, which leave gives back. It returns errBusy
// when ctx ends. The zero client, of an unknown key, does not wait.
func (l *readSlots) acquire(ctx context.Context, client till.ID) (leave func(), err error) {
	if client.IsZero() {
		return func() {}, nil
	}
	t := l.addUser(client)
	if !acquireSlot(ctx, t.free) {
		l.removeUser(client, t)
		return nil, errBusy
	}
	if !acquireSlot(ctx, l.known) {
		<-t.free
		l.removeUser(client, t)
		return nil, errBusy
	}
	return func() {
		<-l.known
		<-t.free
		l.removeUser(client, t)
	}, nil
}

func acquireSlot(ctx context.Context, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (l *readSlots) addUser(client till.ID) *clientSlot {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.clients[client]
	if t == nil {
		t = &clientSlot{free: make(chan struct{}, 1)}
		l.clients[client] = t
	}
	t.users++
	return t
}

func (l *readSlots) removeUser(client till.ID, t *clientSlot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(l.clients, client)
	}
}
