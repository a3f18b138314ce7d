package people

import (
	"context"
	"crypto/sha256"
	"net/netip"
	"time"

	"till"
	"till/store"
)

// Limits on guessing. They are counts in the database, so they hold over all
// instances.
const (
	freeGuesses   = 5           // of a login, before the first pause
	maxPause      = time.Minute // never a lock, which would be a weapon
	addressLimit  = 20          // failures of an address in addressWindow
	addressWindow = time.Minute
)

// pauseAfter returns how long a login is paused after its nth failure.
func pauseAfter(n int64) time.Duration {
	if n < freeGuesses {
		return 0
	}
	if n-freeGuesses > 5 {
		return maxPause
	}
	return min(time.Second<<(n-freeGuesses), maxPause)
}

// loginName and addressName are the names of counts: hashes, so that the table
// holds no login and no address.
func loginName(login string) [32]byte { return sha256.Sum256([]byte("login " + login)) }

// addressName counts a whole /64 of IPv6, which one household has.
func addressName(a netip.Addr) [32]byte {
	a = a.Unmap().WithZone("")
	bits := 32
	if a.Is6() {
		bits = 64
	}
	prefix, err := a.Prefix(bits)
	if err != nil { // the zero Addr: all of them share one count
		prefix = netip.Prefix{}
	}
	return sha256.Sum256([]byte("address " + prefix.String()))
}

// admit counts a guess before it is looked at, so that many at once cannot pass
// together; who was right is forgiven afterwards. login is "" where only the
// address counts. It refuses with WaitFirst.
func (p *People) admit(ctx context.Context, v Visit, login string) error {
	var refused error
	err := p.commit(ctx, nil, func(tx *store.Tx) ([]entry, error) {
		refused = nil
		now := p.now()
		wait, err := admitAddress(ctx, tx, addressName(v.Address), now)
		if err == nil && wait == 0 && login != "" {
			wait, err = admitLogin(ctx, tx, loginName(login), now)
		}
		if wait > 0 {
			refused = &Refusal{Code: WaitFirst, Wait: wait.Truncate(time.Second) + time.Second}
		}
		return nil, err
	})
	if err != nil {
		return err
	}
	return refused
}

func admitAddress(ctx context.Context, tx *store.Tx, name [32]byte, now till.Time) (wait time.Duration, err error) {
	g, err := tx.LockGuesses(ctx, name, now)
	if err != nil {
		return 0, err
	}
	if now >= g.Since.Add(addressWindow) || now < g.Since {
		g.Count, g.Since = 0, now
	}
	if g.Count >= addressLimit {
		return g.Since.Add(addressWindow).Sub(now), nil
	}
	g.Count, g.LastAt = g.Count+1, now
	return 0, tx.SaveGuesses(ctx, name, g)
}

func admitLogin(ctx context.Context, tx *store.Tx, name [32]byte, now till.Time) (wait time.Duration, err error) {
	g, err := tx.LockGuesses(ctx, name, now)
	if err != nil {
		return 0, err
	}
	if now >= g.LastAt.Add(guessesKept) || now < g.LastAt {
		g = store.Guesses{Since: now}
	}
	if until := g.LastAt.Add(pauseAfter(g.Count)); now < until {
		return until.Sub(now), nil
	}
	g.Count, g.LastAt = g.Count+1, now
	return 0, tx.SaveGuesses(ctx, name, g)
}

// forgive takes back what admit counted of somebody who was right: the whole
// count of the login if all is proven, one of it if a further step follows.
func forgive(ctx context.Context, tx *store.Tx, v Visit, login string, all bool) error {
	if err := tx.ForgiveGuess(ctx, addressName(v.Address)); err != nil || login == "" {
		return err
	}
	if all {
		return tx.ForgetGuesses(ctx, loginName(login))
	}
	return tx.ForgiveGuess(ctx, loginName(login))
}
