package people

import (
	"context"
	"crypto/sha256"
	"net/netip"
	"time"

	"till"
	"till/internal/door"
	"till/internal/limit"
	"till/store"
	"till/store/access"
)

// Limits on guessing. Those of a login, a device and a session are counts in the database,
// so they hold over all instances. Those of an address are in memory and are checked before
// the database: who is refused by them has written nothing.
const (
	freeGuesses   = 5           // of a login, before the first pause
	maxPause      = time.Minute // no lockout: an attacker could use it
	addressBurst  = 20          // tries of an address at once
	addressRefill = 3 * time.Second
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

// The names of counts are hashes, so that the table holds no login.
func loginName(login string) [32]byte { return sha256.Sum256([]byte("login " + login)) }
func sessionName(session till.ID) [32]byte {
	return sha256.Sum256([]byte("session " + session.String()))
}

// admit counts a guess before it is looked at, so that many at once cannot pass
// together; a correct guess is refunded. login is "" where only the
// address counts. A device that the login has signed in on has a count of its own,
// which no stranger can fill, and waits for neither of the others. It refuses
// with WaitFirst.
func (p *People) admit(ctx context.Context, v Visit, login string) error {
	if device, known := p.deviceOf(v, login); known {
		return p.count(ctx, device)
	}
	if err := try(p.guesses, v, p.now()); err != nil || login == "" {
		return err
	}
	return p.count(ctx, loginName(login))
}

// admitSession counts a guess of somebody who is signed in: what strangers do to
// the login or the address does not keep them waiting.
func (p *People) admitSession(ctx context.Context, s *Session) error {
	return p.count(ctx, sessionName(s.ID))
}

// try takes one try from the visitor's address.
func try(b *limit.Buckets[netip.Prefix], v Visit, now till.Time) error {
	if wait, ok := b.Take(door.Network(v.Address), now.Std()); !ok {
		return waitFirst(wait)
	}
	return nil
}

func waitFirst(wait time.Duration) error {
	return &Refusal{Code: WaitFirst, Wait: wait.Truncate(time.Second) + time.Second}
}

// count counts a guess in the database. Who has to wait is refused by a read, without a write.
func (p *People) count(ctx context.Context, name [32]byte) error {
	err := p.c.Store.View(ctx, func(tx *store.Tx) error {
		g, err := access.ReadGuesses(ctx, tx, name)
		if err == nil {
			err = pausedAt(&g, p.now())
		}
		return err
	})
	if err != nil {
		return err
	}
	return p.commit(ctx, nil, func(tx *store.Tx) ([]entry, error) {
		now := p.now()
		g, err := access.LockGuesses(ctx, tx, name, now)
		if err != nil {
			return nil, err
		}
		if err := pausedAt(&g, now); err != nil {
			return nil, err
		}
		g.Count, g.LastAt = g.Count+1, now
		return nil, access.SaveGuesses(ctx, tx, name, g)
	})
}

// pausedAt refuses with WaitFirst while a count is paused. It begins an old count
// anew.
func pausedAt(g *access.Guesses, now till.Time) error {
	if now >= g.LastAt.Add(guessesKept) || now < g.LastAt {
		*g = access.Guesses{Since: now}
	}
	if until := g.LastAt.Add(pauseAfter(g.Count)); now < until {
		return waitFirst(until.Sub(now))
	}
	return nil
}

// forgive takes back what admit counted of somebody who was right: the whole
// count of the device or else the login if all is proven, one of it if a further
// step follows.
func (p *People) forgive(ctx context.Context, tx *store.Tx, v Visit, login string, all bool) error {
	take := access.ForgiveGuess
	if all {
		take = access.ForgetGuesses
	}
	if device, known := p.deviceOf(v, login); known {
		return take(ctx, tx, device)
	}
	p.guesses.Return(door.Network(v.Address), p.now().Std())
	if login == "" {
		return nil
	}
	return take(ctx, tx, loginName(login))
}
