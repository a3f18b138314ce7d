package api

import (
	"sync"

	"till"
	"till/internal/quota"
)

// How many calls may wait for events at once on this instance. One reader per client is
// usual; a few more are for deployments that overlap.
const (
	maxPolls       = 2000 // then 503
	maxClientPolls = 20   // of one client, then 429
)

// How many reads of one payment or payout may wait at once on this instance. A
// client may have a few hundred customers at its checkout.
const (
	maxWaits       = 4000 // then 503
	maxClientWaits = 300  // of one client, then 429
)

// How many statements are exported at once on this instance. Each repeatedly takes a
// database connection for moments.
const (
	maxExports       = 16 // then 503
	maxClientExports = 2  // of one client, then 429
)

// inflight counts long calls: those that wait for events or for a status, or those that
// export.
type inflight struct {
	places *quota.Quota

	stopping chan struct{} // closed when the service stops
	stop     func()
}

func newInflight(most, mostOfClient int64) *inflight {
	p := &inflight{places: quota.New(most, mostOfClient), stopping: make(chan struct{})}
	p.stop = sync.OnceFunc(func() { close(p.stopping) })
	return p
}

// enter takes a place, which leave gives back. It returns CodeRateLimited if the client has
// too many, CodeServiceUnavailable if the instance has.
func (p *inflight) enter(client till.ID) (leave func(), err error) {
	switch p.places.Take(client, 1) {
	case quota.ErrClientFull:
		return nil, &till.Error{Code: till.CodeRateLimited}
	case quota.ErrFull:
		return nil, &till.Error{Code: till.CodeServiceUnavailable}
	}
	return func() { p.places.Give(client, 1) }, nil
}
