package account

import (
	"context"

	"till"
	"till/internal/limit"
)

// maxKnownReads is how many keys that have opened a session here are read from the
// database at once.
const maxKnownReads = 2

// maxWaiting is how many calls of one client wait for its slot: more than an instance has.
const maxWaiting = 1 << 30

// readSlots limits the concurrent reads of known keys: one per client, so that a client
// that floods delays only itself. The API limits the reads of all other keys, and
// known keys do not wait for those.
type readSlots struct {
	known   chan struct{}
	clients *limit.Slots[till.ID]
}

func (l *readSlots) init() {
	l.known = make(chan struct{}, maxKnownReads)
	l.clients = limit.NewSlots[till.ID](1, maxWaiting, 0)
}

// errBusy says that no slot became free in time. The database may be healthy.
var errBusy = &till.Error{Code: till.CodeServiceUnavailable, Detail: "Too many keys wait to be read."}

// acquire waits for the client's slot, which leave gives back. It returns errBusy
// when ctx ends. The zero client, of an unknown key, does not wait.
func (l *readSlots) acquire(ctx context.Context, client till.ID) (leave func(), err error) {
	if client.IsZero() {
		return func() {}, nil
	}
	leaveClient, ok := l.clients.Enter(ctx, client)
	if !ok {
		return nil, errBusy
	}
	select {
	case l.known <- struct{}{}:
	case <-ctx.Done():
		leaveClient()
		return nil, errBusy
	}
	return func() {
		<-l.known
		leaveClient()
	}, nil
}
