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

// The limits of the cache.
const (
	maxCacheBytes       = 24 << 20 // of all clients; beyond that, all are dropped
	maxClientCacheBytes = 6 << 20  // of one client; the newest are kept
)

// bodyCache caches clients' newest events, so that an event for several endpoints is read
// and rendered once.
type bodyCache struct {
	mu      sync.Mutex
	clients map[till.ID]bodyRange
	bytes   int64 // bytes
}

// bodyRange is bodies with consecutive sequences, and their weight.
type bodyRange struct {
	all    []*body
	weight int64
}

// after returns up to limit cached bodies that directly follow a sequence: at most about so
// many bytes, but at least one body.
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

// forget drops a client's bodies, because the database's log is no longer the one that they
// were read from.
func (k *bodyCache) forget(client till.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.bytes -= k.clients[client].weight
	delete(k.clients, client)
}

// add caches bodies that were just read. It drops what is older than the cached range.
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
		s.all = append(s.all[:len(s.all):len(s.all)], read...) // a copy: others may still read the old slice
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
		s.all = slices.Clone(s.all[drop:]) // a copy: a slice of the old list would keep all of it in memory
	}
	if k.clients == nil || k.bytes-before+s.weight > maxCacheBytes {
		k.clients, k.bytes, before = make(map[till.ID]bodyRange), 0, 0
	}
	k.clients[client] = s
	k.bytes += s.weight - before
}
