package providertest

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"till"
)

// Clock is a clock that the test advances.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock at a fixed time.
func NewClock() *Clock { return &Clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance advances the clock by d.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Tokens keeps tokens in memory: a provider.Tokens for tests and benchmarks.
type Tokens struct {
	now   func() time.Time
	fixed string // if not "", the only token
	mu    sync.Mutex
	all   map[string]keptToken
}

type keptToken struct {
	text  string
	until time.Time
}

// NewTokens returns tokens that expire by the clock.
func NewTokens(now func() time.Time) *Tokens {
	return &Tokens{now: now, all: map[string]keptToken{}}
}

// Token implements provider.Tokens for one process.
func (k *Tokens) Token(ctx context.Context, name, stale string, fetch func(ctx context.Context) (string, time.Duration, error)) (string, error) {
	if k.fixed != "" {
		return k.fixed, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if t, ok := k.all[name]; ok && t.text != stale && k.now().Before(t.until) {
		return t.text, nil
	}
	text, life, err := fetch(ctx)
	if err != nil {
		return "", err
	}
	k.all[name] = keptToken{text, k.now().Add(life)}
	return text, nil
}

// NewReference returns a reference in the form of a UUIDv4, like the service's.
func NewReference() till.ID {
	var id till.ID
	rand.Read(id[:])
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}
