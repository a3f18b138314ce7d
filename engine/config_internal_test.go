package engine

import (
	"testing"
	"time"
)

// Other instances and a restored backup count on it that no lease is longer than Lease.
func TestALeaseIsNeverLonger(t *testing.T) {
	t.Parallel()
	for given, want := range map[time.Duration]time.Duration{0: Lease, -1: Lease, 5 * time.Second: 5 * time.Second, time.Hour: Lease} {
		c := Config{PollInterval: 1, Lease: given}
		if c.setDefaults(); c.Lease != want {
			t.Errorf("a lease of %s becomes %s, want %s", given, c.Lease, want)
		}
	}
}
