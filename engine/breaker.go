package engine

import (
	"time"

	"till"
	"till/provider"
	"till/store"
	"till/store/admin"
)

// The breaker of a connection stops new payments while the operator does not answer. It is
// evaluated by what all instances saw in the last healthSpan.
//
// Failed submits stop it, because it holds submits back. Failed checks only degrade it: a
// payment that was sent is checked in any case.
const (
	healthSpan = time.Minute
	// minSample is how many calls of a kind are needed before their share counts.
	minSample = 10
	// stopShare and degradeShare are the percentages of unanswered calls from which new
	// payments are stopped, or clients warned.
	stopShare    = 50
	degradeShare = 10
	// minRefused is how many calls with refused credentials stop new payments, if no call
	// was answered.
	minRefused = 3

	// A stopped breaker is probed after a pause, which doubles each time.
	firstPause = 5 * time.Second
	maxPause   = 2 * time.Minute
	// lastingRecovery is how long a breaker must be passing before its pauses start again
	// at the first.
	lastingRecovery = 10 * time.Minute

	// probes is how many new payments the lease's holder admits, and how many sends go out,
	// before an answer decides.
	probes = 3
	// probeLease is how long the right to probe lasts: longer than the lease of a send, so
	// that one instance's probe is answered before another's begins.
	probeLease = Lease + 10*time.Second
)

// Status is a connection's health, in the contract's words.
type Status string

// The statuses. A method that is closed refuses payments.
const (
	Operational Status = "operational"
	Degraded    Status = "degraded"
	Closed      Status = "closed"
)

// evidence is what a breaker is evaluated by.
type evidence struct {
	submits, checks admin.CallStats // of all instances, since the state last changed
	probed          probed          // what this instance's probes showed
	wanted          bool            // this instance would send if it could
}

// probed is the outcome of a round of probes.
type probed struct {
	round int64 // 0: no probe was answered
	known bool
}

// share returns the percentage of unanswered calls, 0 below minSample.
func share(s admin.CallStats) int64 {
	if n := s.Answered + s.Unanswered; n >= minSample {
		return s.Unanswered * 100 / n
	}
	return 0
}

func refused(s admin.CallStats) bool { return s.Answered == 0 && s.AuthRefused >= minRefused }

// nextState returns a breaker's next state, or b itself if nothing changes.
func nextState(b admin.Breaker, ev evidence, self till.ID, now till.Time) admin.Breaker {
	switch b.State {
	case admin.Passing:
		if share(ev.submits) >= stopShare || refused(ev.submits) || refused(ev.checks) {
			if lasted := now.Sub(b.ChangedAt); lasted < 0 || lasted >= lastingRecovery {
				b.Tries = 0
			}
			return stop(b, now)
		}
	case admin.Stopped:
		if ev.wanted && pauseOver(&b, now) {
			return startProbing(b, self, now)
		}
	case admin.Probing:
		switch {
		case ev.probed.round == b.Round && ev.probed.known:
			b.State, b.ChangedAt, b.ProbesLeft, b.LeaseUntil = admin.Passing, now, 0, 0
		case ev.probed.round == b.Round:
			return stop(b, now)
		case ev.wanted && !leaseLive(&b, now): // its holder died or sent nothing
			return startProbing(b, self, now)
		}
	}
	return b
}

func stop(b admin.Breaker, now till.Time) admin.Breaker {
	b.State, b.ChangedAt, b.ProbesLeft, b.LeaseUntil = admin.Stopped, now, 0, 0
	b.Tries++
	b.RetryAt = now.Add(pause(b.Tries))
	return b
}

func startProbing(b admin.Breaker, self till.ID, now till.Time) admin.Breaker {
	b.State, b.ChangedAt = admin.Probing, now
	b.Round++
	b.Owner, b.LeaseUntil, b.ProbesLeft = self, now.Add(probeLease), probes
	return b
}

// pause returns how long a breaker that was stopped for the n-th time is not probed.
func pause(n int) time.Duration {
	d := firstPause
	for ; n > 1 && d < maxPause; n-- {
		d *= 2
	}
	return min(d, maxPause)
}

// pauseOver reports whether a stopped breaker may be probed. A time further ahead than any
// pause was written before the clock was set back.
func pauseOver(b *admin.Breaker, now till.Time) bool {
	return now >= b.RetryAt || b.RetryAt > now.Add(maxPause)
}

// leaseLive reports whether an instance has the right to probe.
func leaseLive(b *admin.Breaker, now till.Time) bool {
	return now < b.LeaseUntil && b.LeaseUntil <= now.Add(probeLease)
}

// statusOf returns a connection's health: the same for all instances. A stopped connection
// that may be probed is degraded, not closed: a client has to try.
func statusOf(b *admin.Breaker, ev evidence, t provider.Traits, now till.Time) Status {
	switch {
	case b.State == admin.Stopped && !pauseOver(b, now):
		return Closed
	case b.State != admin.Passing,
		share(ev.submits) >= degradeShare, share(ev.checks) >= degradeShare,
		slow(ev.submits, t.SubmitTimeout), slow(ev.checks, t.CheckTimeout):
		return Degraded
	}
	return Operational
}

// slow reports whether calls take half of their timeout.
func slow(s admin.CallStats, timeout time.Duration) bool {
	return s.Answered >= minSample && timeout > 0 && s.TotalLatency/time.Duration(s.Answered) >= timeout/2
}

// since sums up a connection's calls, in buckets that began after its state last changed.
// Earlier calls have been evaluated.
func since(b *admin.Breaker, rows []admin.HealthRow, now till.Time) (ev evidence) {
	for _, r := range rows {
		if r.Connection != b.Connection || b.ChangedAt <= now && r.Start < b.ChangedAt {
			continue
		}
		if r.Name == store.OpSubmit {
			ev.submits.Add(r.CallStats)
		} else {
			ev.checks.Add(r.CallStats)
		}
	}
	return ev
}
