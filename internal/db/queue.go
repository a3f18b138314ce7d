package db

import (
	"sync"
	"time"
)

// Priority says which writers go first.
type Priority int

// The priorities.
const (
	Foreground Priority = iota // a request waits for it
	Background                 // workers' batches
)

// maxBackgroundWait is how long background work may wait behind requests. After
// that, one background transaction runs first.
const maxBackgroundWait = 50 * time.Millisecond

// writeQueue lets a limited number of writers run at once.
type writeQueue struct {
	mu      sync.Mutex
	limit   int
	running int
	waiting [2][]waiter
}

type waiter struct {
	ready chan struct{}
	since time.Time
}

func (q *writeQueue) enter(p Priority) {
	q.mu.Lock()
	if q.running < q.limit {
		q.running++
		q.mu.Unlock()
		return
	}
	w := waiter{ready: make(chan struct{}), since: time.Now()}
	q.waiting[p] = append(q.waiting[p], w)
	q.mu.Unlock()
	<-w.ready
}

// leave passes the place of a writer on to the next one.
func (q *writeQueue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := Foreground
	if b := q.waiting[Background]; len(b) > 0 && (len(q.waiting[Foreground]) == 0 || time.Since(b[0].since) > maxBackgroundWait) {
		p = Background
	}
	if len(q.waiting[p]) == 0 {
		q.running--
		return
	}
	w := q.waiting[p][0]
	q.waiting[p] = q.waiting[p][1:]
	close(w.ready)
}
