package batch

import (
	"context"
	"sync"
)

// Split is a Batcher for each group of items. Items of two groups never share a batch, and
// no group waits for another. Make one with NewSplit and end it with Close.
type Split[T any] struct {
	max, queue int
	of         func(ctx context.Context, item T) int
	run        func(ctx context.Context, own *Batcher[T], items []T)
	observer   Observer

	mu     sync.Mutex
	parts  map[int]*Batcher[T]
	closed bool
}

// NewSplit returns a Split. The function of names the group of an item; there should be few
// groups, because each has its own Batcher until Close. A Batcher calls run with itself and
// with 1 to max items, and lets at most queue items wait.
func NewSplit[T any](max, queue int, of func(ctx context.Context, item T) int, run func(ctx context.Context, own *Batcher[T], items []T)) *Split[T] {
	return &Split[T]{max: max, queue: queue, of: of, run: run, parts: map[int]*Batcher[T]{}}
}

// Observe sets the observer of all groups. Call it before the first Do.
func (s *Split[T]) Observe(o Observer) { s.observer = o }

// Do is Batcher.Do, with the items of the same group.
func (s *Split[T]) Do(ctx context.Context, item T) error {
	b := s.part(s.of(ctx, item))
	if b == nil {
		return ErrClosed
	}
	return b.Do(ctx, item)
}

// part returns the Batcher of a group, nil after Close.
func (s *Split[T]) part(group int) *Batcher[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.parts[group]
	if b == nil && !s.closed {
		b = New(s.max, s.queue, func(ctx context.Context, items []T) { s.run(ctx, b, items) })
		b.Observe(s.observer)
		s.parts[group] = b
	}
	return b
}

// all returns the Batchers.
func (s *Split[T]) all() (out []*Batcher[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.parts {
		out = append(out, b)
	}
	return out
}

// Len returns how many items wait for their batch to start.
func (s *Split[T]) Len() (n int) {
	for _, b := range s.all() {
		n += b.Len()
	}
	return n
}

// Close is Batcher.Close for all groups.
func (s *Split[T]) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, b := range s.all() {
		b.Close()
	}
}
