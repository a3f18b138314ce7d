package simulator

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// Faults are what goes wrong, each with a probability from 0 to 1 for every submit and
// check. Token calls have faults only if Tokens is set.
type Faults struct {
	LostRequest       float64       // the connection ends before the operator reads the request
	LostResponse      float64       // the operator acts, and then the connection ends
	ServerError       float64       // 500 or 503, before or after the operator acts
	LostCallback      float64       // no callback
	DuplicateCallback float64       // the callback comes five times
	LateSuccess       float64       // it fails or expires, and succeeds a little later
	Slow              float64       // the answer takes SlowBy
	SlowBy            time.Duration // 0 means 3 s
	Tokens            bool
	Seed              uint64 // 0: a random one
}

// FaultInjector decides what goes wrong. It is safe for concurrent use.
type FaultInjector struct {
	config Faults
	mu     sync.Mutex
	random *rand.Rand
}

// NewFaultInjector returns an injector of some faults.
func NewFaultInjector(f Faults) *FaultInjector {
	if f.SlowBy <= 0 {
		f.SlowBy = 3 * time.Second
	}
	seed := f.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	return &FaultInjector{config: f, random: rand.New(rand.NewPCG(seed, seed))}
}

// Happens reports whether an event of probability p happens.
func (d *FaultInjector) Happens(p float64) bool {
	if d == nil || p <= 0 {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.Float64() < p
}

// Plan returns the plan of a request, perhaps with a late success: a failure that succeeds
// that long after its end.
func (d *FaultInjector) Plan(p Plan, late time.Duration) Plan {
	if (p.State == Failed || p.State == Expired) && p.Late == 0 && d.Happens(d.faults().LateSuccess) {
		p.Late = late
	}
	return p
}

// Wrap adds the faults of the connection to an operator's handler. token reports which
// requests only fetch a token.
func (d *FaultInjector) Wrap(next http.Handler, token func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d == nil || token(r) && !d.config.Tokens {
			next.ServeHTTP(w, r)
			return
		}
		if d.Happens(d.config.Slow) {
			select {
			case <-time.After(d.config.SlowBy):
			case <-r.Context().Done():
			}
		}
		switch {
		case d.Happens(d.config.LostRequest):
			panic(http.ErrAbortHandler)
		case d.Happens(d.config.LostResponse):
			next.ServeHTTP(&discardWriter{header: http.Header{}}, r)
			panic(http.ErrAbortHandler)
		case d.Happens(d.config.ServerError):
			if d.Happens(0.5) {
				next.ServeHTTP(&discardWriter{header: http.Header{}}, r)
			}
			http.Error(w, "<html><body>503 Service Temporarily Unavailable</body></html>", http.StatusServiceUnavailable)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// discardWriter discards an answer.
type discardWriter struct {
	header http.Header
	bytes.Buffer
}

func (v *discardWriter) Header() http.Header { return v.header }
func (v *discardWriter) WriteHeader(int)     {}
