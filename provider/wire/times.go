package wire

import "time"

// Seconds is a time in a configuration, with its bounds. The value 0 stands for the default.
type Seconds struct {
	Key      string
	Value    int
	Default  time.Duration
	Min, Max int
}

// Duration returns the time that is configured, or the default.
func (s Seconds) Duration() time.Duration {
	if s.Value == 0 {
		return s.Default
	}
	return time.Duration(s.Value) * time.Second
}

// lease is how long a send whose process has died may still be under way; see
// engine.Lease. maxCheckTime is how long a check may take.
const lease, maxCheckTime = 20 * time.Second, 10 * time.Second

// TimeToProveLost returns how long it takes at most to prove that a request never
// reached an operator that answers. The send ends with its lease, then the settle time
// passes. The first read comes up to a poll late, the second another settle time after it.
// A shorter approval window leaves no time to send again.
func TimeToProveLost(settle, poll time.Duration) time.Duration {
	return lease + settle + poll + maxCheckTime + settle + maxCheckTime
}
