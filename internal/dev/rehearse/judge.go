package rehearse

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"till/webhook"
)

// Verdict is what a check has shown.
type Verdict string

// The verdicts.
const (
	Passed  Verdict = "passed"
	Failed  Verdict = "failed"
	NotSeen Verdict = "not_seen" // nothing that was seen decides it
)

// ruling is a verdict with its reason.
type ruling struct {
	verdict Verdict
	advice  string
	see     string // a page for developers
}

func failed(advice, see string) ruling { return ruling{Failed, advice, see} }

// seen is what became of a check.
type seen struct {
	answers  []answer
	observed bool   // the command was there, and said something
	acted    int    // how often the payment was acted on
	amount   string // what the handler has kept as its amount; "" if the command does not say
	r        *rehearsal
}

// answer is the handler's answer to one delivery.
type answer struct {
	delivery
	status  int
	problem string // why there is no answer
	header  http.Header
	text    string
	took    time.Duration
}

func (a *answer) accepted() bool { return a.status >= 200 && a.status <= 299 }

// refused reports whether a forged delivery was turned down as it should be. Other statuses
// of 4xx say something else to the sender: that the address is wrong, or to come later.
func (a *answer) refused() bool {
	switch a.status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusRequestTimeout, http.StatusGone, http.StatusTooManyRequests:
		return false
	}
	return a.status >= 400 && a.status <= 499
}

func (s *seen) allAccepted() bool {
	return !slices.ContainsFunc(s.answers, func(a answer) bool { return !a.accepted() })
}

// judgeGood says why a good event is not accepted: every other check depends on it.
func judgeGood(s *seen) ruling {
	a := s.answers[0]
	switch {
	case a.accepted() && s.observed && s.acted == 0:
		return failed("A good event is accepted, and nothing is done. Does the command of --observe look at $TILL_PAYMENT_ID?", pageAnswer)
	case a.accepted() && s.observed && s.acted > 1:
		return failed(fmt.Sprintf("One event is acted on %d times.", s.acted), pageDuplicates)
	case a.accepted():
		return ruling{verdict: Passed}
	case a.status == 0:
		return failed("There is no answer: "+a.problem+".", pageAnswer)
	case a.status >= 300 && a.status <= 399:
		return failed("A good event is answered with a redirect, which webhooks do not follow. Give the address that answers, with its scheme and slash.", pageAnswer)
	case a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed:
		return failed("No handler takes POST at this address. Look at the path of the URL.", pageAnswer)
	case a.status == http.StatusUnauthorized || a.status == http.StatusForbidden || a.status == 419:
		return failed("Something before the handler refuses a good event. Leave sign-in and CSRF protection out for this address: the signature proves the sender.", pageSignature)
	case a.status == http.StatusRequestEntityTooLarge || a.status == http.StatusUnsupportedMediaType:
		return failed("A good event is refused for its size or type. Read JSON bodies of up to 1 MiB.", pageNew)
	case a.status >= 500:
		return failed("The handler fails on a good event. Its own log says why.", pageAnswer)
	}
	return failed("A good event is refused. Is --secret the secret that the handler has? Verify the bytes as they came, before anything parses the body; 'till webhook verify' says why a request does not verify.", pageSignature)
}

// effect judges by what was done. Only the command can show that.
func effect(want int, refusedAdvice, effectAdvice, see string) func(*seen) ruling {
	return func(s *seen) ruling {
		switch {
		case !s.allAccepted():
			return failed(refusedAdvice, see)
		case !s.observed:
			return ruling{verdict: NotSeen}
		case s.acted != want:
			return failed(effectAdvice, see)
		}
		return ruling{verdict: Passed}
	}
}

// effectOrStatus judges by the answer, and by what was done if that can be seen.
func effectOrStatus(want int, refusedAdvice, effectAdvice, see string) func(*seen) ruling {
	by := effect(want, refusedAdvice, effectAdvice, see)
	return func(s *seen) ruling {
		r := by(s)
		if r.verdict == NotSeen {
			r.verdict = Passed // the answer is what the check is about
		}
		return r
	}
}

// refusal judges deliveries that must be turned down, and must do nothing.
func refusal(advice string) func(*seen) ruling {
	return func(s *seen) ruling {
		for _, a := range s.answers {
			switch {
			case a.accepted():
				return failed(advice, pageSignature)
			case a.status >= 500 || a.status == 0:
				return failed("The handler fails where it should refuse, and Till would send it again for three days. Answer 400.", pageAnswer)
			case !a.refused():
				return failed(fmt.Sprintf("A delivery that is not Till's is answered %d. Answer 400.", a.status), pageAnswer)
			}
		}
		if s.observed && s.acted > 0 {
			return failed("A delivery is refused, and acted on all the same. Verify before you act.", pageSignature)
		}
		return ruling{verdict: Passed}
	}
}

