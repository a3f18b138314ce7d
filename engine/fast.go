package engine

import (
	"context"
	"time"

	"till"
	"till/store"
)

// Grant is a free submit slot, held by whoever is creating a payment: the
// payment is written with the lease taken and is sent right after the commit,
// without a claim of its own.
type Grant struct {
	e        *Engine
	leaseEnd time.Time
	used     bool
}

// Grant returns a slot if one is free now, nil if none is. The caller must
// call Start or Return, once.
func (e *Engine) Grant() *Grant {
	select {
	case e.fast <- struct{}{}:
	default:
		return nil
	}
	select {
	case e.slots <- struct{}{}:
		return &Grant{e: e, leaseEnd: time.Now().Add(Lease)}
	default:
		<-e.fast
		return nil
	}
}

// Lease writes the grant into a new step, created at now: from its commit on
// the payment counts as possibly sent.
func (g *Grant) Lease(s *store.Step, now till.Time) {
	s.LeaseVersion = 1
	s.LeaseUntil = now.Add(Lease)
	s.Sends = 1
	s.SendStartedAt = now
	s.SendDeadline = s.LeaseUntil
}

// Submission returns the attempt that must be written in the same commit: the
// first of a payment that is new.
func (g *Grant) Submission(s *store.Step, j *Job) *store.Attempt {
	a := submission(s, j)
	a.N = 1
	return a
}

// Start sends the payment whose step holds the grant's lease.
func (g *Grant) Start(ctx context.Context, s *store.Step, j *Job) {
	g.used = true
	g.e.start(ctx, &Task{Step: *s, Job: j, Action: Submit, claimed: s.SendStartedAt, leaseEnd: g.leaseEnd, fast: true})
}

// Return gives the slot back unused.
func (g *Grant) Return() {
	if !g.used {
		g.used = true
		<-g.e.slots
		<-g.e.fast
	}
}
