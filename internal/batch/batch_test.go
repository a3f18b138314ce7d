package batch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

type call struct {
	n    int
	runs int // only run writes it, so the race detector watches the hand-over
}

func count(_ context.Context, calls []*call) {
	for _, c := range calls {
		c.runs++
	}
}

// gate is a run that says when it starts and waits to be let go.
type gate struct {
	started chan int
	open    chan struct{}
}

func newGate() *gate {
	return &gate{started: make(chan int), open: make(chan struct{})}
}

func (g *gate) run(ctx context.Context, calls []*call) {
	g.started <- len(calls)
	<-g.open
	count(ctx, calls)
}

// goDo calls Do and returns where its error will arrive.
func goDo(ctx context.Context, b *Batcher[*call], c *call) <-chan error {
	err := make(chan error, 1)
	go func() { err <- b.Do(ctx, c) }()
	return err
}

func TestEveryItemRunsOnce(t *testing.T) {
	t.Parallel()
	const callers, each, limit = 100, 100, 32
	var batches, items atomic.Int64
	var running atomic.Bool
	b := New(limit, callers, func(ctx context.Context, calls []*call) {
		if !running.CompareAndSwap(false, true) {
			t.Error("two batches run at once")
		}
		defer running.Store(false)
		if len(calls) < 1 || len(calls) > limit {
			t.Errorf("a batch of %d", len(calls))
		}
		batches.Add(1)
		items.Add(int64(len(calls)))
		runtime.Gosched()
		count(ctx, calls)
	})
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := range each {
				c := &call{n: i}
				if err := b.Do(t.Context(), c); err != nil {
					t.Error(err)
				}
				if c.runs != 1 {
					t.Errorf("ran %d times", c.runs)
				}
			}
		})
	}
	wg.Wait()
	b.Close()
	if items.Load() != callers*each || b.Len() != 0 {
		t.Errorf("%d items ran and %d are queued, want %d and 0", items.Load(), b.Len(), callers*each)
	}
	t.Logf("%d items in %d batches", items.Load(), batches.Load())
}

func TestBatches(t *testing.T) {
	t.Parallel()
	t.Run("what is queued runs together, in order, up to the limit", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			g := newGate()
			var order []int
			b := New(3, 10, func(ctx context.Context, calls []*call) {
				g.run(ctx, calls)
				for _, c := range calls {
					order = append(order, c.n)
				}
			})
			var errs []<-chan error
			for i := range 6 {
				errs = append(errs, goDo(t.Context(), b, &call{n: i}))
				synctest.Wait() // one after the other
			}
			if b.Len() != 5 {
				t.Errorf("%d are queued, want 5", b.Len())
			}
			for _, want := range []int{1, 3, 2} {
				if got := <-g.started; got != want {
					t.Errorf("a batch of %d, want %d", got, want)
				}
				g.open <- struct{}{}
			}
			for _, err := range errs {
				if err := <-err; err != nil {
					t.Error(err)
				}
			}
			b.Close()
			if fmt.Sprint(order) != "[0 1 2 3 4 5]" {
				t.Errorf("ran in the order %v", order)
			}
		})
	})
	t.Run("a lone caller waits for no timer", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := New(512, 512, count)
			defer b.Close()
			start := time.Now()
			for range 1000 {
				c := &call{}
				if err := b.Do(t.Context(), c); err != nil || c.runs != 1 {
					t.Fatalf("%v after %d runs", err, c.runs)
				}
			}
			if d := time.Since(start); d != 0 {
				t.Errorf("the clock moved by %v", d)
			}
		})
	})
}

