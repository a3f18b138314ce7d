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
		if got, want := s.turn(now), time.Duration(i)*hintSpacing; got != want {
			t.Fatalf("the hint of tab %d waits %v, not %v", i, got, want)
		}
	}
	later := now.Add(time.Minute)
	if got := s.turn(later); got != 0 {
		t.Errorf("a tab that is alone waits %v", got)
	}
}
