package server

import (
	"context"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"till/internal/loop"
	"till/meter"
)

// A loop is late after ten of its intervals, but never before a minute: while the database
// is unreachable, a step may wait for it, and a restart would not help.
const (
	lateIntervals = 10
	minLate       = time.Minute
)

// loops knows when each loop of the program last finished a step.
type loops struct {
	meter *meter.Meter

	mu      sync.Mutex
	running map[string]map[*beat]bool // by worker
}

// beat is one running loop.
type beat struct {
	at    time.Time
	allow time.Duration // how long it may take to the next step's end
}

// observer returns the loop.Observer of a worker.
func (l *loops) observer(worker string) loop.Observer { return workerLoops{l, worker} }

type workerLoops struct {
	l      *loops
	worker string
}

// Begin implements loop.Observer.
func (w workerLoops) Begin(o *loop.Options) (stepped func(panicked bool), ended func()) {
	b := &beat{at: time.Now(), allow: max(lateIntervals*o.Interval, o.MaxStep+o.Interval, minLate)}
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	if w.l.running == nil {
		w.l.running = map[string]map[*beat]bool{}
	}
	if w.l.running[w.worker] == nil {
		w.l.running[w.worker] = map[*beat]bool{}
		w.l.meter.Gauge("loop_timestamp_seconds", func() float64 { return w.l.oldest(w.worker) }, w.worker)
		w.l.meter.Gauge("loop_late", func() float64 { return w.l.isLate(w.worker) }, w.worker)
	}
	w.l.running[w.worker][b] = true
	return func(panicked bool) {
			if panicked {
				w.l.meter.Panicked("loop")
			}
			w.l.mu.Lock()
			b.at = time.Now()
			w.l.mu.Unlock()
		}, func() {
			w.l.mu.Lock()
			delete(w.l.running[w.worker], b)
			w.l.mu.Unlock()
		}
}

// oldest returns when the worker's slowest loop last finished a step, as Unix time; now if
// none runs, as during a stop.
func (l *loops) oldest(worker string) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := time.Now()
	for b := range l.running[worker] {
		if b.at.Before(at) {
			at = b.at
		}
	}
	return float64(at.UnixMilli()) / 1000
}

func (l *loops) isLate(worker string) float64 {
	if slices.Contains(l.late(time.Now()), worker) {
		return 1
	}
	return 0
}

// late returns the workers with a loop that is late, sorted.
func (l *loops) late(now time.Time) (names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, all := range l.running {
		for b := range all {
			if now.Sub(b.at) > b.allow {
				names = append(names, name)
				break
			}
		}
	}
	slices.Sort(names)
	return names
}

// keepRunning runs a worker until ctx ends, and again if it panics: one bad row must not
// stop the service.
func (s *Server) keepRunning(ctx context.Context, name string, run func(context.Context)) {
	ctx = loop.WithObserver(ctx, s.loops.observer(name))
	for {
		if s.runOnce(ctx, name, run) {
			return
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return
		}
	}
}

// runOnce reports whether the worker returned rather than panicked.
func (s *Server) runOnce(ctx context.Context, name string, run func(context.Context)) (returned bool) {
	defer func() {
		if v := recover(); v != nil {
			s.meter.Panicked("loop")
			s.log.Error("worker panicked", "worker", name, "panic", v, "stack", string(debug.Stack()))
		}
	}()
	run(ctx)
	return true
}
