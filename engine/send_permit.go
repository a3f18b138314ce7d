package engine

import (
	"context"
	"time"

	"till"
	"till/store"
)

// SendPermit is a free slot for a send, held by a create call. The payment is
// written with the lease taken and is sent right after the commit, without a claim
// of its own.
type SendPermit struct {
	worker     *Worker
	connection string
	leaseEnd   time.Time
	tokenEnd   time.Time // zero where no token was needed
	used       bool
}

// SendPermit returns a slot for a send to a connection if one is free now, and, if
// the operator limits our rate, a token was taken ahead; nil if not. A
// connection that is not passing is sent to by claims only. The caller must
// call Start or Return, once.
func (w *Worker) SendPermit(connection string) *SendPermit {
	if w.c.AcceptOnly || !w.health.ready() || !w.health.passing(connection) {
		return nil
	}
	select {
	case w.createPermits <- struct{}{}:
	default:
		return nil
	}
	if !w.slots.take(connection) {
		<-w.createPermits
		return nil
	}
	g := &SendPermit{worker: w, connection: connection, leaseEnd: time.Now().Add(Lease)}
	if r := w.prefetched[connection]; r != nil {
		var ok bool
		if g.tokenEnd, ok = r.take(); !ok {
			w.slots.put(connection)
			<-w.createPermits
			return nil
		}
	}
	return g
}

// Lease writes the permit into a new step, created at now: from its commit on
// the payment counts as possibly sent.
func (p *SendPermit) Lease(s *store.Step, now till.Time) {
	s.LeaseVersion = 1
	s.LeaseUntil = now.Add(Lease)
	s.Sends = 1
	s.SendStartedAt = now
	s.SendDeadline = s.LeaseUntil
}

// Attempt returns the attempt that must be written in the same commit: the
// first of a payment that is new.
func (p *SendPermit) Attempt(s *store.Step, reference till.ID) *store.Attempt {
	a := p.worker.sendAttempt(s, p.connection, reference, true)
	a.N = 1
	return a
}

// Start sends the payment whose step holds the permit's lease.
func (p *SendPermit) Start(ctx context.Context, s *store.Step, j *Instruction) {
	p.used = true
	p.worker.start(ctx, &Task{Step: *s, Instruction: j, Action: Submit, claimed: s.SendStartedAt, leaseEnd: p.leaseEnd, fromCreate: true})
}

// Return gives the slot back unused.
func (p *SendPermit) Return() {
	if !p.used {
		p.used = true
		if r := p.worker.prefetched[p.connection]; r != nil {
			r.put(p.tokenEnd)
		}
		p.worker.slots.put(p.connection)
		<-p.worker.createPermits
		p.worker.waker.Wake() // somebody may wait for the slot
	}
}
