package wire

import (
	"fmt"
	"time"
)

// Seconds is a time that a configuration may give in seconds, with its bounds;
// 0 stands for the default.
type Seconds struct {
	Key         string
	Given       int
	Default     time.Duration
	Least, Most int
}

// Check returns what is wrong with it, with its key.
func (s Seconds) Check() error {
	if s.Given == 0 || s.Given >= s.Least && s.Given <= s.Most {
		return nil
	}
	return fmt.Errorf("%s: from %d to %d seconds", s.Key, s.Least, s.Most)
}

// Duration returns it.
func (s Seconds) Duration() time.Duration {
	if s.Given == 0 {
		return s.Default
	}
	return time.Duration(s.Given) * time.Second
}

// lease is how long a send whose process has died may still be on its way; see
// engine.Lease. slowest is how long a check may take.
const lease, slowest = 20 * time.Second, 10 * time.Second

// ProvenLost returns how long it takes at most, with an operator that answers,
// to prove that a request never arrived: the send is over with its lease, the settle
// time passes, the first read is a poll late, and the second comes another settle time
// after it. A window that is shorter leaves no time to send again.
func ProvenLost(settle, poll time.Duration) time.Duration {
	return lease + settle + poll + slowest + settle + slowest
}
