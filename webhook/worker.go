package webhook

import (
	"context"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"till"
	"till/store"
	"till/store/webhooks"
)

// endpointWorker is the state of an endpoint that has a worker here, or attempts under way.
type endpointWorker struct {
	busy         bool  // a worker is running
	moreWork     bool  // there may be more to send than the worker has read
	lateAttempts int   // attempts under way that their chunk did not wait for
	parallel     int   // how many attempts may be under way, as of the last read of the endpoint
	memory       int64 // bytes reserved while it is busy
	timer        *time.Timer
}

// startWorker starts the worker of an endpoint, unless it is running.
func (d *Dispatcher) startWorker(ctx context.Context, ref store.Ref) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.workers[ref]
	switch {
	case ctx.Err() != nil:
		return
	case r == nil && len(d.workers) >= maxWorkers:
		return
	case r == nil:
		r = &endpointWorker{}
		d.workers[ref] = r
	case r.busy:
		r.moreWork = true
		return
	case r.lateAttempts > 0 && r.lateAttempts >= r.parallel:
		return // recordLate wakes the dispatcher when one of them has ended
	}
	r.stopTimer()
	if !d.reserveMemory(ref.Client, r) {
		d.startWorkerAfter(ctx, ref, r, memoryDelay+rand.N(memoryDelay))
		return
	}
	r.busy = true
	d.tasks.Go(func() { d.runWorker(ctx, ref, r) })
}

func (r *endpointWorker) stopTimer() {
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
}

// runWorker sends what is due to an endpoint, chunk by chunk.
func (d *Dispatcher) runWorker(ctx context.Context, ref store.Ref, r *endpointWorker) {
	var e *webhooks.Endpoint
	defer func() {
		if v := recover(); v != nil {
			// The lease ends by itself; then another worker claims the endpoint.
			d.c.Meter.Panicked("delivery")
			d.c.Log.Error("endpoint worker panicked", "endpoint", ref.ID, "panic", v, "stack", string(debug.Stack()))
			d.stopWorker(ctx, ref, r, nil)
		}
	}()
	for {
		var held *endpointLease
		if e, held = d.claim(ctx, ref); held != nil {
			for held != nil && ctx.Err() == nil && d.freeSlots(r, e) > 0 && d.reserveMemory(ref.Client, r) {
				e, held = d.processChunk(ctx, r, e, held)
			}
			if held != nil {
				e, _ = d.release(ctx, e, held)
			}
		}
		if d.stopWorker(ctx, ref, r, e) {
			return
		}
	}
}

// stopWorker ends a worker unless there may be more to send. It reports whether it ended
// it.
func (d *Dispatcher) stopWorker(ctx context.Context, ref store.Ref, r *endpointWorker, e *webhooks.Endpoint) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.moreWork && ctx.Err() == nil && (r.lateAttempts == 0 || r.lateAttempts < r.parallel) && (e == nil || e.BlockedUntil <= d.c.Store.Now()) && d.reserveMemory(ref.Client, r) {
		r.moreWork = false
		return false
	}
	r.busy, r.moreWork = false, false
	d.shrinkMemory(ref.Client, r, 0)
	if wait, ok := d.nextDue(e); ok && ctx.Err() == nil {
		d.startWorkerAfter(ctx, ref, r, wait)
	} else if r.lateAttempts == 0 {
		delete(d.workers, ref)
	}
	return true
}

// startWorkerAfter starts the worker after a pause. The caller holds the lock.
func (d *Dispatcher) startWorkerAfter(ctx context.Context, ref store.Ref, r *endpointWorker, wait time.Duration) {
	r.timer = time.AfterFunc(wait, func() {
		d.mu.Lock()
		r.timer = nil
		d.mu.Unlock()
		d.startWorker(ctx, ref)
	})
}

// nextDue returns how long it is until something is due for an endpoint, if that is within
// maxTimerDelay.
func (d *Dispatcher) nextDue(e *webhooks.Endpoint) (time.Duration, bool) {
	if e == nil || !e.Enabled {
		return 0, false
	}
	now := d.c.Store.Now()
	next := till.Time(0)
	for _, t := range []till.Time{e.NextRetry, e.ReplayAt} {
		if !t.IsZero() && (next.IsZero() || t < next) {
			next = t
		}
	}
	if e.Cursor < e.LastEvent {
		next = now
	}
	if next.IsZero() {
		return 0, false
	}
	if next = max(next, e.BlockedUntil); next.Sub(now) > maxTimerDelay {
		return 0, false
	}
	return max(next.Sub(now), time.Millisecond), true
}