func TestFullQueue(t *testing.T) {
	t.Parallel()
	t.Run("a full queue is told at once", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			g := newGate()
			b := New(2, 3, g.run)
			running := goDo(t.Context(), b, &call{})
			<-g.started
			waiting := make([]<-chan error, 3)
			for i := range waiting {
				waiting[i] = goDo(t.Context(), b, &call{})
			}
			synctest.Wait()
			c := &call{}
			if err := b.Do(t.Context(), c); !errors.Is(err, ErrFull) {
				t.Errorf("got %v, want ErrFull", err)
			}
			go func() {
				for range g.started {
				}
			}()
			close(g.open)
			for _, err := range append(waiting, running) {
				if err := <-err; err != nil {
					t.Error(err)
				}
			}
			if err := b.Do(t.Context(), &call{}); err != nil {
				t.Errorf("with room again: %v", err)
			}
			b.Close()
			close(g.started)
			if c.runs != 0 {
				t.Error("the refused item ran")
			}
		})
	})
}

func TestCancelledCaller(t *testing.T) {
	t.Parallel()
	t.Run("a caller who leaves rolls nobody back, not even himself", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			g := newGate()
			b := New(10, 10, func(ctx context.Context, calls []*call) {
				g.run(ctx, calls)
				if ctx.Err() != nil {
					t.Errorf("the batch was cancelled: %v", ctx.Err())
				}
			})
			ctx, cancel := context.WithCancel(t.Context())
			one, two, three := &call{}, &call{}, &call{}
			gone := goDo(ctx, b, one) // leaves while it runs
			<-g.started
			left := goDo(ctx, b, two) // leaves while it waits
			stays := goDo(t.Context(), b, three)
			synctest.Wait()
			cancel()
			for _, err := range []<-chan error{gone, left} {
				if err := <-err; !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want context.Canceled", err)
				}
			}
			g.open <- struct{}{}
			if n := <-g.started; n != 2 {
				t.Errorf("a batch of %d, want 2", n)
			}
			g.open <- struct{}{}
			if err := <-stays; err != nil {
				t.Error(err)
			}
			b.Close()
			if one.runs != 1 || two.runs != 1 || three.runs != 1 {
				t.Errorf("ran %d, %d, %d times, want once each", one.runs, two.runs, three.runs)
			}
		})
	})
}

func TestCancelledAtAnyTime(t *testing.T) {
	t.Parallel()
	t.Run("a caller who has left before does not come in", func(t *testing.T) {
		t.Parallel()
		b := New(10, 10, count)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c := &call{}
		err := b.Do(ctx, c)
		b.Close()
		if !errors.Is(err, context.Canceled) || c.runs != 0 {
			t.Errorf("got %v after %d runs", err, c.runs)
		}
	})
	t.Run("callers who leave at any moment harm nobody", func(t *testing.T) {
		t.Parallel()
		b := New(8, 5000, count) // room for all: who leaves does not take its item along
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				for range 100 {
					c := &call{}
					if i%2 == 0 {
						ctx, cancel := context.WithCancel(t.Context())
						go cancel()
						if err := b.Do(ctx, c); err != nil {
							continue // c is not ours any more
						}
					} else if err := b.Do(t.Context(), c); err != nil {
						t.Error(err)
					}
					if c.runs != 1 {
						t.Errorf("ran %d times", c.runs)
					}
				}
			})
		}
		wg.Wait()
		b.Close()
	})
}

