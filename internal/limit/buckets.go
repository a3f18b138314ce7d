package limit

import (
	"sync"
	"time"
)

// maxBuckets is how many callers are counted at once.
const maxBuckets = 10_000

// Buckets holds a bucket of tries for each caller, such as an address or a client, that has
// used some: a burst, then one more per refill. It is safe for concurrent use. Its memory
// is bounded. rate.Limiter would do for one caller, but takes no try back.
type Buckets[K comparable] struct {
	burst  float64
	refill time.Duration

	mu  sync.Mutex
	all map[K]*bucket
}

// bucket is that of one caller.
type bucket struct {
	tries float64   // at the time of at
	at    time.Time // of the last change
}

// NewBuckets returns buckets of burst tries, of which one comes back per refill.
func NewBuckets[K comparable](burst int, refill time.Duration) *Buckets[K] {
	return &Buckets[K]{burst: float64(burst), refill: refill, all: make(map[K]*bucket)}
}

func (b *Buckets[K]) fill(one *bucket, now time.Time) {
	if d := now.Sub(one.at); d > 0 {
		one.tries, one.at = min(b.burst, one.tries+d.Seconds()/b.refill.Seconds()), now
	}
}

// of returns the bucket of a caller. If there are too many buckets, it drops full ones,
// which limit nobody, among a few that the map yields. If none is full, it drops any one,
// who gets a new bucket of tries.
func (b *Buckets[K]) of(k K, now time.Time) *bucket {
	if one := b.all[k]; one != nil {
		b.fill(one, now)
		return one
	}
	looked := 0
	for other, one := range b.all {
		if len(b.all) < maxBuckets || looked == 64 {
			break
		}
		looked++
		if b.fill(one, now); one.tries >= b.burst {
			delete(b.all, other)
		}
	}
	for other := range b.all {
		if len(b.all) < maxBuckets {
			break
		}
		delete(b.all, other)
	}
	one := &bucket{tries: b.burst, at: now}
	b.all[k] = one
	return one
}

// Take takes one try from a caller, or returns how long it has to wait.
func (b *Buckets[K]) Take(k K, now time.Time) (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.of(k, now)
	if one.tries < 1 {
		return b.wait(one), false
	}
	one.tries--
	return 0, true
}

// Return gives back a try that did not fail.
func (b *Buckets[K]) Return(k K, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.of(k, now)
	one.tries = min(b.burst, one.tries+1)
}

// Left returns how many tries a caller has, and the part of the next one.
func (b *Buckets[K]) Left(k K, now time.Time) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of(k, now).tries
}

// Empty reports whether a caller has no try left, without making a bucket.
func (b *Buckets[K]) Empty(k K, now time.Time) (wait time.Duration, empty bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.all[k]
	if one == nil {
		return 0, false
	}
	b.fill(one, now)
	return b.wait(one), one.tries < 1
}

func (b *Buckets[K]) wait(one *bucket) time.Duration {
	return time.Duration((1 - one.tries) * float64(b.refill))
}
