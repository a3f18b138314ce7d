package batch

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// ErrFull is returned by Do when the queue is full. The item did not run.
var ErrFull = errors.New("batch: the queue is full")

// ErrClosed is returned by Do after Close. The item did not run.
var ErrClosed = errors.New("batch: closed")

// errPanicked is what every *PanicError wraps.
var errPanicked = errors.New("batch: run panicked")

// PanicError is returned by Do when run panicked on the batch of the item. How
// far run came is not known; it may even have committed.
type PanicError struct {
	Value any    // what run panicked with; nil if it ended its goroutine
	Stack []byte // where
}

// Error returns the value that run panicked with, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("%v: %v", errPanicked, e.Value) }

// Unwrap returns errPanicked, and the value if it is an error.
func (e *PanicError) Unwrap() []error {
	if err, ok := e.Value.(error); ok {
		return []error{errPanicked, err}
	}
	return []error{errPanicked}
}

// Batcher hands the items of concurrent callers to one function, many at a
// time. Make one with New and end it with Close.
type Batcher[T any] struct {
	max, queue int
	run        func(ctx context.Context, items []T)
	stopped    chan struct{} // closed when the worker has run everything
	ctx        context.Context
	cancel     context.CancelFunc

	mu      sync.Mutex
	changed sync.Cond // the worker may go on: a batch was queued or has run, or closed was set
	pending []*group[T]
	running *group[T] // the worker's, or that of a leading caller
	queued  int       // items in pending
	closed  bool
	spare   []T // the slice of a batch that has run, for the next one

	observer Observer // nil: nobody counts
}

// Observer is notified of a Batcher's work. It must not block.
type Observer interface {
	// Ran is called before a batch runs, with its size and how long its first item waited.
	Ran(size int, wait time.Duration)
	// Full is called for an item that found no place.
	Full()
}

// Observe sets the observer. Call it before the first Do.
func (b *Batcher[T]) Observe(o Observer) { b.observer = o }

// group is a batch that collects items or runs. Its callers share one channel. So a caller
// costs nothing of its own, and one that leaves early leaves nothing behind.
type group[T any] struct {
	items  []T
	joined []*group[T]   // groups whose items run with these, after TakeQueued
	err    error         // set before done is closed
	done   chan struct{} // closed when the batch has run
	since  time.Time     // when its first item came; zero without an observer
}

// New returns a Batcher that calls run with 1 to max items at a time and lets
// at most queue items wait. Calls of run never overlap.
//
// The function run sets the outcome of each item, so T is a pointer to a struct
// that has room for it. It must not keep the slice. The context it gets is the
// Batcher's own and has no deadline.
func New[T any](max, queue int, run func(ctx context.Context, items []T)) *Batcher[T] {
	if max < 1 || queue < 1 {
		panic("batch: max and queue must be positive")
	}
	b := &Batcher[T]{max: max, queue: queue, run: run, stopped: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.changed.L = &b.mu
	go b.work()
	return b
}

// Do queues item and waits until the batch that holds it has run. Nil means
// that it has run: the outcome is in the item. ErrFull and ErrClosed mean that
// it has not and will not.
//
// Any other error leaves the outcome unknown. If ctx ends first, Do returns
// ctx.Err(), yet an item once queued still runs: from then on it belongs to the
// Batcher, and the caller must not read or write it again. After a *PanicError
// the item is the caller's again, as far as run came with it.
func (b *Batcher[T]) Do(ctx context.Context, item T) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g, lead, err := b.enqueue(item, ctx.Done() == nil)
	if err != nil {
		return err
	}
	if lead {
		b.lead(g)
		return g.err
	}
	select {
	case <-g.done:
		return g.err
	case <-ctx.Done():
	}

	// Both may have happened; the known outcome is worth more.
	select {
	case <-g.done:
		return g.err
	default:
		return ctx.Err()
	}
}

// Len returns how many items wait for their batch to start.
func (b *Batcher[T]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queued
}

// Close makes later calls of Do fail, runs what is queued and returns when it has run. It
// may be called again, but not by run.
func (b *Batcher[T]) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.changed.Signal()
	<-b.stopped
}

