package loop

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"
)

// Options say what to run and when.
type Options struct {
	// Step does what is due and returns how long to wait before the next one:
	// 0 to run again at once, because there is more; a time up to Interval; or
	// a negative number for Interval. It should return soon after ctx ends.
	Step func(ctx context.Context) (next time.Duration)

	// Wake, if not nil, cuts a wait short. See Waker.
	Wake <-chan struct{}

	// Interval is the longest wait, jitter aside. It must be positive.
	Interval time.Duration

	// Jitter lengthens each wait by a random part of it, up to this fraction:
	// 0.1 makes ten seconds ten to eleven.
	Jitter float64

	// MaxStep is how long one step may take, if that is longer than ten intervals. An
	// Observer uses it.
	MaxStep time.Duration

	// OnPanic, if not nil, is called with the value that Step panicked with. It runs on the
	// stack of the panic, so debug.Stack shows where. The default logs.
	OnPanic func(value any)
}

// Observer watches loops. It must not block.
type Observer interface {
	// Begin is called when a loop begins. It returns what the loop calls after each step,
	// and when it ends. panicked says that the step did not return.
	Begin(o *Options) (stepped func(panicked bool), ended func())
}

type observerKey struct{}

// WithObserver returns a context whose loops are watched.
func WithObserver(ctx context.Context, o Observer) context.Context {
	return context.WithValue(ctx, observerKey{}, o)
}

// Run runs steps until ctx ends.
func Run(ctx context.Context, o Options) {
	if o.Interval <= 0 {
		panic("loop: Interval must be positive")
	}
	stepped := func(bool) {}
	if w, ok := ctx.Value(observerKey{}).(Observer); ok {
		step, ended := w.Begin(&o)
		stepped = step
		defer ended()
	}
	timer := time.NewTimer(o.Interval)
	defer timer.Stop()
	for ctx.Err() == nil {
		// This step sees everything that was done before any wake so far.
		select {
		case _, open := <-o.Wake:
			o.dropClosed(open)
		default:
		}

		next, ok := o.step(ctx)
		stepped(!ok)
		wake := o.Wake
		if !ok {
			next, wake = o.Interval, nil
		}
		if next == 0 {
			continue
		}
		timer.Reset(o.wait(next))
		select {
		case <-timer.C:
		case _, open := <-wake:
			// It counts for all wakes until the next step begins.
			o.dropClosed(open)
		case <-ctx.Done():
		}
	}
}

// RunLogged runs a step at an interval until ctx ends. Its errors and panics are logged
// under what the step does.
func RunLogged(ctx context.Context, log *slog.Logger, what string, interval time.Duration, step func(context.Context) error) {
	Run(ctx, Options{
		Interval: interval,
		Jitter:   0.1,
		Step: func(ctx context.Context) time.Duration {
			if err := step(ctx); err != nil && ctx.Err() == nil {
				log.Error(what, "error", err)
			}
			return -1
		},
		OnPanic: func(v any) { log.Error(what, "panic", v, "stack", string(debug.Stack())) },
	})
}

// dropClosed drops a closed Wake, which would otherwise wake for ever.
func (o *Options) dropClosed(open bool) {
	if !open {
		o.Wake = nil
	}
}

// step runs Step and reports whether it returned.
func (o *Options) step(ctx context.Context) (next time.Duration, ok bool) {
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		if o.OnPanic != nil {
			o.OnPanic(value)
			return
		}
		slog.ErrorContext(ctx, "step panicked", "panic", value, "stack", string(debug.Stack()))
	}()
	return o.Step(ctx), true
}

// wait returns how long to wait when Step has returned next.
func (o *Options) wait(next time.Duration) time.Duration {
	if next < 0 || next > o.Interval {
		next = o.Interval
	}
	return next + time.Duration(rand.Float64()*o.Jitter*float64(next))
}

// Waker wakes a loop. Make one with NewWaker.
type Waker struct{ c chan struct{} }

// NewWaker returns a Waker.
func NewWaker() *Waker { return &Waker{c: make(chan struct{}, 1)} }

// Wake makes the loop run its step soon. It never blocks. Several wakes before the next
// step are one.
func (w *Waker) Wake() {
	select {
	case w.c <- struct{}{}:
	default:
	}
}

// C returns the channel for Options.Wake. Only one loop may receive from it.
func (w *Waker) C() <-chan struct{} { return w.c }
