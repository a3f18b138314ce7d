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

// How many invalid keys an address may try: a burst, then one more per refill.
// Only failures count, and only keys that have not opened a session on this instance
// are limited. So a client with a valid key is not limited by others behind its address.
const (
	addressBurst  = 20
	addressRefill = 3 * time.Second
	maxAddresses  = 10_000 // buckets that are kept
)

// How many unknown keys are looked up at once and per second on this instance, and
// how many requests wait for a lookup. An instance that was just started knows no key.
const (
	maxLookups        = 2
	lookupRate        = 200
	lookupBurst       = 1000
	maxWaitingLookups = 5000 // then 503
	lookupTimeout     = 5 * time.Second
)

// addressLimits holds a bucket of failures for each address that had some.
type addressLimits struct {
	lookupSlots chan struct{} // for keys that are being looked up
	lookupRate  *rate.Limiter

	mu      sync.Mutex
	waiting int
	buckets map[netip.Prefix]*failureBucket
}

// failureBucket is the bucket of one address.
type failureBucket struct {
	tries float64   // at the time of at
	at    time.Time // of the last change
}

func newAddressLimits() *addressLimits {
	return &addressLimits{lookupSlots: make(chan struct{}, maxLookups), lookupRate: rate.NewLimiter(lookupRate, lookupBurst), buckets: make(map[netip.Prefix]*failureBucket)}
}

// network returns what counts as one address: an IPv4 address, or a subscriber's IPv6
// network.
func network(a netip.Addr) netip.Prefix {
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.WithZone("").Prefix(bits) // zero for the zero address
	return p
}

func (f *failureBucket) fill(now time.Time) {
	if d := now.Sub(f.at); d > 0 {
		f.tries, f.at = min(addressBurst, f.tries+d.Seconds()/addressRefill.Seconds()), now
	}
}

// bucket returns the bucket of an address. If there are too many buckets, it drops full
// ones, which limit nobody, among a few that the map yields. If none is full, it drops any
// one, whose address gets a new bucket of tries.
func (a *addressLimits) bucket(n netip.Prefix, now time.Time) *failureBucket {
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
		if f.fill(now); f.tries >= addressBurst {
			delete(a.buckets, other)
		}
	}
	for other := range a.buckets {
		if len(a.buckets) < maxAddresses {
			break
		}
		delete(a.buckets, other)
	}
	f := &failureBucket{tries: addressBurst, at: now}
	a.buckets[n] = f
	return f
}

// errAddressLimited rejects a key that was not looked up, so it says nothing about the key.
var errAddressLimited = &till.Error{Code: till.CodeRateLimited}

// takeTry takes one try from an address, or returns how long it has to wait.
func (a *addressLimits) takeTry(n netip.Prefix) (wait time.Duration, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.bucket(n, time.Now())
	if f.tries < 1 {
		return time.Duration((1 - f.tries) * float64(addressRefill)), false
	}
	f.tries--
	return 0, true
}

// returnTry gives back a try that did not fail.
func (a *addressLimits) returnTry(n netip.Prefix) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.bucket(n, time.Now())
	f.tries = min(addressBurst, f.tries+1)
}

// exhausted reports whether an address has no try left, without creating a bucket.
func (a *addressLimits) exhausted(n netip.Prefix) (wait time.Duration, empty bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.buckets[n]
	if f == nil {
		return 0, false
	}
	f.fill(time.Now())
	return time.Duration((1 - f.tries) * float64(addressRefill)), f.tries < 1
}

// lookUpKey lets f look up a key that is not known here. If f fails, that uses up one try
// of the address. Without a try left, f is not called and the error is errAddressLimited.
// This is checked again after the wait for a slot: a flood has used up its tries by then,
// and a client's first call has made its key known.
func (c *exchange) lookUpKey(key string, f func() (failed bool, err error)) error {
	a, n := c.s.addressLimits, network(c.peer())
	if wait, empty := a.exhausted(n); empty {
		return c.refuseAddress(wait)
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), lookupTimeout)
	defer cancel()
	if !a.acquireLookup(ctx) {
		return c.refuseLookup()
	}
	defer func() { <-a.lookupSlots }()
	if _, _, known := c.s.Accounts.KnownKey(key); known {
		_, err := f()
		return err
	}
	wait, ok := a.takeTry(n)
	if !ok {
		return c.refuseAddress(wait)
	}
	failed := false
	defer func() {
		if !failed {
			a.returnTry(n)
		}
	}()
	if a.lookupRate.Wait(ctx) != nil {
		return c.refuseLookup()
	}
	failed, err := f()
	return err
}

// refuseLookup rejects a key without a lookup, because too many wait for one.
func (c *exchange) refuseLookup() error {
	return c.refuse(refusedLookup, &till.Error{Code: till.CodeServiceUnavailable})
}

func (c *exchange) refuseAddress(wait time.Duration) error {
	c.Header()["Retry-After"] = []string{strconv.Itoa(max(1, int(math.Ceil(wait.Seconds()))))}
	return c.refuse(refusedAddress, errAddressLimited)
}

// acquireLookup waits for a lookup slot, which the caller gives back. It reports false if
// too many wait.
func (a *addressLimits) acquireLookup(ctx context.Context) bool {
	a.mu.Lock()
	full := a.waiting >= maxWaitingLookups
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
	case a.lookupSlots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}
