package wire

import (
	"context"
	"errors"
	"fmt"
	"time"

	"till/provider"
)

// Access is what one account is let in by: a token that runs out.
type Access struct {
	Tokens provider.Tokens
	Name   string // of the token
	// Fetch gets a new one. An error that is provider.ErrCredentials says that
	// the operator will not have us.
	Fetch func(ctx context.Context) (token string, life time.Duration, err error)
}

// Call makes a call with the token. If the operator does not take it, call is
// made once more with a new one, and never a third time: whoever is refused
// twice is not let in. A refused call has moved nothing, so the second is under
// the same reference.
//
// Without a token nothing is sent, and the error says so.
func (a *Access) Call(ctx context.Context, refused func(*Reply) bool, call func(token string) (*Reply, error)) (*Reply, error) {
	token, err := a.Tokens.Token(ctx, a.Name, "", a.Fetch)
	if err != nil {
		return nil, fmt.Errorf("%w: no token: %w", provider.ErrNotSent, err)
	}
	// A token may have been long in coming. What is sent after its caller has
	// given up may be sent twice at once.
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%w: %w", provider.ErrNotSent, ctx.Err())
	}
	reply, err := call(token)
	if err != nil || !refused(reply) {
		return reply, err
	}
	if token, err = a.Tokens.Token(ctx, a.Name, token, a.Fetch); err != nil {
		return nil, fmt.Errorf("the token was refused, and there is no other: %w", hide(err))
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	reply, err = call(token)
	if err != nil {
		return nil, hide(err)
	}
	if refused(reply) {
		return nil, fmt.Errorf("%w: a new token was refused too (%d)", provider.ErrCredentials, reply.Status)
	}
	return reply, nil
}

// hide keeps the error of a second call from saying that nothing was sent: the
// first one was.
func hide(err error) error {
	if !errors.Is(err, provider.ErrNotSent) {
		return err
	}
	if errors.Is(err, provider.ErrCredentials) {
		return provider.ErrCredentials
	}
	return errors.New(err.Error())
}

// Life returns for how long a token of so many seconds is used: five sixths of
// it, so that none runs out on its way. It reports false for a life that no
// operator gives.
func Life(seconds string) (time.Duration, bool) {
	n, ok := Minor(seconds, 0)
	if !ok || n < 1 || n > 366*24*3600 {
		return 0, false
	}
	return time.Duration(n) * time.Second * 5 / 6, true
}
