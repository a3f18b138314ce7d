package door

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// A client that is refused and repeats its request at once would take the CPU from all
// others. So only so many refusals are answered at once, and others are delayed a little. A
// client that follows Retry-After does not notice.
const (
	promptRefusals = 200 // a second
	promptBurst    = 400
	maxDelayed     = 5000 // delayed at once; more are answered immediately

	// A random delay between these, so that requests that came together do not come
	// together again.
	minDelay = 1 * time.Second
	maxDelay = 4 * time.Second
)

// Delays limits how fast refusals are answered.
type Delays struct {
	prompt  *rate.Limiter
	waiting atomic.Int64
}

// NewDelays returns the delays of one door.
func NewDelays() *Delays { return &Delays{prompt: rate.NewLimiter(promptRefusals, promptBurst)} }

// Wait waits before a refusal is answered, if there are too many, until the caller has left
// or the server stops.
func (d *Delays) Wait(ctx context.Context, stopping <-chan struct{}) {
	if d.prompt.Allow() {
		return
	}
	defer d.waiting.Add(-1)
	if d.waiting.Add(1) > maxDelayed {
		return
	}
	t := time.NewTimer(minDelay + rand.N(maxDelay-minDelay))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-stopping:
	}
}
