package webhook

import (
	"slices"
	"sync"

	"till"
	"till/store"
)

// body is an event as it is sent. It never changes, so endpoints share it.
type body struct {
	sequence  int64
	createdAt till.Time // with client and sequence it is the event's id
	kind      till.EventKind
	subject   till.ID
	id        string // the webhook-id
	weight    int64  // about how many bytes it takes, rendered or not

	once  sync.Once
	event *store.EventRow
	json  []byte
}

func newBody(e *store.EventRow) *body {
	return &body{sequence: e.Sequence, createdAt: e.CreatedAt, kind: e.Kind, subject: e.SubjectID, id: e.ID().String(), weight: int64(e.Weight()), event: e}
}

// bytes renders the body on first use.
func (b *body) bytes() []byte {
	b.once.Do(func() {
		if b.event != nil {
			b.json = b.event.AppendJSON(make([]byte, 0, b.weight))
			b.event = nil
		}
	})
	return b.json
}

// Bounds of the bodies that are kept for the other endpoints of a client.
const (
	maxCacheBytes       = 24 << 20 // bytes, of all clients; beyond it all are forgotten
	maxClientCacheBytes = 6 << 20  // of one, of which the newest are kept
)

// bodies keeps the newest events of clients, so that an event that goes to
// several endpoints is read and rendered once.
type bodyCache struct {
	mu      sync.Mutex
	clients map[till.ID]bodyRange
	bytes   int64 // bytes
}

// stretch is bodies without a gap, and what they weigh.
type bodyRange struct {
	all    []*body
	weight int64
}

// after returns up to limit bodies right behind a sequence, as far as they
// are kept, and no more than about so many bytes; but one at least.
func (k *bodyCache) after(client till.ID, sequence int64, limit int, bytes int64) []*body {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := k.clients[client].all
	if len(all) == 0 || sequence+1 < all[0].sequence || sequence >= all[len(all)-1].sequence {
		return nil
	}
	all = all[sequence+1-all[0].sequence:]
	all = all[:min(len(all), limit)]
	for i, b := range all {
		if bytes -= b.weight; bytes <= 0 {
			return all[:i+1]
		}
	}
	return all
}

// forget drops what is kept of a client: the log in the database is another
// one than it was read from.
func (k *bodyCache) forget(client till.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.bytes -= k.clients[client].weight
	delete(k.clients, client)
}

// add takes in what was read behind a sequence. Older stretches than the one
// that is kept are not worth keeping.
func (k *bodyCache) add(client till.ID, read []*body) {
	if len(read) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.clients[client]
	before := s.weight
	switch first := read[0].sequence; {
	case len(s.all) == 0 || first > s.all[len(s.all)-1].sequence+1:
		s = bodyRange{all: read}
	case first == s.all[len(s.all)-1].sequence+1:
		s.all = append(s.all[:len(s.all):len(s.all)], read...) // who reads the old stretch may go on
	default:
		return
	}
	for _, b := range read {
		s.weight += b.weight
	}
	drop := 0
	for ; s.weight > maxClientCacheBytes; drop++ {
		s.weight -= s.all[drop].weight
	}
	if drop > 0 {
		s.all = slices.Clone(s.all[drop:]) // a part of the old list would keep all of it
	}
	if k.clients == nil || k.bytes-before+s.weight > maxCacheBytes {
		k.clients, k.bytes, before = make(map[till.ID]bodyRange), 0, 0
	}
	k.clients[client] = s
	k.bytes += s.weight - before
}
