package engine

import (
	"context"
	"time"

	"till"
	"till/store"
)

// SendPermit is a free slot for a send, held by a create call. The payment is inserted with
// its lease taken and is sent right after the commit, without a claim.
type SendPermit struct {
	worker     *Worker
	connection string
	leaseEnd   time.Time
	tokenEnd   time.Time // zero where no token was needed
	used       bool
}

// SendPermit returns a slot for a send to a connection if one is free now and, if the
// operator has a rate limit, a token is prefetched. Otherwise it returns nil. Only claims
// send to a connection that is not passing. The caller must call Start or Return once.
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
	g := &SendPermit{worker: w, connection: connection, leaseEnd: time.Now().Add(w.c.Lease)}
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

// Lease writes the permit into a new step, created at now. From its commit on, the payment
// counts as possibly sent.
func (p *SendPermit) Lease(s *store.Step, now till.Time) {
	s.LeaseVersion = 1
	s.LeaseUntil = now.Add(p.worker.c.Lease)
	s.Sends = 1
	s.SendStartedAt = now
	s.SendDeadline = s.LeaseUntil
}

// Attempt returns the attempt for the same commit: the first of a new payment.
func (p *SendPermit) Attempt(s *store.Step, reference till.ID) *store.Attempt {
	a := p.worker.sendAttempt(s, p.connection, reference, true)
	a.N = 1
	return a
}

// Start sends the payment whose step has the permit's lease.
func (p *SendPermit) Start(ctx context.Context, s *store.Step, j *Instruction) {
	p.used = true
	p.worker.start(ctx, &Task{Step: *s, Instruction: j, Action: Submit, claimed: s.SendStartedAt, leaseEnd: p.leaseEnd, fromCreate: true})
}

// Return gives back the unused slot.
func (p *SendPermit) Return() {
	if !p.used {
		p.used = true
		if r := p.worker.prefetched[p.connection]; r != nil {
			r.put(p.tokenEnd)
		}
		p.worker.slots.put(p.connection)
		<-p.worker.createPermits
		p.worker.waker.Wake() // a claim may wait for the slot
	}
}
