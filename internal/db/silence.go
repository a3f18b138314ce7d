package db

import (
	"context"
	"time"
)

type silenceKey struct{}

// WithSilence returns a context for transactions that do not wait for long: a server that
// sends nothing for d in the middle of a call is unavailable, and nothing is run a second
// time. SQLite takes no notice.
func WithSilence(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, silenceKey{}, d)
}

// Silence returns how long a server may send nothing, 0 if ctx does not say.
func Silence(ctx context.Context) time.Duration {
	d, _ := ctx.Value(silenceKey{}).(time.Duration)
	return d
}
