package api

import (
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"till"
)

// maxLimiters is how many clients' buckets are kept.
const maxLimiters = 10_000

// limits holds a token bucket for each client of this instance.
type limits struct {
	rate   float64
	burst  int
	policy []string

	mu      sync.RWMutex
	buckets map[till.ID]*rate.Limiter
}

// newLimits returns the limits, nil for none.
func newLimits(perSecond float64) *limits {
	if perSecond <= 0 {
		return nil
	}
	burst := max(1, int(math.Ceil(2*perSecond)))
	// The quota is a full bucket; the window is the time to fill it.
	window := int(math.Ceil(float64(burst) / perSecond))
	return &limits{
		rate: perSecond, burst: burst,
		policy:  []string{fmt.Sprintf(`"default";q=%d;w=%d`, burst, window)},
		buckets: make(map[till.ID]*rate.Limiter),
	}
}

// bucket returns a client's bucket.
func (l *limits) bucket(client till.ID, now time.Time) *rate.Limiter {
	l.mu.RLock()
	b := l.buckets[client]
	l.mu.RUnlock()
	if b != nil {
		return b
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.buckets[client]; b != nil {
		return b
	}
	if len(l.buckets) >= maxLimiters {
		l.makeRoom(now)
	}
	b = rate.NewLimiter(rate.Limit(l.rate), l.burst)
	l.buckets[client] = b
	return b
}

// makeRoom checks a few buckets, which the map picks at random, and drops full ones, which
// limit nobody. If none is full, it drops any one, and that client gets one more burst. To
// check all would delay every client for each new one.
func (l *limits) makeRoom(now time.Time) {
	looked := 0
	for id, b := range l.buckets {
		if b.TokensAt(now) >= float64(l.burst) {
			delete(l.buckets, id)
		}
		if looked++; looked == 64 {
			break
		}
	}
	for id := range l.buckets {
		if len(l.buckets) < maxLimiters {
			return
		}
		delete(l.buckets, id)
	}
}

// limit takes one token from a client's bucket and sets the headers that say what is left.
func (c *exchange) limit(client till.ID) error {
	l := c.s.limits
	if l == nil {
		return nil
	}
	now := time.Now()
	b := l.bucket(client, now)
	ok := b.AllowN(now, 1)
	tokens := b.TokensAt(now)

	left := make([]byte, 0, 32)
	left = append(left, `"default";r=`...)
	left = strconv.AppendInt(left, int64(max(0, tokens)), 10)
	left = append(left, ";t="...)
	left = strconv.AppendInt(left, l.seconds(float64(l.burst)-tokens), 10)
	h := c.Header()
	h["Ratelimit"] = []string{string(left)}
	h["Ratelimit-Policy"] = l.policy
	if ok {
		return nil
	}
	h["Retry-After"] = []string{strconv.FormatInt(max(1, l.seconds(1-tokens)), 10)}
	return c.refuse(string(till.CodeRateLimited), &till.Error{Code: till.CodeRateLimited})
}

// seconds returns how long the bucket takes to gain so many tokens, in whole seconds.
func (l *limits) seconds(tokens float64) int64 { return int64(math.Ceil(max(0, tokens) / l.rate)) }
