package api

import (
	"context"
	"math"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"till"
)

// What an address may try out: so many keys at once, and one more each time.
// Only failures count, and only keys that have not opened a session on this
// instance are held to it, so nobody with a good key notices who else is
// behind his address.
const (
	addressBurst  = 20
	addressRefill = 3 * time.Second
	maxAddresses  = 10_000 // buckets that are kept
)

// How many keys that are not known here are looked up at once and a second, and
// how many requests wait for it, on this instance. One that was just started
// knows none.
const (
	maxLooks     = 2
	looksRate    = 200
	looksBurst   = 1000
	maxLookers   = 5000 // then 503
	lookPatience = 5 * time.Second
)

// addresses holds a bucket of failures for each address that had some.
type addresses struct {
	turns chan struct{} // of those who are looked up
	pace  *rate.Limiter

	mu      sync.Mutex
	waiting int
	buckets map[netip.Prefix]*failures
}

// failures is the bucket of one address.
type failures struct {
	left float64   // at the time of at
	at   time.Time // of the last change
}

func newAddresses() *addresses {
	return &addresses{turns: make(chan struct{}, maxLooks), pace: rate.NewLimiter(looksRate, looksBurst), buckets: make(map[netip.Prefix]*failures)}
}

// network returns what counts as one address: an IPv4 address, or the IPv6
// network that one subscriber has.
func network(a netip.Addr) netip.Prefix {
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.WithZone("").Prefix(bits) // zero for the zero address
	return p
}

func (f *failures) fill(now time.Time) {
	if d := now.Sub(f.at); d > 0 {
		f.left, f.at = min(addressBurst, f.left+d.Seconds()/addressRefill.Seconds()), now
	}
}

// bucket returns that of an address. Of the first too many, those go that are
// full, because they say nothing, of a few that the map picks; if none is, any
// one, whose address may then try out a bucket more.
func (a *addresses) bucket(n netip.Prefix, now time.Time) *failures {
	if f := a.buckets[n]; f != nil {
		f.fill(now)
		return f
	}
	looked := 0
	for other, f := range a.buckets {
		if len(a.buckets) < maxAddresses || looked == 64 {
			break
		}
		looked++
		if f.fill(now); f.left >= addressBurst {
			delete(a.buckets, other)
		}
	}
	for other := range a.buckets {
		if len(a.buckets) < maxAddresses {
			break
		}
		delete(a.buckets, other)
	}
	f := &failures{left: addressBurst, at: now}
	a.buckets[n] = f
	return f
}

// errAddress refuses a key unseen: it says nothing about it.
var errAddress = &till.Error{Code: till.CodeRateLimited}

// take takes one try of an address, or says how long it has to wait.
func (a *addresses) take(n netip.Prefix) (wait time.Duration, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.bucket(n, time.Now())
	if f.left < 1 {
		return time.Duration((1 - f.left) * float64(addressRefill)), false
	}
	f.left--
	return 0, true
}

// give gives a try back that did not fail.
func (a *addresses) give(n netip.Prefix) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.bucket(n, time.Now())
	f.left = min(addressBurst, f.left+1)
}

// empty reports whether an address has no try left, without making a bucket.
func (a *addresses) empty(n netip.Prefix) (wait time.Duration, empty bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.buckets[n]
	if f == nil {
		return 0, false
	}
	f.fill(time.Now())
	return time.Duration((1 - f.left) * float64(addressRefill)), f.left < 1
}

// look lets f look a key up that is not known here. If f says that the key is
// not good, that was a try of the address; if that has none, f is not called
// and the answer is errAddress. It is asked again when its turn has come: who
// comes with thousands at once has used up his tries by then, and of a client
// that does, its first call has made the key known.
func (c *call) look(key string, f func() (failed bool, err error)) error {
	a, n := c.s.addresses, network(c.peer())
	if wait, empty := a.empty(n); empty {
		return c.refuseAddress(wait)
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), lookPatience)
	defer cancel()
	if !a.wait(ctx) {
		return c.refuseLook()
	}
	defer func() { <-a.turns }()
	if _, _, known := c.s.Accounts.KnownKey(key); known {
		_, err := f()
		return err
	}
	wait, ok := a.take(n)
	if !ok {
		return c.refuseAddress(wait)
	}
	failed := false
	defer func() {
		if !failed {
			a.give(n)
		}
	}()
	if a.pace.Wait(ctx) != nil {
		return c.refuseLook()
	}
	failed, err := f()
	return err
}

// refuseLook refuses a key unseen because too many wait to be looked up.
func (c *call) refuseLook() error {
	return c.refuse(refusedLook, &till.Error{Code: till.CodeServiceUnavailable})
}

func (c *call) refuseAddress(wait time.Duration) error {
	c.Header()["Retry-After"] = []string{strconv.Itoa(max(1, int(math.Ceil(wait.Seconds()))))}
	return c.refuse(refusedAddress, errAddress)
}

// wait waits for a turn, which the caller gives back. False: there are too
// many.
func (a *addresses) wait(ctx context.Context) bool {
	a.mu.Lock()
	full := a.waiting >= maxLookers
	if !full {
		a.waiting++
	}
	a.mu.Unlock()
	if full {
		return false
	}
	defer func() {
		a.mu.Lock()
		a.waiting--
		a.mu.Unlock()
	}()
	select {
	case a.turns <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}
