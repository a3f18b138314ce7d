package store

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// queue lets callers arrive at a held gate one after the other, and returns
// the order in which they came through. hold is how long each has the gate.
func queue(t *testing.T, hold time.Duration, arrive ...priority) []int {
	t.Helper()
	var g gate
	var order []int
	synctest.Test(t, func(t *testing.T) {
		g.lock(first)
		for i, p := range arrive {
			go func() {
				g.lock(p)
				order = append(order, i) // the gate is the lock
				time.Sleep(hold)
				g.unlock()
			}()
			synctest.Wait() // it has arrived
		}
		g.unlock()
		time.Sleep(time.Duration(len(arrive)+1) * (hold + time.Nanosecond))
		synctest.Wait()
		g.lock(behind) // the gate is free again at the end
		g.unlock()
	})
	return order
}

func TestGate(t *testing.T) {
	t.Parallel()
	f, b := first, behind
	for _, c := range []struct {
		name   string
		hold   time.Duration
		arrive []priority
		want   []int
	}{
		{"requests go through in the order in which they came", time.Millisecond, []priority{f, f, f}, []int{0, 1, 2}},
		{"work from behind goes through in the order in which it came", time.Millisecond, []priority{b, b, b}, []int{0, 1, 2}},
		{"requests go before work from behind that came earlier", time.Millisecond, []priority{b, f, b, f}, []int{1, 3, 0, 2}},
		{"work from behind that has waited too long goes first once", 30 * time.Millisecond, []priority{b, f, f, f, f}, []int{1, 2, 0, 3, 4}},
		{"the next work from behind goes first too, when it has waited too long", 30 * time.Millisecond, []priority{b, b, f, f, f}, []int{2, 3, 0, 1, 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := queue(t, c.hold, c.arrive...); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// A flood of requests that never ends slows work from behind down; it does
// not stop it.
func TestAFloodOfRequestsDoesNotStopWorkFromBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g gate
		stop := make(chan struct{})
		var flood sync.WaitGroup
		for range 8 {
			flood.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					g.lock(first)
					time.Sleep(5 * time.Millisecond)
					g.unlock()
				}
			})
		}
		synctest.Wait()
		begun := time.Now()
		for range 10 {
			g.lock(behind)
			g.unlock()
		}
		if took, most := time.Since(begun), 10*(patience+10*time.Millisecond); took > most {
			t.Errorf("ten turns took %s, want at most %s", took, most)
		}
		close(stop)
		flood.Wait()
	})
}
