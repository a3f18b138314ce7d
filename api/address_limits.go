package api

import (
	"context"
	"math"
	"net/netip"
	"strconv"
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
	failures   *limit.Buckets[netip.Prefix]
	lookups    *limit.Slots[struct{}] // of this instance
	lookupRate *rate.Limiter
}

func newAddressLimits() *addressLimits {
	return &addressLimits{
		failures:   limit.NewBuckets[netip.Prefix](addressBurst, addressRefill),
		lookups:    limit.NewSlots[struct{}](maxLookups, maxWaitingLookups, 0),
		lookupRate: rate.NewLimiter(lookupRate, lookupBurst),
	}
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
	leave, ok := a.lookups.Enter(ctx, struct{}{})
	if !ok {
		return c.refuseLookup()
	}
	defer leave()
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
