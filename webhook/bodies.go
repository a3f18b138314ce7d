package webhook

import (
	"sync"

	"till"
	"till/store"
)

// body is an event as it is sent. It never changes, so endpoints share it.
type body struct {
	sequence int64
	made     till.Time // with client and sequence it is the event's id
	kind     till.EventKind
	subject  till.ID
	id       string // the webhook-id

	once  sync.Once
	event *store.EventRow
	json  []byte
}

func newBody(e *store.EventRow) *body {
	return &body{sequence: e.Sequence, made: e.CreatedAt, kind: e.Kind, subject: e.PaymentID, id: e.ID().String(), event: e}
}

// bytes renders the body on first use.
func (b *body) bytes() []byte {
	b.once.Do(func() {
		if b.event != nil {
			b.json = b.event.AppendJSON(make([]byte, 0, 1024))
			b.event = nil
		}
	})
	return b.json
}

// Bounds of the bodies that are kept for the other endpoints of a client.
const (
	maxKeptPerClient = 4096
	maxKept          = 32768 // of all clients; beyond it all are forgotten
)

// bodies keeps the newest events of clients, so that an event that goes to
// several endpoints is read and rendered once.
type bodies struct {
	mu      sync.Mutex
	clients map[till.ID][]*body // a gap-free stretch each
	kept    int
}

// after returns up to limit bodies right behind a sequence, as far as they
// are kept.
func (k *bodies) after(client till.ID, sequence int64, limit int) []*body {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := k.clients[client]
	if len(all) == 0 || sequence+1 < all[0].sequence || sequence >= all[len(all)-1].sequence {
		return nil
	}
	n := int(sequence + 1 - all[0].sequence)
	return all[n:min(len(all), n+limit)]
}

// forget drops what is kept of a client: the log in the database is another
// one than it was read from.
func (k *bodies) forget(client till.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept -= len(k.clients[client])
	delete(k.clients, client)
}

// keep takes in what was read behind a sequence. Older stretches than the one
// that is kept are not worth keeping.
func (k *bodies) keep(client till.ID, read []*body) {
	if len(read) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.clients == nil || k.kept > maxKept {
		k.clients, k.kept = make(map[till.ID][]*body), 0
	}
	all := k.clients[client]
	before := len(all)
	switch first := read[0].sequence; {
	case len(all) == 0 || first > all[len(all)-1].sequence+1:
		all = read
	case first == all[len(all)-1].sequence+1:
		all = append(all[:len(all):len(all)], read...) // who reads the old stretch may go on
	default:
		return
	}
	all = all[max(0, len(all)-maxKeptPerClient):]
	k.clients[client] = all
	k.kept += len(all) - before
}
