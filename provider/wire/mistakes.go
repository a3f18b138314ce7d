package wire

import (
	"errors"
	"fmt"
	"strings"

	"till/provider"
)

// The limits of what a configuration may hold.
const (
	maxSecret = 4096    // characters of a credential
	maxRate   = 100_000 // calls per second
)

// Mistakes collects what is wrong with a configuration, each mistake with its key.
type Mistakes struct{ all []error }

// Add records a mistake.
func (m *Mistakes) Add(key, format string, args ...any) {
	m.all = append(m.all, fmt.Errorf(key+": "+format, args...))
}

// Err returns all mistakes, nil if there are none.
func (m *Mistakes) Err() error { return errors.Join(m.all...) }

// BaseURL checks base_url.
func (m *Mistakes) BaseURL(s string) {
	if err := CheckBaseURL(s); err != nil {
		m.Add("base_url", "%w", err)
	}
}

// Operations checks operations.
func (m *Mistakes) Operations(operations []string) {
	for _, op := range operations {
		if op != "payments" && op != "payouts" {
			m.Add("operations", "%q is neither \"payments\" nor \"payouts\"", Truncate(op, 40))
		}
	}
}

// Secret checks a credential, which may be empty. An end of line that an editor
// left in a file is a mistake that operators answer with a plain refusal.
func (m *Mistakes) Secret(key, text string) {
	if len(text) > maxSecret || strings.ContainsAny(text, "\r\n\t\x00") || strings.TrimSpace(text) != text {
		m.Add(key, "it has a space, a line break or more than %d characters", maxSecret)
	}
}

// Rate checks calls per second, where 0 stands for the default.
func (m *Mistakes) Rate(key string, n int) {
	if n < 0 || n > maxRate {
		m.Add(key, "from 1 to %d calls per second", maxRate)
	}
}

// Rate returns a rate of n calls per second, or of the default where n is 0.
func Rate(n, otherwise int) provider.Rate {
	if n == 0 {
		n = otherwise
	}
	return provider.Rate{PerSecond: n, Burst: n}
}

// Seconds checks times. It reports whether all of them are within their bounds.
func (m *Mistakes) Seconds(times ...Seconds) bool {
	fine := true
	for _, s := range times {
		if s.Value != 0 && (s.Value < s.Min || s.Value > s.Max) {
			m.Add(s.Key, "from %d to %d seconds", s.Min, s.Max)
			fine = false
		}
	}
	return fine
}
