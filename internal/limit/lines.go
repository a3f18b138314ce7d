package limit

import (
	"sync"
	"time"
)

// Lines lets Most lines of the log pass in a second, and counts the others. It is safe for
// concurrent use.
type Lines struct {
	Most int

	mu      sync.Mutex
	since   time.Time
	written int
	skipped int64
}

// Allow reports whether a line may be written, and how many were not since the last one.
func (l *Lines) Allow(now time.Time) (skipped int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.since) >= time.Second {
		l.since, l.written = now, 0
	}
	if l.written == l.Most {
		l.skipped++
		return 0, false
	}
	l.written++
	skipped, l.skipped = l.skipped, 0
	return skipped, true
}
