package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"till/provider"
)

// Access adds an account's token to calls.
type Access struct {
	Tokens provider.Tokens
	Name   string // of the token
	// Fetch gets a new token. provider.ErrCredentials means that the operator
	// refuses the credentials.
	Fetch func(ctx context.Context) (token string, life time.Duration, err error)
}

// ErrNoToken means that the operator gives no token, or none in place of one that it has
// refused.
var ErrNoToken = errors.New("no new token")

// Call makes a call with the token. If the operator refuses the token, Call
// repeats the call once with a new token. A refused call has moved nothing, so the
// second call has the same reference.
//
// Without a token nothing is sent, and the error is provider.ErrNotSent. If the
// token of every call was refused, the error is a provider.Refusal: nothing moved
// either. Only a second call that may have arrived has an unknown outcome.
func (a *Access) Call(ctx context.Context, refused func(*Reply) bool, call func(token string) (*Reply, error)) (*Reply, error) {
	token, err := a.Tokens.Token(ctx, a.Name, "", a.Fetch)
	if err != nil {
		return nil, fmt.Errorf("%w: %w: %w", provider.ErrNotSent, ErrNoToken, err)
	}
	// Fetching a token may take long. A call that starts after its caller has given
	// up could run beside the caller's next one.
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%w: %w", provider.ErrNotSent, ctx.Err())
	}
	reply, err := call(token)
	if err != nil || !refused(reply) {
		return checkRateLimit(reply, err)
	}
	if token, err = a.Tokens.Token(ctx, a.Name, token, a.Fetch); err != nil {
		return nil, &provider.Refusal{Err: fmt.Errorf("the token was not taken, and there is %w: %w", ErrNoToken, withoutNotSent(err))}
	}
	if ctx.Err() != nil {
		return nil, &provider.Refusal{Err: ctx.Err()}
	}
	reply, err = call(token)
	switch {
	case errors.Is(err, provider.ErrNotSent):
		return nil, &provider.Refusal{Err: withoutNotSent(err)}
	case err == nil && refused(reply):
		return nil, &provider.Refusal{Err: fmt.Errorf("%w: a new token was not taken either (%d)", provider.ErrCredentials, reply.Status)}
	}
	return checkRateLimit(reply, err)
}

// checkRateLimit turns an answer that says that there were too many calls into an
// error.
func checkRateLimit(reply *Reply, err error) (*Reply, error) {
	if err == nil {
		err = TooMany(reply)
	}
	if err != nil {
		return nil, err
	}
	return reply, nil
}

// withoutNotSent removes ErrNotSent from the error of a second call: the first
// call was sent.
func withoutNotSent(err error) error {
	switch {
	case !errors.Is(err, provider.ErrNotSent):
		return err
	case errors.Is(err, provider.ErrCredentials):
		return provider.ErrCredentials
	case errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded
	}
	return errors.New(err.Error())
}

// maxRetryAfter is the longest Retry-After that is followed.
const maxRetryAfter = time.Hour

// TooMany returns a provider.Refusal if an operator's gateway says that there
// were too many calls, with the time that it asks us to wait; nil if it does not.
// Calls are counted before they are passed on, so nothing has come of this one.
func TooMany(r *Reply) error {
	if r.Status != http.StatusTooManyRequests {
		return nil
	}
	refusal := &provider.Refusal{Err: fmt.Errorf("too many calls (HTTP %d)", r.Status)}
	text := strings.TrimSpace(r.Header.Get("Retry-After"))
	if seconds, ok := ParseMinor(text, 0); ok {
		refusal.RetryAfter = time.Duration(min(seconds, int64(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		refusal.RetryAfter = min(max(time.Until(at), 0), maxRetryAfter)
	}
	return refusal
}

// RateLimitedTest returns what a test says whose call was refused because there
// were too many, nil if that is not what has happened.
func RateLimitedTest(operator string, err error) error {
	if _, refused := errors.AsType[*provider.Refusal](err); !refused || errors.Is(err, provider.ErrCredentials) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return provider.Unproven(fmt.Sprintf("%s answers, but does not take our call now (%v): try again later", operator, err))
}

// ParseToken reads the token in the answer to a token call and for how long it is
// used. refused says that the operator refuses the credentials.
func ParseToken(r *Reply, refused bool) (string, time.Duration, error) {
	switch {
	case refused:
		return "", 0, fmt.Errorf("%w: the token call was answered %d", provider.ErrCredentials, r.Status)
	case r.Status != http.StatusOK:
		return "", 0, fmt.Errorf("the token call was answered %d", r.Status)
	}
	var t struct {
		Token   Text `json:"access_token"`
		Expires Text `json:"expires_in"`
	}
	if err := Decode(r.Body, &t); err != nil {
		return "", 0, err
	}
	life, ok := tokenLifetime(string(t.Expires))
	if t.Token == "" || strings.ContainsAny(string(t.Token), " \r\n\t\x00") || !ok {
		return "", 0, errors.New("the token call was answered without a token")
	}
	return string(t.Token), life, nil
}

// tokenLifetime returns for how long a token is used: five sixths of its seconds, so
// that no token expires during a call. It reports false for a life that no operator gives.
func tokenLifetime(seconds string) (time.Duration, bool) {
	n, ok := ParseMinor(seconds, 0)
	if !ok || n < 1 || n > 366*24*3600 {
		return 0, false
	}
	return time.Duration(n) * time.Second * 5 / 6, true
}
