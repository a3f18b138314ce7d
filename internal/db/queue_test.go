package db

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// arrivals lets callers arrive at a full queue one after the other, and returns
// the order in which they came through. hold is how long each runs.
func arrivals(t *testing.T, hold time.Duration, arrive ...Priority) []int {
	t.Helper()
	q := writeQueue{limit: 1}
	var order []int
	synctest.Test(t, func(t *testing.T) {
		q.enter(Foreground)
		for i, p := range arrive {
			go func() {
				q.enter(p)
				order = append(order, i) // one runs at a time
				time.Sleep(hold)
				q.leave()
			}()
			synctest.Wait() // it has arrived
		}
		q.leave()
		time.Sleep(time.Duration(len(arrive)+1) * (hold + time.Nanosecond))
		synctest.Wait()
		q.enter(Background) // the queue is empty at the end
		q.leave()
	})
	return order
}

func TestWriteQueue(t *testing.T) {
	t.Parallel()
	f, b := Foreground, Background
	for _, c := range []struct {
		name   string
		hold   time.Duration
		arrive []Priority
		want   []int
	}{
		{"requests go through in the order in which they came", time.Millisecond, []Priority{f, f, f}, []int{0, 1, 2}},
		{"background work goes through in the order in which it came", time.Millisecond, []Priority{b, b, b}, []int{0, 1, 2}},
		{"requests go before background work that came earlier", time.Millisecond, []Priority{b, f, b, f}, []int{1, 3, 0, 2}},
		{"background work that has waited too long goes first once", 30 * time.Millisecond, []Priority{b, f, f, f, f}, []int{1, 2, 0, 3, 4}},
		{"the next background work goes first too, when it has waited too long", 30 * time.Millisecond, []Priority{b, b, f, f, f}, []int{2, 3, 0, 1, 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := arrivals(t, c.hold, c.arrive...); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// A flood of requests that never ends slows background work down; it does
// not stop it.
func TestAFloodOfRequestsDoesNotStopBackgroundWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := writeQueue{limit: 1}
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
					q.enter(Foreground)
					time.Sleep(5 * time.Millisecond)
					q.leave()
				}
			})
		}
		synctest.Wait()
		begun := time.Now()
		for range 10 {
			q.enter(Background)
			q.leave()
		}
		if took, most := time.Since(begun), 10*(maxBackgroundWait+10*time.Millisecond); took > most {
			t.Errorf("ten turns took %s, want at most %s", took, most)
		}
		close(stop)
		flood.Wait()
	})
}
