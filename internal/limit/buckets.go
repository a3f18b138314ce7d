package limit

import (
	"net/netip"
	"sync"
	"time"
)

// maxBuckets is how many addresses are counted at once.
const maxBuckets = 10_000

// Buckets holds a bucket of tries for each address that has used some: a burst, then one
// more per refill. It is safe for concurrent use. Its memory is bounded.
type Buckets struct {
	burst  float64
	refill time.Duration

	mu  sync.Mutex
	all map[netip.Prefix]*bucket
}

// bucket is that of one address.
type bucket struct {
	tries float64   // at the time of at
	at    time.Time // of the last change
}

// NewBuckets returns buckets of burst tries, of which one comes back per refill.
func NewBuckets(burst int, refill time.Duration) *Buckets {
	return &Buckets{burst: float64(burst), refill: refill, all: make(map[netip.Prefix]*bucket)}
}

func (b *Buckets) fill(one *bucket, now time.Time) {
	if d := now.Sub(one.at); d > 0 {
		one.tries, one.at = min(b.burst, one.tries+d.Seconds()/b.refill.Seconds()), now
	}
}

// of returns the bucket of an address. If there are too many buckets, it drops full ones,
// which limit nobody, among a few that the map yields. If none is full, it drops any one,
// whose address gets a new bucket of tries.
func (b *Buckets) of(n netip.Prefix, now time.Time) *bucket {
	if one := b.all[n]; one != nil {
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
	b.all[n] = one
	return one
}

// Take takes one try from an address, or returns how long it has to wait.
func (b *Buckets) Take(n netip.Prefix, now time.Time) (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.of(n, now)
	if one.tries < 1 {
		return b.wait(one), false
	}
	one.tries--
	return 0, true
}

// Return gives back a try that did not fail.
func (b *Buckets) Return(n netip.Prefix, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.of(n, now)
	one.tries = min(b.burst, one.tries+1)
}

// Empty reports whether an address has no try left, without making a bucket.
func (b *Buckets) Empty(n netip.Prefix, now time.Time) (wait time.Duration, empty bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.all[n]
	if one == nil {
		return 0, false
	}
	b.fill(one, now)
	return b.wait(one), one.tries < 1
}

func (b *Buckets) wait(one *bucket) time.Duration {
	return time.Duration((1 - one.tries) * float64(b.refill))
}
