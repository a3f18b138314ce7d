package loop

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const interval = 10 * time.Second

// recorder is a step that notes when it ran, in seconds since the start, and
// answers with the waits it is given, then with the interval.
type recorder struct {
	start time.Time
	at    []string
	waits []time.Duration
}

func (r *recorder) step(context.Context) time.Duration {
	r.at = append(r.at, fmt.Sprint(time.Since(r.start).Seconds()))
	if n := len(r.at); n <= len(r.waits) {
		return r.waits[n-1]
	}
	return -1
}

func (r *recorder) check(t *testing.T, want string) {
	t.Helper()
	if got := strings.Join(r.at, " "); got != want {
		t.Errorf("ran at %s, want %s", got, want)
	}
}

// runFor runs a loop for a time while beside runs too. It must be called in a
// bubble.
func runFor(t *testing.T, d time.Duration, o Options, beside func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { Run(ctx, o); close(ended) }()
	end := time.After(d)
	beside()
	<-end
	synctest.Wait()
	cancel()
	synctest.Wait()
	select {
	case <-ended:
	default:
		t.Error("the loop has not ended with its context")
	}
}

func nothing() {}

func TestWaits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		waits []time.Duration
		want  string
	}{
		{"a step runs at once, then at the interval", nil, "0 10 20 30"},
		{"a step can ask for a shorter wait", []time.Duration{time.Second, 3 * time.Second}, "0 1 4 14 24 34"},
		{"a step cannot ask for a longer wait", []time.Duration{time.Hour, interval + 1}, "0 10 20 30"},
		{"zero runs the step again at once", []time.Duration{0, 0}, "0 0 0 10 20 30"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{start: time.Now(), waits: c.waits}
				runFor(t, 35*time.Second, Options{Step: r.step, Interval: interval}, nothing)
				r.check(t, c.want)
			})
		})
	}
}

func TestWake(t *testing.T) {
	t.Parallel()
	t.Run("a wake cuts the wait short, and the interval starts again", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w, r := NewWaker(), &recorder{start: time.Now()}
			runFor(t, 30*time.Second, Options{Step: r.step, Wake: w.C(), Interval: interval}, func() {
				time.Sleep(4 * time.Second)
				w.Wake()
				time.Sleep(time.Second)
				w.Wake()
			})
			r.check(t, "0 4 5 15 25")
		})
	})
	t.Run("wakes before a step are one, and it serves them", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w, r := NewWaker(), &recorder{start: time.Now()}
			for range 100 {
				w.Wake()
			}
			runFor(t, 15*time.Second, Options{Step: r.step, Wake: w.C(), Interval: interval}, nothing)
			r.check(t, "0 10")
		})
	})
	t.Run("a wake during a step runs it once more", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w, r := NewWaker(), &recorder{start: time.Now()}
			slow := func(ctx context.Context) time.Duration {
				defer time.Sleep(2 * time.Second)
				return r.step(ctx)
			}
			runFor(t, 16*time.Second, Options{Step: slow, Wake: w.C(), Interval: interval}, func() {
				time.Sleep(time.Second)
				w.Wake()
				w.Wake()
			})
			r.check(t, "0 2 14")
		})
	})
}

func TestWakeChannel(t *testing.T) {
	t.Parallel()
	t.Run("a closed channel wakes once at most", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c, r := make(chan struct{}), &recorder{start: time.Now()}
			runFor(t, 15*time.Second, Options{Step: r.step, Wake: c, Interval: interval}, func() {
				time.Sleep(time.Second)
				close(c)
			})
			r.check(t, "0 1 11")
		})
	})
	t.Run("many may wake at once", func(t *testing.T) {
		t.Parallel()
		w := NewWaker()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(w.Wake)
		}
		wg.Wait()
		<-w.C()
		select {
		case <-w.C():
			t.Error("the wakes did not become one")
		default:
		}
	})
}

func TestJitter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const runs = 1000
		var last time.Time
		var waits []time.Duration
		ctx, cancel := context.WithCancel(t.Context())
		Run(ctx, Options{Interval: interval, Jitter: 0.5, Step: func(context.Context) time.Duration {
			if !last.IsZero() {
				waits = append(waits, time.Since(last))
			}
			last = time.Now()
			if len(waits) == runs {
				cancel()
			}
			return -1
		}})
		var shortest, longest = waits[0], waits[0]
		for _, w := range waits {
			shortest, longest = min(shortest, w), max(longest, w)
		}
		if shortest < interval || longest > interval*3/2 {
			t.Errorf("waits from %v to %v, want within 10 to 15 s", shortest, longest)
		}
		if longest-shortest < interval/4 {
			t.Errorf("waits from %v to %v are not spread", shortest, longest)
		}
	})
}

func TestPanic(t *testing.T) {
	t.Parallel()
	t.Run("a panic is reported, and the loop goes on after the interval", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w, r := NewWaker(), &recorder{start: time.Now()}
			var told []any
			o := Options{
				Wake: w.C(), Interval: interval,
				OnPanic: func(value any) { told = append(told, value) },
				Step: func(ctx context.Context) time.Duration {
					if r.step(ctx); len(r.at) == 1 {
						panic("broken")
					}
					return -1
				},
			}
			runFor(t, 25*time.Second, o, func() {
				time.Sleep(time.Second)
				w.Wake() // must not make a broken step spin
			})
			r.check(t, "0 10 20")
			if len(told) != 1 || told[0] != "broken" {
				t.Errorf("told %v, want broken, once", told)
			}
		})
	})
	t.Run("nobody needs to listen", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			runs := 0
			runFor(t, 15*time.Second, Options{Interval: interval, Step: func(context.Context) time.Duration {
				runs++
				panic("broken, as the test wants it")
			}}, nothing)
			if runs != 2 {
				t.Errorf("ran %d times, want 2", runs)
			}
		})
	})
}

func TestEnd(t *testing.T) {
	t.Parallel()
	t.Run("a context that has ended runs nothing", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		Run(ctx, Options{Interval: interval, Step: func(context.Context) time.Duration {
			t.Error("a step ran")
			return 0
		}})
	})
	t.Run("a step that never waits still ends", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		runs := 0
		Run(ctx, Options{Interval: interval, Step: func(context.Context) time.Duration {
			if runs++; runs == 100 {
				cancel()
			}
			return 0
		}})
		if runs != 100 {
			t.Errorf("ran %d times, want 100", runs)
		}
	})
	t.Run("the current step is waited for", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			Run(ctx, Options{Interval: interval, Step: func(context.Context) time.Duration {
				time.Sleep(3 * time.Second)
				return -1
			}})
			if d := time.Since(start); d != 3*time.Second {
				t.Errorf("ended after %v, want 3 s", d)
			}
		})
	})
}
