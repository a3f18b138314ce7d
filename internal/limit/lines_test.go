package limit

import (
	"testing"
	"time"
)

func TestLines(t *testing.T) {
	t.Parallel()
	l := Lines{Most: 2}
	for _, c := range []struct {
		after   time.Duration
		skipped int64
		ok      bool
	}{{0, 0, true}, {time.Millisecond, 0, true}, {2 * time.Millisecond, 0, false}, {time.Second - 1, 0, false}, {time.Second, 2, true}, {time.Second, 0, true}, {time.Second, 0, false}, {2 * time.Second, 1, true}} {
		if skipped, ok := l.Allow(noon.Add(c.after)); skipped != c.skipped || ok != c.ok {
			t.Errorf("after %v: %d, %v, want %d, %v", c.after, skipped, ok, c.skipped, c.ok)
		}
	}
}
