package account

import (
	"context"
	"sync"

	"till"
)

// How many keys are read at once.
const (
	maxKnownReads   = 2 // of keys that are known here, and of one client one
	maxUnknownReads = 2 // of all other keys
)

// lanes are the ways to the database for who has to be looked up: one for
// keys that are known here, in which clients take turns, and one for others.
// Whoever tries out keys waits behind his like, and so does a client that has
// its key read again and again.
type readSlots struct {
	known, unknown chan struct{}

	mu      sync.Mutex
	clients map[till.ID]*clientSlot
}

// turn is that of one client: only one of its keys is read at a time.
type clientSlot struct {
	free  chan struct{}
	users int // who has it, and who waits for it
}

func (l *readSlots) init() {
	l.known, l.unknown = make(chan struct{}, maxKnownReads), make(chan struct{}, maxUnknownReads)
	l.clients = make(map[till.ID]*clientSlot)
}

// errBusy is for a key whose turn did not come in time. The database has
// nothing to do with it.
var errBusy = &till.Error{Code: till.CodeServiceUnavailable, Detail: "Too many keys wait to be read."}

// acquire waits for a place, which leave gives back: that of a client, or that
// of strangers if the client is zero. It returns errBusy when ctx ends.
func (l *readSlots) acquire(ctx context.Context, client till.ID) (leave func(), err error) {
	if client.IsZero() {
		if !acquireSlot(ctx, l.unknown) {
			return nil, errBusy
		}
		return func() { <-l.unknown }, nil
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
