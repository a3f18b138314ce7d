package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"till"
	"till/provider"
	"till/store"
	"till/store/admin"
)

// An operator's rate limit is one token bucket in the database. A claim takes tokens in its
// own commit. A create must not wait for that row, so an instance prefetches a few tokens,
// which expire soon.
//
// In any time t, all instances together make at most rate*t + burst calls. Prefetched
// tokens that may still be used count as if they were in the bucket. So the two together
// never exceed the burst.
const (
	token = 1_000_000 // tokens are counted in millionths: rate * microseconds

	// prefetchedLife is how long a prefetched token may be used. It counts as held until
	// the end of the period after the one in which it was taken. So a use that is late by
	// one period does no harm.
	prefetchedLife = time.Second
	prefetchPeriod = 2 * time.Second
	// prefetchInterval is the shortest time between two prefetches.
	prefetchInterval = 100 * time.Millisecond
	// tokenWait is the longest pause of a claim that ran short of tokens: a commit for each
	// single token would be waste.
	tokenWait = 100 * time.Millisecond
)

func burstOf(r provider.Rate) int64 { return int64(max(1, r.Burst)) }

// refill adds the tokens since the last refill, period by period: what is held during a
// period leaves less room in the bucket.
func refill(b *admin.Budget, r provider.Rate, now till.Time) {
	length := till.Time(prefetchPeriod.Microseconds())
	span := int64(now / length)
	if span < b.PrefetchPeriod { // the clock was set back: what is held counts from now
		b.Prefetched, b.PrefetchedBefore = b.Prefetched+b.PrefetchedBefore, 0
		b.PrefetchPeriod = span
	}
	for b.PrefetchPeriod < span && b.Prefetched+b.PrefetchedBefore > 0 {
		b.PrefetchPeriod++
		fill(b, r, till.Time(b.PrefetchPeriod)*length)
		b.Prefetched, b.PrefetchedBefore = 0, b.Prefetched
	}
	b.PrefetchPeriod = span
	fill(b, r, now)
}

// fill adds the tokens of a time in which the held ones stayed the same.
func fill(b *admin.Budget, r provider.Rate, now till.Time) {
	limit := max(0, burstOf(r)-b.Prefetched-b.PrefetchedBefore) * token
	// A clock that was set back adds nothing and takes nothing.
	passed, rate := max(0, int64(now-b.FilledAt)), int64(r.PerSecond)
	if b.Tokens < 0 || passed > limit/rate {
		b.Tokens = limit
	} else {
		b.Tokens = min(b.Tokens+passed*rate, limit)
	}
	b.FilledAt = now
}

// timeToToken returns how long a claim that ran short waits: until half of the burst is
// there, but not long.
func timeToToken(b *admin.Budget, r provider.Rate) time.Duration {
	until := func(tokens int64) time.Duration {
		return time.Duration(max(0, tokens-b.Tokens)/int64(r.PerSecond)+1) * time.Microsecond
	}
	return max(until(token), min(until(burstOf(r)*token/2), tokenWait))
}

// prefetch takes tokens for use without a commit. It takes them only from the upper half of
// the bucket, so that waiting steps go first. Instances never hold more than half of the
// burst.
func prefetch(b *admin.Budget, r provider.Rate) int64 {
	half := burstOf(r) / 2
	n := min((b.Tokens-half*token)/token, half-b.Prefetched-b.PrefetchedBefore, int64(r.PerSecond)/4+1)
	if n <= 0 {
		return 0
	}
	b.Tokens -= n * token
	b.Prefetched += n
	return n
}

// prefetchedTokens is what one instance prefetched for the sends of a connection.
type prefetchedTokens struct {
	mu     sync.Mutex
	n      int64
	end    time.Time // on this process's monotonic clock
	wanted bool
}

// take uses one token. end is when the token expires, for put.
func (r *prefetchedTokens) take() (end time.Time, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n <= 1 {
		r.wanted = true
	}
	if r.n == 0 || !time.Now().Before(r.end) {
		r.n, r.wanted = 0, true
		return time.Time{}, false
	}
	r.n--
	return r.end, true
}

// put gives back an unused token.
func (r *prefetchedTokens) put(end time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end.Equal(end) {
		r.n++
	}
}

// refillPrefetched prefetches tokens for connections that creates used.
func (w *Worker) refillPrefetched(ctx context.Context) time.Duration {
	var wanted []admin.Operation
	for name, r := range w.prefetched {
		r.mu.Lock()
		if r.wanted {
			wanted = append(wanted, w.operation(name, Submit))
		}
		r.wanted = false
		r.mu.Unlock()
	}
	if len(wanted) == 0 {
		return -1
	}
	end := time.Now().Add(prefetchedLife) // before the commit, so never too late
	got := map[string]int64{}
	err := w.c.Store.UpdateBackground(ctx, func(tx *store.Tx) error {
		clear(got)
		budgets, err := admin.LockBudgets(ctx, tx, wanted)
		if err != nil {
			return err
		}
		for o, b := range budgets {
			rate := w.rates[o]
			refill(b, rate, tx.Now())
			got[o.Connection] = prefetch(b, rate)
		}
		return admin.SaveBudgets(ctx, tx, budgets)
	})
	if err != nil { // also for an unknown commit: tokens may be lost, never doubled
		if !errors.Is(err, store.ErrUnavailable) {
			w.c.Log.Warn("tokens not prefetched", "error", err)
		}
		return -1
	}
	for name, n := range got {
		r := w.prefetched[name]
		r.mu.Lock()
		r.n, r.end = n, end // the rest of the last prefetch has expired
		r.mu.Unlock()
	}
	return -1
}

// rateOf returns the rate of an operation: the configuration's, or the operator's.
func rateOf(t provider.Traits, l Limits, action Action) provider.Rate {
	rate, other := t.CheckRate, l.Check
	if action == Submit {
		rate, other = t.SubmitRate, l.Submit
	}
	if other.PerSecond > 0 {
		return other
	}
	return rate
}
