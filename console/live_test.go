package console

import (
	"testing"
	"time"
)

// TestHintsTakeTurns: however many tabs have something to hear, an instance
// sends its hints one after the other, and a tab that is alone does not wait.
func TestHintsTakeTurns(t *testing.T) {
	t.Parallel()
	s, now := newStreams(), time.Now()
	for i := range 50 {
		if got, want := s.turn(now), time.Duration(i)*minSpacing; got != want {
			t.Fatalf("the hint of tab %d waits %v, not %v", i, got, want)
		}
	}
	for range 100 { // pages that take long to read
		s.readIn(20 * time.Millisecond)
	}
	start := now.Add(time.Minute)
	s.turn(start)
	if got := s.turn(start); got < hintShare*19*time.Millisecond || got > hintShare*20*time.Millisecond {
		t.Errorf("hints about slow pages are %v apart", got)
	}
	for range 100 {
		s.readIn(time.Minute)
	}
	start = start.Add(time.Minute)
	s.turn(start)
	if got := s.turn(start); got != maxSpacing {
		t.Errorf("hints about very slow pages are %v apart", got)
	}
	later := start.Add(time.Minute)
	if got := s.turn(later); got != 0 {
		t.Errorf("a tab that is alone waits %v", got)
	}
}
