package webhook

import (
	"net/http"

	"till"
	"till/store/webhooks"
)

// Trouble says in one word why an endpoint gets no events, or what it answered. Pages have a
// sentence for each.
type Trouble string

// The troubles. Those of an attempt without an answer are its problem.
const (
	TroubleNone        Trouble = "none"         // it works
	TroubleNew         Trouble = "new"          // nothing was sent yet
	TroubleSwitchedOff Trouble = "switched_off" // the client disabled it
	TroubleGone        Trouble = "gone"         // it answered 410, and was disabled
	TroubleGivenUp     Trouble = "given_up"     // disabled after five days of failures
	TroubleRefused     Trouble = "refused"      // 401 or 403
	TroubleNotFound    Trouble = "not_found"    // 404 or 405
	TroubleLarge       Trouble = "large"        // 413
	TroubleBusy        Trouble = "busy"         // 429
	TroubleRejected    Trouble = "rejected"     // another 4xx
	TroubleError       Trouble = "error"        // 5xx
	TroubleOther       Trouble = "other"        // any other answer
)

// Troubles is every trouble.
var Troubles = []Trouble{TroubleNone, TroubleNew, TroubleSwitchedOff, TroubleGone, TroubleGivenUp, TroubleRefused, TroubleNotFound, TroubleLarge, TroubleBusy,
	TroubleRejected, TroubleError, TroubleOther, ProblemTimeout, ProblemDNS, ProblemConnect, ProblemTLS, ProblemReset, ProblemMalformed, ProblemRedirect, ProblemAddressRefused, ProblemCancelled}

// TroubleOf returns what is wrong with an endpoint, and whether events fail because of it. last
// is the last attempt that did not arrive, nil if none is known.
func TroubleOf(e *till.Endpoint, last *webhooks.DeliveryAttempt) (why Trouble, fails bool) {
	switch {
	case e.DisableReason == till.DisabledByClient:
		return TroubleSwitchedOff, false
	case e.DisableReason == till.DisabledAsGone:
		return TroubleGone, true
	case e.DisableReason == till.DisabledAsFailing:
		return TroubleGivenUp, true
	case !e.FailingSince.IsZero() && last != nil:
		return AttemptTrouble(last), true
	case !e.FailingSince.IsZero():
		return TroubleOther, true
	case e.LastSuccessAt.IsZero():
		return TroubleNew, false
	}
	return TroubleNone, false
}

// NextTry returns when something is sent to an endpoint next: zero if nothing waits for it,
// or if it is disabled.
func NextTry(e *webhooks.Endpoint, now till.Time) till.Time {
	if !e.Enabled {
		return 0
	}
	next := e.NextRetry
	if e.Cursor < e.LastEvent {
		next = now
	}
	if next.IsZero() {
		return 0
	}
	return max(next, e.BlockedUntil, now)
}

// AttemptTrouble returns what was wrong with one attempt.
func AttemptTrouble(a *webhooks.DeliveryAttempt) Trouble {
	switch code := a.Code; {
	case a.Problem != "":
		return Trouble(a.Problem)
	case code >= 200 && code <= 299:
		return TroubleNone
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return TroubleRefused
	case code == http.StatusNotFound, code == http.StatusMethodNotAllowed:
		return TroubleNotFound
	case code == http.StatusGone:
		return TroubleGone
	case code == http.StatusRequestEntityTooLarge:
		return TroubleLarge
	case code == http.StatusTooManyRequests:
		return TroubleBusy
	case code >= 400 && code <= 499:
		return TroubleRejected
	case code >= 500:
		return TroubleError
	}
	return TroubleOther
}
