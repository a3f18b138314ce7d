package api

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"till"
	"till/internal/limit"
)

// limits holds a token bucket for each client of this instance.
type limits struct {
	rate   float64
	burst  int
	policy []string
	*limit.Buckets[till.ID]
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
		Buckets: limit.NewBuckets[till.ID](burst, time.Duration(float64(time.Second)/perSecond)),
	}
}

// limit takes one token from a client's bucket and sets the headers that say what is left.
func (c *exchange) limit(client till.ID) error {
	l := c.s.limits
	if l == nil {
		return nil
	}
	now := time.Now()
	_, ok := l.Take(client, now)
	tokens := l.Left(client, now)

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
