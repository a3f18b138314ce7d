package db

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"till"
)

// DB is an open database.
type DB struct {
	engine Engine
	queue  writeQueue
	now    func() till.Time // nil: the server's clock, by offset
	offset atomic.Int64     // the server's clock minus ours, in microseconds
	close  sync.Once
}

// New returns a DB on an engine. writers is how many write transactions run at
// once. now is the engine's clock, nil if only the server knows it.
func New(e Engine, writers int, now func() till.Time) *DB {
	return &DB{engine: e, queue: writeQueue{limit: max(1, writers)}, now: now}
}

// Dialect returns the engine's dialect.
func (d *DB) Dialect() Dialect { return d.engine.Dialect() }

// Writers returns how many write transactions run at once.
func (d *DB) Writers() int { return d.queue.limit }

// Close waits until the write transactions have ended, and closes the engine. No
// transaction may begin after Close.
func (d *DB) Close() (err error) {
	d.close.Do(func() {
		for range d.queue.limit {
			d.queue.enter(Foreground)
		}
		err = d.engine.Close()
	})
	return err
}

// Now returns the database's time. Where a server has the clock, it is the
// machine's time, corrected by the last reading. Leases and due times are decided
// by the clock that a transaction reads.
func (d *DB) Now() till.Time {
	if d.now != nil {
		return d.now()
	}
	return till.TimeOf(time.Now()) + till.Time(d.offset.Load())
}

// observeClock notes how far the server's clock is ahead of the machine's.
func (d *DB) observeClock(sent time.Time, now till.Time) {
	// A slow answer says little about when the clock was read.
	if took := time.Since(sent); took < 100*time.Millisecond {
		d.offset.Store(int64(now - till.TimeOf(sent.Add(took/2))))
	}
}

// maxRetries is how often a transaction that collides with others is run before
// the caller gets the error.
const maxRetries = 8

// Update runs f in one write transaction. f may run more than once and changes
// nothing but through its tx.
func (d *DB) Update(ctx context.Context, p Priority, f func(tx *Tx) error) error {
	// A cancelled request must not roll back a batch that others wait for.
	ctx = context.WithoutCancel(ctx)
	d.queue.enter(p)
	defer d.queue.leave()
	for n := 1; ; n++ {
		err := d.run(ctx, Write, f)
		if !errors.Is(err, ErrRetry) || errors.Is(err, ErrUnknownCommit) {
			return err
		}
		if n == maxRetries {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		// Without jitter, two transactions that collided would collide again.
		time.Sleep(rand.N(time.Duration(n) * 5 * time.Millisecond))
	}
}

// View runs f on one snapshot. f must not write, and may run twice.
func (d *DB) View(ctx context.Context, f func(tx *Tx) error) error {
	return d.run(ctx, Read, f)
}

// run runs f in one transaction, and once more on another connection if the
// first one was dead before the transaction started.
func (d *DB) run(ctx context.Context, a Access, f func(tx *Tx) error) error {
	err := d.runOnce(ctx, a, f)
	if errors.Is(err, ErrNotStarted) {
		err = d.runOnce(ctx, a, f)
	}
	return err
}

func (d *DB) runOnce(ctx context.Context, a Access, f func(tx *Tx) error) error {
	conn, err := d.engine.Acquire(ctx, a)
	if err != nil {
		return err
	}
	defer conn.Release()
	ctx = context.WithoutCancel(ctx)
	defer conn.Rollback(ctx) // after an error or a panic
	if err := conn.Begin(ctx); err != nil {
		return d.engine.Classify(err)
	}
	tx := &Tx{db: d, conn: conn, access: a}
	if a == Read {
		// The clock is read behind the snapshot, so that nothing in the snapshot
		// was written after Now.
		tx.deferred.Clock(nil)
	}
	err = f(tx)
	if err == nil {
		err = tx.err
	}
	if err == nil && a == Write {
		err = tx.commit(ctx)
	}
	if err != nil && tx.notStarted && !errors.Is(err, ErrNotStarted) {
		err = fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	return err
}
