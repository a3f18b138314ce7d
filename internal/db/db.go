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
	full   atomic.Int64     // when a write last found the disk full, in nanoseconds of Unix time; 0: never
	close  sync.Once

	observer Observer // nil: nobody counts
}

// Observer is notified of transactions. It must not block.
type Observer interface {
	// Transaction is called after each try of a transaction: read, first (Foreground) or
	// behind (Background). The result is ok, again (it collided and may run again),
	// refused, disk_full, unavailable or unknown_commit.
	Transaction(kind, result string, took time.Duration)
	// Waited is called when a writer's turn has come, with its queue: first or behind.
	Waited(queue string, wait time.Duration)
}

// Observe sets the observer. Call it before the first transaction.
func (d *DB) Observe(o Observer) { d.observer = o }

// ClockOffset returns the server's clock minus this machine's, 0 if they are one.
func (d *DB) ClockOffset() time.Duration { return time.Duration(d.offset.Load()) * time.Microsecond }

// fullFor is how long a disk counts as full after a write that found no room on it. A
// service writes more often, if only that it is alive.
const fullFor = 15 * time.Second

// DiskFull reports whether a write has found the disk full a short time ago.
func (d *DB) DiskFull() bool {
	at := d.full.Load()
	return at != 0 && time.Since(time.Unix(0, at)) < fullFor
}

// Sessions returns how many connections there are, 0 where the engine does not say.
func (d *DB) Sessions() (s Sessions) {
	if e, ok := d.engine.(interface{ Sessions() Sessions }); ok {
		s = e.Sessions()
	}
	return s
}

// Shrink lets connections that rest give memory back, where the engine holds any.
func (d *DB) Shrink() {
	if e, ok := d.engine.(interface{ Shrink() }); ok {
		e.Shrink()
	}
}

// Sessions counts connections.
type Sessions struct{ ReadUsed, ReadIdle, WriteUsed, WriteIdle int }

// names are the priorities as observers know them.
var names = [...]string{Foreground: "first", Background: "behind"}

// observe reports one try to the observer.
func (d *DB) observe(kind string, began time.Time, err error) {
	if errors.Is(err, ErrDiskFull) {
		d.full.Store(time.Now().UnixNano())
	}
	if d.observer == nil {
		return
	}
	result := "refused"
	switch {
	case err == nil:
		result = "ok"
	case errors.Is(err, ErrUnknownCommit):
		result = "unknown_commit"
	case errors.Is(err, ErrRetry):
		result = "again"
	case errors.Is(err, ErrDiskFull):
		result = "disk_full"
	case errors.Is(err, ErrUnavailable), errors.Is(err, ErrBusy), errors.Is(err, ErrNotStarted):
		result = "unavailable"
	}
	d.observer.Transaction(kind, result, time.Since(began))
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

// SetWriters changes how many write transactions run at once. Call it before the first.
func (d *DB) SetWriters(n int) { d.queue.limit = max(1, n) }

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
	waiting := time.Now()
	d.queue.enter(p)
	defer d.queue.leave()
	if d.observer != nil {
		d.observer.Waited(names[p], time.Since(waiting))
	}
	for n := 1; ; n++ {
		began := time.Now()
		err := d.run(ctx, Write, f)
		d.observe(names[p], began, err)
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
	began := time.Now()
	err := d.run(ctx, Read, f)
	d.observe("read", began, err)
	return err
}

// run runs f in one transaction, and once more on another connection if the
// first one was dead before the transaction started.
func (d *DB) run(ctx context.Context, a Access, f func(tx *Tx) error) error {
	err := d.runOnce(ctx, a, f)
	if errors.Is(err, ErrNotStarted) && Silence(ctx) == 0 {
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
	if tx.err != nil {
		err = tx.err // whatever f says, it has read no clock
	}
	if err == nil && a == Write {
		err = tx.commit(ctx)
	}
	if err != nil && tx.notStarted && !errors.Is(err, ErrNotStarted) {
		err = fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	return err
}
