package limit

import (
	"context"
	"sync"
	"time"
)

// Slots bounds what one person, one address or one of anything has under way at once.
// Others wait in a line of bounded length for a bounded time. It is safe for concurrent use,
// and remembers only who is inside or waits.
type Slots[K comparable] struct {
	most, line int
	patience   time.Duration

	mu  sync.Mutex
	all map[K]*slot
}

// slot is that of one key.
type slot struct {
	inside chan struct{}
	users  int // inside, and in the line
}

// NewSlots returns slots in which most of each key are inside at once, and line of them
// wait for at most patience; with none, until their contexts end.
func NewSlots[K comparable](most, line int, patience time.Duration) *Slots[K] {
	return &Slots[K]{most: most, line: line, patience: patience, all: make(map[K]*slot)}
}

// Enter waits until there is room. The caller calls leave when it is done. It reports false
// if the line is full, the patience over or the context done.
func (s *Slots[K]) Enter(ctx context.Context, key K) (leave func(), ok bool) {
	s.mu.Lock()
	one := s.all[key]
	if one == nil {
		one = &slot{inside: make(chan struct{}, s.most)}
		s.all[key] = one
	}
	if one.users >= s.most+s.line {
		s.mu.Unlock()
		return nil, false
	}
	one.users++
	s.mu.Unlock()
	if !s.wait(ctx, one) {
		s.forget(key, one)
		return nil, false
	}
	return sync.OnceFunc(func() {
		<-one.inside
		s.forget(key, one)
	}), true
}

func (s *Slots[K]) wait(ctx context.Context, one *slot) bool {
	select {
	case one.inside <- struct{}{}:
		return true
	default:
	}
	var over <-chan time.Time
	if s.patience > 0 {
		t := time.NewTimer(s.patience)
		defer t.Stop()
		over = t.C
	}
	select {
	case one.inside <- struct{}{}:
		return true
	case <-over:
	case <-ctx.Done():
	}
	return false
}

// Len returns how many keys have somebody inside or waiting.
func (s *Slots[K]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// forget counts one user less.
func (s *Slots[K]) forget(key K, one *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.users--; one.users == 0 {
		delete(s.all, key)
	}
}
