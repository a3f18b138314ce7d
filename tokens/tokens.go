package tokens

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"till"
	"till/internal/seal"
	"till/provider"
	"till/store"
	"till/store/admin"
)

// SealLabel separates this key from every other key of the installation's secret.
const SealLabel = "till operator tokens v1"

const (
	// fetchTimeout is how long an operator may take for a token. MTN has taken 20 s.
	fetchTimeout = 35 * time.Second
	// lease is how long no other instance fetches: longer than a fetch may take.
	lease = fetchTimeout + 5*time.Second
	// failedBackoff is how long no instance fetches again after a failure. renewBackoff is
	// how long this instance does not retry an early refresh.
	failedBackoff = time.Second
	renewBackoff  = 5 * time.Second
	// Between two polls of the row while another instance fetches a token.
	minPollInterval = 20 * time.Millisecond
	maxPollInterval = 250 * time.Millisecond
	// maxToken is the longest token in bytes.
	maxToken = 16 << 10
	// keepExpired is how long unused tokens are kept.
	keepExpired = 24 * time.Hour
)

// Cache keeps the tokens of one installation. It is safe for concurrent use.
type Cache struct {
	store  *store.Store
	sealer *seal.Sealer
	self   till.ID // identifies this process
	log    *slog.Logger

	mu      sync.Mutex
	entries map[key]*entry
}

type key struct{ connection, name string }

// entry is what this process knows of a token.
type entry struct {
	mu        sync.Mutex
	token     string
	renewAt   time.Time // on this process's monotonic clock, like end
	expiresAt time.Time
	inFlight  *fetchInFlight // nil: no fetch under way here
}

// fetchInFlight is one fetch that many callers wait for.
type fetchInFlight struct {
	done  chan struct{}
	token string
	err   error
}

