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
	e          *Worker
	connection string
	leaseEnd   time.Time
	tokenEnd   time.Time // zero where no token was needed
	used       bool
}

// Grant returns a slot for a send to a connection if one is free now, and, if
// the operator limits our rate, a token was taken ahead; nil if not. A
// connection that is not passing is sent to by claims only. The caller must
// call Start or Return, once.
func (e *Worker) Grant(connection string) *Grant {
	if e.c.AcceptOnly || !e.health.ready() || !e.health.passing(connection) {
		return nil
	}
	select {
	case e.fast <- struct{}{}:
	default:
		return nil
	}
	if !e.slots.take(connection) {
		<-e.fast
		return nil
	}
	g := &Grant{e: e, connection: connection, leaseEnd: time.Now().Add(Lease)}
	if r := e.reserves[connection]; r != nil {
		var ok bool
		if g.tokenEnd, ok = r.take(); !ok {
			e.slots.put(connection)
			<-e.fast
			return nil
		}
	}
	return g
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
func (g *Grant) Submission(s *store.Step, reference till.ID) *store.Attempt {
	a := g.e.submission(s, g.connection, reference, true)
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
		if r := g.e.reserves[g.connection]; r != nil {
			r.put(g.tokenEnd)
		}
		g.e.slots.put(g.connection)
		<-g.e.fast
		g.e.waker.Wake() // somebody may wait for the slot
	}
}
