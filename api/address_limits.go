package api

import (
	"context"
	"math"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"till"
	"till/internal/door"
	"till/internal/limit"
)

// How many invalid keys an address may try: a burst, then one more per refill.
// Only failures count, and only keys that have not opened a session on this instance
// are limited. So a client with a valid key is not limited by others behind its address.
const (
	addressBurst  = 20
	addressRefill = 3 * time.Second
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

// addressLimits holds the failures of addresses, and the lookups under way.
type addressLimits struct {
	failures    *limit.Buckets
	lookupSlots chan struct{} // for keys that are being looked up
	lookupRate  *rate.Limiter

	mu      sync.Mutex
	waiting int
}

func newAddressLimits() *addressLimits {
	return &addressLimits{failures: limit.NewBuckets(addressBurst, addressRefill), lookupSlots: make(chan struct{}, maxLookups), lookupRate: rate.NewLimiter(lookupRate, lookupBurst)}
}

// errAddressLimited rejects a key that was not looked up, so it says nothing about the key.
var errAddressLimited = &till.Error{Code: till.CodeRateLimited}

// lookUpKey lets f look up a key that is not known here. If f fails, that uses up one try
// of the address. Without a try left, f is not called and the error is errAddressLimited.
// This is checked again after the wait for a slot: a flood has used up its tries by then,
// and a client's first call has made its key known.
func (c *exchange) lookUpKey(key string, f func() (failed bool, err error)) error {
	a, n := c.s.addressLimits, door.Network(c.peer())
	if wait, empty := a.failures.Empty(n, time.Now()); empty {
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
	wait, ok := a.failures.Take(n, time.Now())
	if !ok {
		return c.refuseAddress(wait)
	}
	failed := false
	defer func() {
		if !failed {
			a.failures.Return(n, time.Now())
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
