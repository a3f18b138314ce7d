package providertest

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"till/provider"
)

// maxRounds is how many calls one request of a storm may need.
const maxRounds = 500

// maxStormSends is how often one request of a storm is sent.
const maxStormSends = 6

// Storm sends n requests through an operator with faults, by the rules of the service. An
// unknown outcome is checked. A request is sent again, under the same reference, only if
// the operator twice does not know it. At the end, each success has moved money once, and
// any other request never. The harness is opened with faults; it needs no line.
func Storm(t *testing.T, h Harness, n int) {
	h.init()
	h.needsReference(t)
	stories := []Story{Approve, Approve, Approve, Decline, NoFunds, UnknownPayer}
	var (
		mu    sync.Mutex
		count = map[provider.Outcome]int{}
		lanes = make(chan struct{}, 16)
		wg    sync.WaitGroup
	)
	for i := range n {
		r, ok := h.Request(stories[i%len(stories)])
		if !ok {
			r, _ = h.Request(Approve)
		}
		lanes <- struct{}{}
		wg.Go(func() {
			defer func() { <-lanes }()
			end := h.weather(t, r)
			mu.Lock()
			count[end]++
			mu.Unlock()
			want := 0
			if end == provider.Success {
				want = 1
			}
			h.wantDebits(t, r, want)
		})
	}
	wg.Wait()
	t.Logf("the ends: %v", count)
	if count[provider.Success] == 0 {
		t.Error("nothing succeeded")
	}
}

// weather brings one request to its end, whatever fails.
func (h Harness) weather(t *testing.T, r provider.Request) provider.Outcome {
	held, sends, absent := false, 0, 2
	for range maxRounds {
		if !held && absent >= 2 && sends == maxStormSends {
			return provider.NotFound // proven absent, and given up
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		if !held && absent >= 2 {
			sends, absent = sends+1, 0
			result, err := h.Provider.Submit(ctx, r)
			cancel()
			held = err == nil && result.Outcome.ProvesReceived()
			if err == nil && result.Outcome == provider.Rejected && sends == 1 {
				return provider.Rejected
			}
			continue
		}
		result, err := h.Provider.Check(ctx, h.query(r))
		cancel()
		switch {
		case err != nil:
		case result.Outcome.Final():
			return result.Outcome
		case result.Outcome == provider.NotFound:
			absent++
		default:
			held = true
			h.Advance(time.Duration(rand.IntN(1000)) * time.Millisecond)
		}
	}
	t.Errorf("%s does not end", r.Reference)
	return ""
}
