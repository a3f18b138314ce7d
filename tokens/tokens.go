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
)

// label keeps every other use of the installation's secret from having this
// key.
const label = "till operator tokens v1"

const (
	// fetchTimeout is how long an operator may take to give a token. MTN has
	// been seen to take 20 s.
	fetchTimeout = 35 * time.Second
	// lease is how long nobody else asks; longer than a fetch may take.
	lease = fetchTimeout + 5*time.Second
	// refusedPause is how long nobody asks again after an operator gave none,
	// and renewPause how long nobody here tries again to renew one early.
	refusedPause = time.Second
	renewPause   = 5 * time.Second
	// Between two looks at whether another instance has got one.
	firstLook = 20 * time.Millisecond
	maxLook   = 250 * time.Millisecond
	// maxToken is how long a token may be.
	maxToken = 16 << 10
	// keepExpired is how long tokens that are used no more are kept.
	keepExpired = 24 * time.Hour
)

// Keeper keeps the tokens of one installation. It is safe for concurrent use.
type Keeper struct {
	store  *store.Store
	sealer *seal.Sealer
	self   till.ID // names this process
	log    *slog.Logger

	mu   sync.Mutex
	kept map[key]*entry
}

type key struct{ connection, name string }

// entry is what this process knows of a token.
type entry struct {
	mu     sync.Mutex
	token  string
	renew  time.Time // on our own monotonic clock, as is end
	end    time.Time
	flight *flight // nil: nobody here is getting one
}

// flight is one search for a token, which many wait for.
type flight struct {
	done  chan struct{}
	token string
	err   error
}

