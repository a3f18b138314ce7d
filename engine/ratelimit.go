package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"till"
	"till/provider"
	"till/store"
)

// An operator's rate limit is one token bucket in the database. A claim takes
// tokens in its own commit. A create must not wait for that row, so an
// instance takes a few tokens ahead, and they are void soon.
//
// In any span of time t all instances together make at most rate*t + burst
// calls: what was taken ahead and may still be used counts as if it were in
// the bucket, so the two together never hold more than the burst.
const (
	token = 1_000_000 // tokens are counted in millionths: rate * microseconds

	// prefetchedLife is how long a token taken ahead may be used. It counts as
	// held until the end of the span after the one in which it was taken, so
	// it may be late by a span without doing harm.
	prefetchedLife = time.Second
	prefetchPeriod = 2 * time.Second
	// prefetchInterval is the shortest time between two takings ahead.
	prefetchInterval = 100 * time.Millisecond
	// tokenWait is how long a claim that came short waits at most for the
	// tokens of the next one: a commit for each single token would be waste.
	tokenWait = 100 * time.Millisecond
)

func burstOf(r provider.Rate) int64 { return int64(max(1, r.Burst)) }

// refill adds the tokens that time has brought: span by span, because what is
// held in one leaves less room in the bucket for what that span brings.
func refill(b *store.Budget, r provider.Rate, now till.Time) {
	length := till.Time(prefetchPeriod.Microseconds())
	span := int64(now / length)
	if span < b.PrefetchPeriod { // the clock was set back: what is held is held from now
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

// fill adds the tokens of a time in which what is held stayed the same.
func fill(b *store.Budget, r provider.Rate, now till.Time) {
	limit := max(0, burstOf(r)-b.Prefetched-b.PrefetchedBefore) * token
	// A clock that was set back brings nothing, and takes nothing.
	passed, rate := max(0, int64(now-b.FilledAt)), int64(r.PerSecond)
	if b.Tokens < 0 || passed > limit/rate {
		b.Tokens = limit
	} else {
		b.Tokens = min(b.Tokens+passed*rate, limit)
	}
	b.FilledAt = now
}

// timeToToken returns how long it takes until a claim that came short is worth
// another look: half of the burst, but not long.
func timeToToken(b *store.Budget, r provider.Rate) time.Duration {
	until := func(tokens int64) time.Duration {
		return time.Duration(max(0, tokens-b.Tokens)/int64(r.PerSecond)+1) * time.Microsecond
	}
	return max(until(token), min(until(burstOf(r)*token/2), tokenWait))
}

// prefetch takes tokens to be used without a commit: only from the upper half of
// the bucket, so that what has been waiting goes first, and never so many
// that more than half of the burst is in instances' hands.
func prefetch(b *store.Budget, r provider.Rate) int64 {
	half := burstOf(r) / 2
	n := min((b.Tokens-half*token)/token, half-b.Prefetched-b.PrefetchedBefore, int64(r.PerSecond)/4+1)
	if n <= 0 {
		return 0
	}
	b.Tokens -= n * token
	b.Prefetched += n
	return n
}

// reserve is what one instance took ahead for the sends of a connection.
type prefetchedTokens struct {
	mu     sync.Mutex
	n      int64
	end    time.Time // on this process's own monotonic clock
	wanted bool
}

// take uses one token; void tells when it ends, to give it back with.
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

// put gives a token back that was not used.
func (r *prefetchedTokens) put(end time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end.Equal(end) {
		r.n++
	}
}

// refillPrefetched takes tokens ahead where creates have asked for some.
func (w *Worker) refillPrefetched(ctx context.Context) time.Duration {
	var wanted []store.Operation
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
		budgets, err := tx.LockBudgets(ctx, wanted)
		if err != nil {
			return err
		}
		for o, b := range budgets {
			rate := w.rates[o]
			refill(b, rate, tx.Now())
			got[o.Connection] = prefetch(b, rate)
		}
		return tx.SaveBudgets(ctx, budgets)
	})
	if err != nil { // also if it is unknown: tokens may be lost, never doubled
		if !errors.Is(err, store.ErrUnavailable) {
			w.c.Log.Warn("take tokens ahead", "error", err)
		}
		return -1
	}
	for name, n := range got {
		r := w.prefetched[name]
		r.mu.Lock()
		r.n, r.end = n, end // what was left of the last is void
		r.mu.Unlock()
	}
	return -1
}

// rateOf returns how often an operation may be called: as the configuration
// says, or the operator.
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