// New returns the cache of an installation.
func New(s *store.Store, ring *seal.Ring, log *slog.Logger) (*Cache, error) {
	sealer, err := ring.Sealer(SealLabel)
	if err != nil {
		return nil, fmt.Errorf("operators' tokens: %w", err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Cache{store: s, sealer: sealer, self: till.NewID(till.TimeOf(time.Now())), log: log, entries: map[key]*entry{}}, nil
}

// For returns the tokens of one connection with its settings. A token that was fetched with
// other settings, such as another account, is never used, even under the same name.
// settings is any text that differs when the settings do.
func (c *Cache) For(connection, settings string) provider.Tokens {
	return &connectionTokens{c, connection, settings}
}

// Expiry returns when the token of a connection that ends first will end; the zero time if
// this process has none. It waits for no fetch.
func (c *Cache) Expiry(connection string) (first time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, e := range c.entries {
		if at.connection != connection {
			continue
		}
		e.mu.Lock()
		if e.token != "" && (first.IsZero() || e.expiresAt.Before(first)) {
			first = e.expiresAt
		}
		e.mu.Unlock()
	}
	return first
}

type connectionTokens struct {
	cache                *Cache
	connection, settings string
}

type fetcher = func(ctx context.Context) (string, time.Duration, error)

// maxLookups is how often a caller tries again because the token it waited for is the one
// that was refused.
const maxLookups = 3

// Token implements provider.Tokens.
func (t *connectionTokens) Token(ctx context.Context, name, stale string, fetch func(ctx context.Context) (string, time.Duration, error)) (string, error) {
	at := key{t.connection, t.settings + " " + name}
	e := t.cache.entry(at)
	for range maxLookups {
		token, f := t.cache.lookup(ctx, e, at, stale, fetch)
		if f == nil {
			return token, nil
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		if f.err != nil {
			return "", f.err
		}
		if f.token != stale {
			return f.token, nil
		}
	}
	return "", provider.ErrTokenRefused
}

func (c *Cache) entry(at key) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[at]
	if e == nil {
		e = &entry{}
		c.entries[at] = e
	}
	return e
}

// lookup returns the cached token, or the fetch under way, which it starts if there is
// none. A token that expires soon is returned and refreshed meanwhile.
func (c *Cache) lookup(ctx context.Context, e *entry, at key, stale string, fetch fetcher) (string, *fetchInFlight) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	good := e.token != "" && e.token != stale && now.Before(e.expiresAt)
	if good && now.Before(e.renewAt) {
		return e.token, nil
	}
	if e.inFlight == nil {
		f := &fetchInFlight{done: make(chan struct{})}
		e.inFlight = f
		if good {
			e.renewAt = now.Add(renewBackoff) // in case this fails
			stale = e.token
		}
		// Others wait for it too, so it outlives the caller.
		go c.runFetch(context.WithoutCancel(ctx), e, f, at, stale, fetch, good)
	}
	if good {
		return e.token, nil
	}
	return "", e.inFlight
}

// runFetch fetches a token and wakes the callers that wait for it.
func (c *Cache) runFetch(ctx context.Context, e *entry, f *fetchInFlight, at key, stale string, fetch fetcher, early bool) {
	ctx, cancel := context.WithTimeout(ctx, lease)
	defer cancel()
	var g fetched
	err := errors.New("the search for a token was aborted") // if it panics
	defer func() {
		if v := recover(); v != nil {
			c.log.Error("operator token fetch panicked", "connection", at.connection, "panic", v)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if err == nil {
			e.token, e.renewAt, e.expiresAt = g.token, g.renewAt, g.expiresAt
		}
		f.token, f.err, e.inFlight = g.token, err, nil
		close(f.done)
	}()
	if g, err = c.obtain(ctx, at, stale, fetch, early); err != nil && early {
		c.log.Warn("operator token not renewed", "connection", at.connection, "name", at.name, "error", err)
	}
}

// fetched is a token and its end, on our clock.
type fetched struct {
	token              string
	renewAt, expiresAt time.Time
}

// obtain returns a token other than the stale one: from the database, or from the operator
// if no other instance is fetching one.
func (c *Cache) obtain(ctx context.Context, at key, stale string, fetch fetcher, early bool) (fetched, error) {
	for pause := minPollInterval; ; pause = min(2*pause, maxPollInterval) {
		g, row, err := c.read(ctx, at, stale)
		if err != nil || g.token != "" {
			return g, err
		}
		if row != nil { // the lease is ours
			if early {
				stale = "" // it is still valid, so an operator may return it again
			}
			return c.fetch(ctx, row, stale, fetch)
		}
		select {
		case <-time.After(pause + rand.N(pause/2)):
		case <-ctx.Done():
			return fetched{}, fmt.Errorf("another instance has not got a token in time: %w", ctx.Err())
		}
	}
}

// read returns a valid token from the database. If there is none, it returns the row with
// the lease taken; if another instance has the lease, neither.
func (c *Cache) read(ctx context.Context, at key, stale string) (g fetched, row *admin.OperatorToken, err error) {
	asked := time.Now()
	err = c.store.View(ctx, func(tx *store.Tx) error {
		g, row = fetched{}, nil
		r, err := admin.ReadOperatorToken(ctx, tx, at.connection, at.name)
		if err != nil {
			return err
		}
		if token, ok := c.unseal(r); ok && token != stale && tx.Now() < r.ExpiresAt {
			g = fetched{token, asked.Add(r.RefreshAt.Sub(tx.Now())), asked.Add(r.ExpiresAt.Sub(tx.Now()))}
			return nil
		}
		// A lease that ends later than any can was written before the clock was set back.
		if r.LeaseUntil <= tx.Now() || r.LeaseUntil > tx.Now().Add(lease) {
			row = r
		}
		return nil
	})
	if err != nil || row == nil {
		return g, nil, err
	}
	won := false
	err = c.store.Update(ctx, func(tx *store.Tx) (err error) {
		r := *row
		r.LeaseUntil, r.LeaseOwner = tx.Now().Add(lease), c.self
		if won, err = admin.SwapOperatorToken(ctx, tx, &r); won {
			*row = r
		}
		return err
	})
	if errors.Is(err, store.ErrUnknownCommit) {
		return fetched{}, nil, nil // if it is ours after all, it expires by itself
	}
	if err != nil || !won {
		return fetched{}, nil, err
	}
	return fetched{}, row, nil
}

// unseal decrypts a row's token. One that cannot be decrypted counts as none and is fetched
// again.
func (c *Cache) unseal(r *admin.OperatorToken) (string, bool) {
	if len(r.Sealed) == 0 {
		return "", false
	}
	text, err := c.sealer.Open(r.Sealed, SealPlace(r.Connection, r.Name))
	if err != nil {
		c.log.Warn("operator token not decrypted", "connection", r.Connection, "name", r.Name)
		return "", false
	}
	return string(text), true
}

// SealPlace returns what a sealed token is bound to: the key of its row.
func SealPlace(connection, name string) []byte { return []byte(connection + "\x00" + name) }

// fetch fetches a token from the operator while it holds the lease, and records the result.
func (c *Cache) fetch(ctx context.Context, row *admin.OperatorToken, stale string, fetch fetcher) (fetched, error) {
	asked, leased := time.Now(), row.LeaseUntil.Add(-lease)
	asking, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	token, life, err := fetch(asking)
	switch {
	case err == nil && token == "":
		err = errors.New("the operator gave an empty token")
	case err == nil && len(token) > maxToken:
		err = errors.New("the operator gave a token that is too long to be one")
	case err == nil && token == stale: // not empty
		err = provider.ErrTokenRefused
	}
	if err != nil {
		c.save(ctx, row, func(now till.Time) { row.LeaseUntil = now.Add(failedBackoff) })
		return fetched{}, err
	}
	early := provider.EarlyRefresh(life)
	g := fetched{token, asked.Add(life - early), asked.Add(life)}
	c.save(ctx, row, func(till.Time) {
		row.Sealed = c.sealer.Seal([]byte(token), SealPlace(row.Connection, row.Name))
		row.ExpiresAt, row.RefreshAt, row.LeaseUntil = leased.Add(life), leased.Add(life-early), 0
	})
	return g, nil
}

// save gives the lease back with the result. If that fails, the token is valid
// nevertheless, and the lease expires by itself.
func (c *Cache) save(ctx context.Context, row *admin.OperatorToken, set func(now till.Time)) {
	err := c.store.Update(ctx, func(tx *store.Tx) error {
		r := row.Version
		set(tx.Now())
		_, err := admin.SwapOperatorToken(ctx, tx, row)
		row.Version = r // the function may run twice
		if err != nil {
			return err
		}
		return admin.DeleteOperatorTokens(ctx, tx, row.Connection, tx.Now().Add(-keepExpired))
	})
	if err != nil {
		c.log.Warn("operator token not stored", "connection", row.Connection, "name", row.Name, "error", err)
	}
}