// New returns the keeper of an installation.
func New(s *store.Store, secret []byte, log *slog.Logger) (*Keeper, error) {
	sealer, err := seal.New(secret, label)
	if err != nil {
		return nil, fmt.Errorf("operators' tokens: %w", err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Keeper{store: s, sealer: sealer, self: till.NewID(till.TimeOf(time.Now())), log: log, kept: map[key]*entry{}}, nil
}

// For returns the tokens of one connection, as it is set up: what was fetched
// for other settings, another account above all, is never used, even if it
// stands under the same name. Settings are anything that differs when they do.
func (k *Keeper) For(connection, settings string) provider.Tokens {
	return &tokensOf{k, connection, settings}
}

type tokensOf struct {
	k                    *Keeper
	connection, settings string
}

type fetcher = func(ctx context.Context) (string, time.Duration, error)

// maxTries is how often a caller looks again because what it waited for is the
// very token that it was refused with.
const maxTries = 3

// Token implements provider.Tokens.
func (t *tokensOf) Token(ctx context.Context, name, stale string, fetch func(ctx context.Context) (string, time.Duration, error)) (string, error) {
	at := key{t.connection, t.settings + " " + name}
	e := t.k.entry(at)
	for range maxTries {
		token, f := t.k.look(ctx, e, at, stale, fetch)
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

func (k *Keeper) entry(at key) *entry {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.kept[at]
	if e == nil {
		e = &entry{}
		k.kept[at] = e
	}
	return e
}

// look returns the token that is remembered, or the search for one, which it
// begins if there is none. A token that ends soon is good, and is renewed
// meanwhile.
func (k *Keeper) look(ctx context.Context, e *entry, at key, stale string, fetch fetcher) (string, *flight) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	good := e.token != "" && e.token != stale && now.Before(e.end)
	if good && now.Before(e.renew) {
		return e.token, nil
	}
	if e.flight == nil {
		f := &flight{done: make(chan struct{})}
		e.flight = f
		if good {
			e.renew = now.Add(renewPause) // if this comes to nothing
			stale = e.token
		}
		// Others wait for it too, so it outlives the caller.
		go k.search(context.WithoutCancel(ctx), e, f, at, stale, fetch, good)
	}
	if good {
		return e.token, nil
	}
	return "", e.flight
}

// search finds a token and ends the flight.
func (k *Keeper) search(ctx context.Context, e *entry, f *flight, at key, stale string, fetch fetcher, early bool) {
	ctx, cancel := context.WithTimeout(ctx, lease)
	defer cancel()
	var g got
	err := errors.New("the search for a token was aborted") // if it panics
	defer func() {
		if v := recover(); v != nil {
			k.log.Error("the search for an operator's token panicked", "connection", at.connection, "panic", v)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if err == nil {
			e.token, e.renew, e.end = g.token, g.renew, g.end
		}
		f.token, f.err, e.flight = g.token, err, nil
		close(f.done)
	}()
	if g, err = k.obtain(ctx, at, stale, fetch, early); err != nil && early {
		k.log.Warn("an operator's token could not be renewed early", "connection", at.connection, "name", at.name, "error", err)
	}
}

// got is a token and how long it is good for, on our own clock.
type got struct {
	token      string
	renew, end time.Time
}

// obtain returns a token other than the stale one: from the database, or from
// the operator if nobody else is asking it.
func (k *Keeper) obtain(ctx context.Context, at key, stale string, fetch fetcher, early bool) (got, error) {
	for pause := firstLook; ; pause = min(2*pause, maxLook) {
		g, row, err := k.read(ctx, at, stale)
		if err != nil || g.token != "" {
			return g, err
		}
		if row != nil { // the lease is ours
			if early {
				stale = "" // it works still, so an operator may well give it again
			}
			return k.fetch(ctx, row, stale, fetch)
		}
		select {
		case <-time.After(pause + rand.N(pause/2)):
		case <-ctx.Done():
			return got{}, fmt.Errorf("another instance has not got a token in time: %w", ctx.Err())
		}
	}
}

// read returns a good token from the database; if there is none, the row with
// the lease taken; if another instance has that, neither.
func (k *Keeper) read(ctx context.Context, at key, stale string) (g got, row *store.OperatorToken, err error) {
	asked := time.Now()
	err = k.store.View(ctx, func(tx *store.Tx) error {
		g, row = got{}, nil
		r, err := tx.OperatorToken(ctx, at.connection, at.name)
		if err != nil {
			return err
		}
		if token, ok := k.open(r); ok && token != stale && tx.Now() < r.ExpiresAt {
			g = got{token, asked.Add(r.RefreshAt.Sub(tx.Now())), asked.Add(r.ExpiresAt.Sub(tx.Now()))}
			return nil
		}
		// A lease that is longer than any was written before the clock was set
		// back.
		if r.LeaseUntil <= tx.Now() || r.LeaseUntil > tx.Now().Add(lease) {
			row = r
		}
		return nil
	})
	if err != nil || row == nil {
		return g, nil, err
	}
	won := false
	err = k.store.Update(ctx, func(tx *store.Tx) (err error) {
		r := *row
		r.LeaseUntil, r.LeaseOwner = tx.Now().Add(lease), k.self
		if won, err = tx.SwapOperatorToken(ctx, &r); won {
			*row = r
		}
		return err
	})
	if errors.Is(err, store.ErrUnknownCommit) {
		return got{}, nil, nil // if it is ours after all, it ends by itself
	}
	if err != nil || !won {
		return got{}, nil, err
	}
	return got{}, row, nil
}

// open unseals a row's token. One that does not open is as good as none: it
// is asked for again.
func (k *Keeper) open(r *store.OperatorToken) (string, bool) {
	if len(r.Sealed) == 0 {
		return "", false
	}
	text, err := k.sealer.Open(r.Sealed, place(r))
	if err != nil {
		k.log.Warn("an operator's token does not open; a new one is asked for", "connection", r.Connection, "name", r.Name)
		return "", false
	}
	return string(text), true
}

// place binds a sealed token to its row.
func place(r *store.OperatorToken) []byte { return []byte(r.Connection + "\x00" + r.Name) }

// fetch asks the operator, with the lease held, and writes down what it says.
func (k *Keeper) fetch(ctx context.Context, row *store.OperatorToken, stale string, fetch fetcher) (got, error) {
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
		k.write(ctx, row, func(now till.Time) { row.LeaseUntil = now.Add(refusedPause) })
		return got{}, err
	}
	early := provider.EarlyRefresh(life)
	g := got{token, asked.Add(life - early), asked.Add(life)}
	k.write(ctx, row, func(till.Time) {
		row.Sealed = k.sealer.Seal([]byte(token), place(row))
		row.ExpiresAt, row.RefreshAt, row.LeaseUntil = leased.Add(life), leased.Add(life-early), 0
	})
	return g, nil
}

// write gives the lease back with what has come of it. If that fails the token
// is good nevertheless, and the lease ends by itself.
func (k *Keeper) write(ctx context.Context, row *store.OperatorToken, set func(now till.Time)) {
	err := k.store.Update(ctx, func(tx *store.Tx) error {
		r := row.Version
		set(tx.Now())
		_, err := tx.SwapOperatorToken(ctx, row)
		row.Version = r // the function may run twice
		if err != nil {
			return err
		}
		return tx.DeleteOperatorTokens(ctx, row.Connection, tx.Now().Add(-keepExpired))
	})
	if err != nil {
		k.log.Warn("keep an operator's token", "connection", row.Connection, "name", row.Name, "error", err)
	}
}
