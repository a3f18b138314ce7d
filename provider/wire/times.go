package wire

import (
	"fmt"
	"time"
)

// Seconds is a time that a configuration may give in seconds, with its bounds;
// 0 stands for the default.
type Seconds struct {
	Key      string
	Value    int
	Default  time.Duration
	Min, Max int
}

// Check returns what is wrong with it, with its key.
func (s Seconds) Check() error {
	if s.Value == 0 || s.Value >= s.Min && s.Value <= s.Max {
		return nil
	}
	return fmt.Errorf("%s: from %d to %d seconds", s.Key, s.Min, s.Max)
}

// Duration returns it.
func (s Seconds) Duration() time.Duration {
	if s.Value == 0 {
		return s.Default
	}
	return time.Duration(s.Value) * time.Second
}

// lease is how long a send whose process has died may still be on its way; see
// engine.Lease. slowest is how long a check may take.
const lease, maxCheckTime = 20 * time.Second, 10 * time.Second

// TimeToProveLost returns how long it takes at most, with an operator that answers,
// to prove that a request never arrived: the send is over with its lease, the settle
// time passes, the first read is a poll late, and the second comes another settle time
// after it. A window that is shorter leaves no time to send again.
func TimeToProveLost(settle, poll time.Duration) time.Duration {
	return lease + settle + poll + maxCheckTime + settle + maxCheckTime
}
