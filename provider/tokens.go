package provider

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrTokenRefused says that an operator gave us the very token that it has
// refused.
var ErrTokenRefused = errors.New("the operator gave the token again that it refuses")

// EarlyRefresh returns how long before its end a token is renewed: a sixth of
// its life, ten minutes at most. MTN asks for ten minutes of sixty.
func EarlyRefresh(life time.Duration) time.Duration {
	return min(life/6, 10*time.Minute)
}

// MemoryTokens returns Tokens that are kept by this process alone: for tests,
// simulators and a check of a connection from outside.
func MemoryTokens() Tokens {
	return &memoryTokens{entries: map[string]*tokenEntry{}}
}

type memoryTokens struct {
	mu      sync.Mutex
	entries map[string]*tokenEntry
}

// tokenEntry is locked while it is fetched, so that those who wait get what one
// of them fetched.
type tokenEntry struct {
	lock  chan struct{}
	token string
	end   time.Time
}

// Token implements Tokens.
func (m *memoryTokens) Token(ctx context.Context, name, stale string, fetch func(context.Context) (string, time.Duration, error)) (string, error) {
	m.mu.Lock()
	k := m.entries[name]
	if k == nil {
		k = &tokenEntry{lock: make(chan struct{}, 1)}
		m.entries[name] = k
	}
	m.mu.Unlock()
	select {
	case k.lock <- struct{}{}:
		defer func() { <-k.lock }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if k.token != "" && k.token != stale && time.Now().Before(k.end) {
		return k.token, nil
	}
	asked := time.Now()
	token, life, err := fetch(ctx)
	switch {
	case err != nil:
		return "", err
	case token == stale:
		return "", ErrTokenRefused
	}
	k.token, k.end = token, asked.Add(life-EarlyRefresh(life))
	return token, nil
}