func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		b := New(2, 10, g.run)
		var errs []<-chan error
		for range 6 {
			errs = append(errs, goDo(t.Context(), b, &call{}))
			synctest.Wait()
		}
		closed := make(chan struct{})
		go func() { b.Close(); b.Close(); close(closed) }()
		synctest.Wait()
		if err := b.Do(t.Context(), &call{}); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
		for _, want := range []int{1, 2, 2, 1} {
			select {
			case <-closed:
				t.Fatal("closed before everything has run")
			case n := <-g.started:
				if n != want {
					t.Errorf("a batch of %d, want %d", n, want)
				}
			}
			g.open <- struct{}{}
		}
		<-closed
		for _, err := range errs {
			if err := <-err; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestPanic(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	for name, fail := range map[string]func(){
		"a panic with a text":       func() { panic("cause") },
		"a panic with an error":     func() { panic(cause) },
		"a panic with nil":          func() { panic(nil) },
		"the end of the goroutine":  runtime.Goexit,
		"a panic of the run itself": func() { var m map[int]int; maps.Copy(m, map[int]int{0: 1}) },
	} {
		t.Run(name+" fails its batch only", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newGate()
				b := New(10, 10, func(ctx context.Context, calls []*call) {
					g.run(ctx, calls)
					if calls[0].n < 0 {
						fail()
					}
				})
				first := goDo(t.Context(), b, &call{})
				<-g.started
				bad := []<-chan error{goDo(t.Context(), b, &call{n: -1}), goDo(t.Context(), b, &call{n: -1})}
				synctest.Wait()
				g.open <- struct{}{}
				if n := <-g.started; n != 2 {
					t.Errorf("a batch of %d, want 2", n)
				}
				g.open <- struct{}{}
				for _, err := range bad {
					err := <-err
					var p *PanicError
					if !errors.Is(err, errPanicked) || !errors.As(err, &p) || len(p.Stack) == 0 {
						t.Fatalf("got %v, want errPanicked with a stack", err)
					}
					if strings.Contains(name, "an error") && !errors.Is(err, cause) {
						t.Errorf("%v does not wrap its cause", err)
					}
				}
				last := goDo(t.Context(), b, &call{})
				<-g.started
				g.open <- struct{}{}
				if err := errors.Join(<-first, <-last); err != nil {
					t.Errorf("the batches before and after: %v", err)
				}
				b.Close()
			})
		})
	}
}

func BenchmarkDo(b *testing.B) {
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("%d callers", callers), func(b *testing.B) {
			q := New(512, 4096, count)
			defer q.Close()
			b.ReportAllocs()
			b.SetParallelism(callers)
			if callers == 1 {
				c := &call{}
				for b.Loop() {
					_ = q.Do(b.Context(), c)
				}
				return
			}
			b.RunParallel(func(pb *testing.PB) {
				c := &call{}
				for pb.Next() {
					_ = q.Do(context.Background(), c)
				}
			})
		})
	}
}

func TestAbsorb(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		limit   int
		ok      bool
		panics  bool
		batches int
	}{
		{"what came meanwhile runs along", 8, true, false, 1},
		{"unless it may not", 8, false, false, 2},
		{"or there would be too many", 2, true, false, 2},
		{"and it shares a panic", 8, true, true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			begun, queued := make(chan struct{}), make(chan struct{})
			batches := 0
			var b *Batcher[*call]
			b = New(c.limit, 8, func(ctx context.Context, calls []*call) {
				if batches++; batches == 1 {
					close(begun)
					<-queued
					calls = append(slices.Clip(calls), b.TakeQueued(func(items []*call) bool {
						if len(items) != 2 {
							t.Errorf("asked about %d items, want 2", len(items))
						}
						return c.ok
					})...)
				}
				count(ctx, calls)
				if c.panics {
					panic("no")
				}
			})
			all := []*call{{}, {}, {}}
			errs := []<-chan error{goDo(t.Context(), b, all[0])}
			<-begun
			for _, item := range all[1:] {
				errs = append(errs, goDo(t.Context(), b, item))
			}
			for b.Len() < 2 {
				runtime.Gosched()
			}
			close(queued)
			for i, err := range errs {
				if err := <-err; errors.Is(err, errPanicked) != c.panics || err != nil && !c.panics {
					t.Errorf("item %d: %v", i, err)
				}
				if all[i].runs != 1 {
					t.Errorf("item %d ran %d times", i, all[i].runs)
				}
			}
			b.Close()
			if batches != c.batches || b.Len() != 0 {
				t.Errorf("%d batches, %d queued; want %d and 0", batches, b.Len(), c.batches)
			}
			if b.TakeQueued(func([]*call) bool { return true }) != nil {
				t.Error("something was absorbed when nothing ran")
			}
		})
	}
}
