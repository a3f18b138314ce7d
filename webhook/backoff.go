package webhook

import (
	"net/http"
	"time"

	"till"
	"till/store/webhooks"
)

// retryDelays[n] is the pause before attempt n+1 of one event.
var retryDelays = [...]time.Duration{
	0, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// The rules of delivery besides retryDelays.
const (
	MaxAttempts  = len(retryDelays)
	jitterShare  = 0.1                // of every pause, in both directions
	maxProbe     = 5 * time.Minute    // the longest pause of a failing endpoint
	failingLimit = 5 * 24 * time.Hour // an endpoint that only fails for so long is disabled
	drainRate    = 50                 // events per second after a recovery, and of a replay
	drainPause   = time.Second
)

// jittered lengthens or shortens a pause; j is from -1 to 1.
func jittered(d time.Duration, j float64) time.Duration {
	return d + time.Duration(jitterShare*j*float64(d))
}

// retryAt returns when an event is due again after so many failed attempts, or that it is
// exhausted.
func retryAt(now till.Time, attempts int, retryAfter time.Duration, j float64) (due till.Time, exhausted bool) {
	if attempts >= MaxAttempts {
		return now, true
	}
	return now.Add(max(jittered(retryDelays[attempts], j), min(retryAfter, maxRetryAfter))), false
}

// probePause returns how long nothing is sent to an endpoint after so many failures in a
// row; 0 before it counts as failing.
func probePause(failures int, j float64) time.Duration {
	if failures < till.FailingAfter {
		return 0
	}
	n := min(failures-till.FailingAfter+1, len(retryDelays)-1)
	return min(jittered(retryDelays[n], j), maxProbe)
}

// attemptOutcome is an attempt's result for its endpoint.
type attemptOutcome struct {
	response Response
	ended    till.Time
	internal bool // it failed on our side, which says nothing about the endpoint
	repeated bool // the event has failed before
	url      string
}

// counts reports whether a failure counts as the endpoint's own. A repeated failure of one
// event may be that event's fault, as long as no other event fails.
func (o *attemptOutcome) counts(failures int) bool {
	return !o.internal && (!o.repeated || failures >= till.FailingAfter)
}

// evaluate applies outcomes to an endpoint, in the order in which the attempts ended. It
// reports whether the endpoint has recovered, and why to disable it, "" if not.
func evaluate(e *webhooks.Endpoint, outcomes []attemptOutcome, now till.Time, j float64) (recovered bool, disable till.DisableReason) {
	before, failed, bad, succeeded := e.Failures, 0, false, false
	failing := before >= till.FailingAfter
	var pause time.Duration
	for _, o := range outcomes {
		switch {
		case o.internal:
		case o.response.Delivered():
			failed, bad, succeeded, pause = 0, false, true, 0
			e.FailingSince, e.LastSuccessAt = 0, max(e.LastSuccessAt, o.ended)
			if o.url == e.URL { // else another address answered
				e.Answered = min(e.Answered+1, provenAfter)
			}
		default:
			bad = true
			if o.counts(before) {
				failed++
			}
			if e.FailingSince.IsZero() {
				e.FailingSince = o.ended
			}
			// A Retry-After of 429 or 503 is about all requests, not only this one.
			if s := o.response.Status; s == http.StatusTooManyRequests || s == http.StatusServiceUnavailable {
				pause = max(pause, o.response.RetryAfter)
			}
			if o.response.gone() {
				disable = till.DisabledAsGone
			}
		}
	}
	if succeeded {
		before, e.Failures = 0, 0
	}
	// A burst of failures counts as one reason to wait, not as sixteen.
	e.Failures = min(before+failed, max(till.FailingAfter, before+1))
	if failed == 0 {
		e.Failures = before
	}
	recovered = failing && succeeded && e.Failures < till.FailingAfter
	if bad {
		if failed > 0 {
			pause = max(pause, probePause(e.Failures, j))
		}
		e.BlockedUntil = max(e.BlockedUntil, now.Add(pause))
		if disable == "" && now.Sub(e.FailingSince) >= failingLimit {
			disable = till.DisabledAsFailing
		}
	}
	return recovered, disable
}