// TakeQueued lets run, and only run, add the next batch to the running one. ok decides by
// the next batch's items, which it must not keep. TakeQueued returns those items, or
// nothing; run sets their outcome too. So a run that had to wait for a lock can include
// what has arrived meanwhile.
func (b *Batcher[T]) TakeQueued(ok func(items []T) bool) []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.pending) == 0 || b.running == nil {
		return nil
	}
	n := len(b.running.items)
	for _, g := range b.running.joined {
		n += len(g.items)
	}
	if n+len(b.pending[0].items) > b.max || !ok(b.pending[0].items) {
		return nil
	}
	g := b.shift()
	b.running.joined = append(b.running.joined, g)
	return g.items
}

// enqueue adds item to a batch. If no batch is running and the caller may lead, the caller
// has to run the batch itself. So a single caller wakes no other goroutine.
func (b *Batcher[T]) enqueue(item T, may bool) (g *group[T], lead bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, false, ErrClosed
	}
	if b.queued == b.queue {
		if b.observer != nil {
			b.observer.Full()
		}
		return nil, false, ErrFull
	}
	n := len(b.pending)
	if may && n == 0 && b.running == nil {
		g = &group[T]{items: append(b.spare, item), done: make(chan struct{}), since: b.observed()}
		b.spare, b.running = nil, g
		return g, true, nil
	}
	if n == 0 || len(b.pending[n-1].items) == b.max {
		b.pending = append(b.pending, &group[T]{items: b.spare, done: make(chan struct{}), since: b.observed()})
		b.spare = nil
		n++
	}
	g = b.pending[n-1]
	g.items = append(g.items, item)
	b.queued++
	if b.queued == 1 && b.running == nil {
		b.changed.Signal() // the worker waits only for the first item
	}
	return g, false, nil
}

// lead runs the batch of a caller that found no batch running, and leaves later ones to the
// worker.
func (b *Batcher[T]) lead(g *group[T]) {
	defer b.changed.Signal()
	b.runOne(b.ctx, g)
}

// work runs batches until the Batcher is closed and empty.
func (b *Batcher[T]) work() {
	// A run that ends its goroutine (a test's FailNow does) must not leave later callers
	// without a worker.
	finished := false
	defer func() {
		if !finished {
			go b.work()
		}
	}()
	for {
		g := b.take()
		if g == nil {
			break
		}
		b.runOne(b.ctx, g)
	}
	finished = true
	b.cancel()
	close(b.stopped)
}

// take waits for the oldest batch and returns it, or nil when there will be none any more.
// Items that arrive from now on go into the next.
func (b *Batcher[T]) take() *group[T] {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.running != nil || len(b.pending) == 0 {
		if b.closed && b.running == nil {
			return nil
		}
		b.changed.Wait()
	}
	b.running = b.shift()
	return b.running
}

// shift takes the oldest batch out of the queue.
func (b *Batcher[T]) shift() *group[T] {
	g := b.pending[0]
	n := copy(b.pending, b.pending[1:])
	b.pending[n] = nil
	b.pending = b.pending[:n]
	b.queued -= len(g.items)
	return g
}

// observed returns the time for the observer.
func (b *Batcher[T]) observed() (now time.Time) {
	if b.observer != nil {
		now = time.Now()
	}
	return now
}

// runOne runs one batch and releases its callers, however run ends.
func (b *Batcher[T]) runOne(ctx context.Context, g *group[T]) {
	returned := false
	defer func() {
		if !returned {
			g.err = &PanicError{Value: recover(), Stack: debug.Stack()}
		}
		b.mu.Lock()
		b.running = nil
		b.mu.Unlock()
		for _, o := range g.joined {
			o.err, o.items = g.err, nil
			close(o.done)
		}
		b.recycle(g)
		close(g.done)
	}()
	if b.observer != nil {
		b.observer.Ran(len(g.items), time.Since(g.since))
	}
	b.run(ctx, g.items)
	returned = true
}

// recycle keeps the slice of g for a later batch. A run that panicked may still use its
// slice, so that one is not kept.
func (b *Batcher[T]) recycle(g *group[T]) {
	if g.err == nil {
		clear(g.items)
		b.mu.Lock()
		b.spare = g.items[:0]
		b.mu.Unlock()
	}
	g.items = nil
}