// judgeAtOnce allows the answer "later" to a copy: a lock may be held.
func judgeAtOnce(s *seen) ruling {
	accepted := 0
	for _, a := range s.answers {
		switch {
		case a.accepted():
			accepted++
		case a.status != http.StatusConflict && a.status != http.StatusLocked && a.status != http.StatusTooManyRequests && a.status < 500:
			return failed("Of copies that arrive together, one is refused for good. Answer 2xx, or 503 to let it come again.", pageAnswer)
		}
	}
	switch {
	case accepted == 0:
		return failed("Of copies that arrive together, none is accepted.", pageAnswer)
	case !s.observed:
		return ruling{verdict: NotSeen}
	case s.acted != 1:
		return failed("Copies that arrive together are not acted on exactly once. Make the event's id unique in the database, and insert it in the transaction that acts.", pageDuplicates)
	}
	return ruling{verdict: Passed}
}

// judgeReversed takes a command that counts what is paid now, 0, as well as one that counts
// how often it was paid, 1.
func judgeReversed(s *seen) ruling {
	switch {
	case !s.allAccepted():
		return failed("An event that takes money back is not answered 2xx.", pageNew)
	case !s.observed:
		return ruling{verdict: NotSeen}
	case s.acted > 1:
		return failed("Money that is taken back is acted on as if it came. Go by the event's kind, payment.reversed: the status stays success.", pageOrder)
	}
	return ruling{verdict: Passed}
}

func judgeAmount(s *seen) ruling {
	want := fmt.Sprint(int64(exactAmount))
	switch {
	case !s.allAccepted():
		return failed("An amount of 15 digits is not answered 2xx. Keep amounts as text, or as whole numbers of 64 bits.", pageNew)
	case s.observed && s.acted != 1:
		return failed("An event with an amount of 15 digits is not acted on once.", pageNew)
	case s.amount == "":
		return ruling{verdict: NotSeen, advice: "Let the command of --observe print the amount that you have kept, after the count, to see whether it is exact."}
	case s.amount != want:
		return failed("The amount "+want+" was kept as "+s.amount+". Keep amounts as text, or as whole numbers of 64 bits, never as floating point.", pageNew)
	}
	return ruling{verdict: Passed}
}

func judgeRedirects(s *seen) ruling {
	for _, a := range s.r.all {
		if a.status >= 300 && a.status <= 399 {
			return failed(fmt.Sprintf("An answer is a redirect (%d), which Till does not follow: the event counts as not delivered. Answer at this address.", a.status), pageAnswer)
		}
	}
	return ruling{verdict: Passed}
}

// apiKey is what an API key looks like.
var apiKey = regexp.MustCompile(`till_(test|live)_[0-9A-Za-z_]{16,}`)

func judgeSecrets(s *seen) ruling {
	secret := s.r.Secret.Reveal()
	for _, a := range s.r.all {
		shown := a.text
		for name, values := range a.header {
			shown += "\n" + name + ": " + strings.Join(values, " ")
		}
		switch {
		case strings.Contains(shown, strings.TrimPrefix(secret, "whsec_")), strings.Contains(shown, base64.RawURLEncoding.EncodeToString(s.r.Secret)), apiKey.MatchString(shown):
			return failed("An answer shows the webhook secret or an API key. Change it, and answer with a status alone.", pageAnswer)
		case a.shows(shown, s.r.Secret):
			return failed("An answer to a forged delivery tells the signature that would be right. Answer with a status alone.", pageAnswer)
		case strings.Contains(shown, phone):
			return failed("An answer shows the customer's phone number, which then is in the list of deliveries. Answer with a status alone.", pageAnswer)
		}
	}
	return ruling{verdict: Passed}
}

// shows reports whether an answer has the right signature of a delivery that did not have it.
func (a *answer) shows(text string, secret webhook.Secret) bool {
	id, timestamp := a.delivery.header.Get(webhook.HeaderID), a.delivery.header.Get(webhook.HeaderTimestamp)
	if id == "" || timestamp == "" {
		return false
	}
	at, err := parseSeconds(timestamp)
	if err != nil {
		return false
	}
	right := strings.TrimPrefix(webhook.Sign(id, at, a.body, secret).Get(webhook.HeaderSignature), "v1,")
	return strings.Contains(text, right) && !strings.Contains(a.delivery.header.Get(webhook.HeaderSignature), right)
}

func judgeTime(s *seen) ruling {
	if s.r.slowest > s.r.Slow {
		return failed(fmt.Sprintf("An answer took %s. Store the event, answer, and work later: after 15 s it counts as not delivered.", s.r.slowest.Round(time.Millisecond)), pageAnswer)
	}
	return ruling{verdict: Passed}
}
