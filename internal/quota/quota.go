package quota

import (
	"errors"
	"sync"

	"till"
)

// ErrClientFull says that the client's limit is reached.
var ErrClientFull = errors.New("quota: the client holds too much")

// ErrFull says that the limit of all clients together is reached.
var ErrFull = errors.New("quota: all clients together hold too much")

// Quota limits how much is held: bytes, or calls under way. It is safe for concurrent use. Make one with New.
type Quota struct {
	total, perClient int64

	mu       sync.Mutex
	held     int64
	byClient map[till.ID]int64
}

// New returns a quota of so much in all, and for one client.
func New(total, perClient int64) *Quota {
	return &Quota{total: total, perClient: perClient, byClient: make(map[till.ID]int64)}
}

// Take takes n bytes for a client: all of them, or none with ErrClientFull or
// ErrFull.
func (q *Quota) Take(client till.ID, n int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case n < 0:
		panic("quota: a negative number of bytes")
	case q.byClient[client]+n > q.perClient:
		return ErrClientFull
	case q.held+n > q.total:
		return ErrFull
	}
	q.add(client, n)
	return nil
}

// TakeSome takes up to most bytes for a client and returns how many: at most a
// quarter of what is left, to leave room for the next caller.
func (q *Quota) TakeSome(client till.ID, most int64) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := max(0, min(most, (q.perClient-q.byClient[client])/4, (q.total-q.held)/4))
	q.add(client, n)
	return n
}

// Give gives back n bytes that were taken for a client.
func (q *Quota) Give(client till.ID, n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n < 0 || n > q.byClient[client] {
		panic("quota: more is given back than was taken")
	}
	q.add(client, -n)
}

func (q *Quota) add(client till.ID, n int64) {
	q.held += n
	if q.byClient[client] += n; q.byClient[client] == 0 {
		delete(q.byClient, client)
	}
}

// Held returns how many bytes are held, in all.
func (q *Quota) Held() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held
}

// HeldBy returns how many bytes a client holds.
func (q *Quota) HeldBy(client till.ID) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.byClient[client]
}
