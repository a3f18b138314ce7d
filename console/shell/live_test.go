package shell

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestHintsTakeTurns: however many tabs have something to hear, an instance
// sends its hints one after the other, and a tab that is alone does not wait.
func TestHintsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStreams()
		waits := func(turn <-chan struct{}) time.Duration {
			began := time.Now()
			<-turn
			return time.Since(began)
		}
		apart := func() time.Duration {
			time.Sleep(time.Minute)
			if first := waits(s.lineUp()); first != 0 {
				t.Errorf("a tab that is alone waits %v", first)
			}
			return waits(s.lineUp())
		}
		var turns []<-chan struct{}
		for range 50 {
			turns = append(turns, s.lineUp())
		}
		for i, turn := range turns {
			want := minSpacing
			if i == 0 {
				want = 0
			}
			if got := waits(turn); got != want {
				t.Fatalf("the hint of tab %d waits %v for the one before, not %v", i, got, want)
			}
		}
		for range 100 { // pages that take long to read
			s.readIn(20 * time.Millisecond)
		}
		if got := apart(); got < hintShare*19*time.Millisecond || got > hintShare*20*time.Millisecond {
			t.Errorf("hints about slow pages are %v apart", got)
		}
		for range 100 {
			s.readIn(time.Minute)
		}
		if got := apart(); got != maxSpacing {
			t.Errorf("hints about very slow pages are %v apart", got)
		}
	})
}

// TestNobodyWaitsForAClosedTab: a tab that is closed leaves the queue, so that the
// tabs that are open do not wait for turns that nobody takes.
func TestNobodyWaitsForAClosedTab(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStreams()
		<-s.lineUp()
		for range 3 { // also if the queue becomes empty, and begins again
			var turns []<-chan struct{}
			for range 50 {
				turns = append(turns, s.lineUp())
			}
			for _, turn := range turns {
				s.stepOut(turn)
			}
		}
		began := time.Now()
		first, second := s.lineUp(), s.lineUp()
		<-first
		if got := time.Since(began); got != minSpacing {
			t.Errorf("the first open tab waits %v", got)
		}
		<-second
		if got := time.Since(began); got != 2*minSpacing {
			t.Errorf("the second open tab waits %v", got)
		}
	})
}
