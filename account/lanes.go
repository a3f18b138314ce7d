package account

import (
	"context"
	"sync"

	"till"
)

// How many keys are read at once.
const (
	maxReads     = 2 // of keys that are known here, and of one client one
	maxStrangers = 2 // of all other keys
)

// lanes are the ways to the database for who has to be looked up: one for
// keys that are known here, in which clients take turns, and one for others.
// Whoever tries out keys waits behind his like, and so does a client that has
// its key read again and again.
type lanes struct {
	known, strangers chan struct{}

	mu      sync.Mutex
	clients map[till.ID]*turn
}

// turn is that of one client: only one of its keys is read at a time.
type turn struct {
	free  chan struct{}
	users int // who has it, and who waits for it
}

func (l *lanes) init() {
	l.known, l.strangers = make(chan struct{}, maxReads), make(chan struct{}, maxStrangers)
	l.clients = make(map[till.ID]*turn)
}

// errBusy is for a key whose turn did not come in time. The database has
// nothing to do with it.
var errBusy = &till.Error{Code: till.CodeServiceUnavailable, Detail: "Too many keys wait to be read."}

// enter waits for a place, which leave gives back: that of a client, or that
// of strangers if the client is zero. It returns errBusy when ctx ends.
func (l *lanes) enter(ctx context.Context, client till.ID) (leave func(), err error) {
	if client.IsZero() {
		if !take(ctx, l.strangers) {
			return nil, errBusy
		}
		return func() { <-l.strangers }, nil
	}
	t := l.join(client)
	if !take(ctx, t.free) {
		l.part(client, t)
		return nil, errBusy
	}
	if !take(ctx, l.known) {
		<-t.free
		l.part(client, t)
		return nil, errBusy
	}
	return func() {
		<-l.known
		<-t.free
		l.part(client, t)
	}, nil
}

func take(ctx context.Context, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (l *lanes) join(client till.ID) *turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.clients[client]
	if t == nil {
		t = &turn{free: make(chan struct{}, 1)}
		l.clients[client] = t
	}
	t.users++
	return t
}

func (l *lanes) part(client till.ID, t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(l.clients, client)
	}
}
