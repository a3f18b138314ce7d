package till

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Failure is what all errors of a call have in common. It holds no API key, no
// phone and no body.
type Failure struct {
	Code           string // of the service, as CodeValidationFailed; "" if there was none
	Status         int    // of HTTP; 0 if there was no answer
	Detail         string // for people
	Errors         []FieldError
	RequestID      string // quote it when you ask for help
	RetryAfter     time.Duration
	IdempotencyKey string // of a create
	Tries          int    // how many requests were made
	Reason         string // why there was no good answer: timeout, reset, cut, not_json, redirect, …
	PaymentID      string // with CodeIdempotencyKeyReused: whose key it is
	PayoutID       string
	RefundID       string // likewise; with CodeRefundInProgress the one that is open
	Refundable     string // with CodeRefundExceedsPayment: what is left to give back, in minor units

	cause error // of a context that ended
}

func (e *Failure) Error() string {
	var parts []string
	for _, s := range []string{e.Code, e.Reason, e.Detail} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	text := strings.Join(parts, ": ")
	if e.Status != 0 {
		text = fmt.Sprintf("%d %s", e.Status, text)
	}
	for _, f := range e.Errors {
		text += fmt.Sprintf("; %s %s", f.Pointer, f.Code)
	}
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

func (e *Failure) Unwrap() error { return e.cause }

// Refused says that the service does not do this. Of a create: nothing exists,
// and the key is not used up.
type Refused struct{ *Failure }

func (e *Refused) Error() string { return "till: refused: " + e.Failure.Error() }
func (e *Refused) Unwrap() error { return e.Failure }

// Unavailable says that nothing happened, and that it may be tried later.
type Unavailable struct{ *Failure }

func (e *Unavailable) Error() string { return "till: unavailable: " + e.Failure.Error() }
func (e *Unavailable) Unwrap() error { return e.Failure }

// Unclear says that it may have happened. Ask again with the same key, never
// with another one.
type Unclear struct{ *Failure }

func (e *Unclear) Error() string { return "till: unclear: " + e.Failure.Error() }
func (e *Unclear) Unwrap() error { return e.Failure }

// Mistakes in the program that uses this package.
var (
	ErrNoKey        = errors.New("till: there is no API key")
	ErrBadKey       = errors.New("till: the API key has characters that no key has")
	ErrWrongMode    = errors.New("till: a test key where a live one is expected, or the other way round")
	ErrNoIdempotent = errors.New("till: a create needs an idempotency key that you have stored; see Teller")
	ErrBaseURL      = errors.New("till: the base address is an https:// URL, or http:// on this machine")
)

// verdict is what one answer says about a call.
type verdict int

const (
	verdictDone verdict = iota
	verdictRefused
	verdictUnavailable
	verdictUnclear
	verdictLook // refused, if a read by the key finds nothing
)

// judge is the table of outcomes. Before tells whether an earlier try had no
// answer: what was asked may exist then, whatever this answer says.
func judge(op operation, t *tried, before bool) verdict {
	switch {
	case t.reason == "" && t.status >= 200 && t.status < 300:
		return verdictDone
	case op.method == "GET":
		if (t.reason == "" || t.reason == reasonRedirect) && t.status >= 300 && t.status < 500 && t.status != 408 && t.status != 429 {
			return verdictRefused
		}
		return verdictUnavailable
	}
	unless := func(v verdict) verdict {
		if before {
			return verdictUnclear
		}
		return v
	}
	switch {
	case !t.sent:
		return unless(verdictUnavailable)
	case t.reason != "" && t.reason != reasonRedirect:
		return verdictUnclear
	case t.status == 429, t.status == 503 && (t.code() == CodeMethodUnavailable || t.code() == CodePayoutsHeld):
		return unless(verdictUnavailable)
	case t.status == 422 && t.code() == CodeIdempotencyKeyReused:
		return verdictRefused
	case t.status == 408 || t.status >= 500:
		return verdictUnclear
	case op.repeat != repeatKey:
		return verdictRefused // the answer to a repeat is as good as the first
	case t.status == 400, t.status == 413, t.status == 415, t.status == 422:
		if before {
			return verdictLook
		}
		return verdictRefused
	}
	return unless(verdictRefused)
}

// newFailure reads an answer.
func newFailure(t *tried, key string, tries int) *Failure {
	e := &Failure{Status: t.status, RequestID: t.header.Get("X-Request-Id"), RetryAfter: t.retryAfter, IdempotencyKey: key, Tries: tries, Reason: t.reason, cause: t.cause}
	if p := t.problem; p != nil {
		e.Code, e.Detail, e.Errors = p.Code, p.Detail, p.Errors
		e.PaymentID, e.PayoutID, e.RefundID, e.Refundable = Value(p.PaymentID), Value(p.PayoutID), Value(p.RefundID), Value(p.Refundable)
		if e.RequestID == "" {
			e.RequestID = p.RequestID
		}
	}
	return e
}

// failure makes the error of a verdict.
func failure(v verdict, t *tried, key string, tries int) error {
	e := newFailure(t, key, tries)
	switch v {
	case verdictUnavailable:
		return &Unavailable{e}
	case verdictUnclear:
		return &Unclear{e}
	}
	return &Refused{e}
}
